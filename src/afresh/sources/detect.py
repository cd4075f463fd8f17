"""What a person means by a target: a site, a folder, a file, a repository or a list of links."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from afresh.errors import UsageError
from afresh.sources.archive.paths import INSIDE, entry_url, is_archive
from afresh.sources.git.address import is_git, parse_git
from afresh.sources.git.lister import bare_repository
from afresh.sources.git.page_urls import plain_page
from afresh.sources.github.address import PUBLIC_WEB, github_address
from afresh.sources.linklist.parse import LINKS, is_link_list
from afresh.urls.files import file_url, is_file_url, path_of
from afresh.urls.user_input import typed_address

_PATH = re.compile(r"(?:\.{0,2}|~[^/]*)/|\.{1,2}$|~$")  # what can only be meant as a path

_FILE_ENDINGS = (
    *(
        ".md",
        ".markdown",
        ".mdx",
        ".txt",
        ".rst",
        ".adoc",
        ".html",
        ".htm",
        ".pdf",
        ".docx",
        ".pptx",
        ".xlsx",
    ),
    *(".epub", ".ipynb", ".json", ".yaml", ".yml", ".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2"),
)
_HEAD_BYTES = 65_536


class Target(NamedTuple):
    """A source to be: its kind and its root."""

    kind: str
    url: str


def recognise(text: str, github_urls: Sequence[str] = (PUBLIC_WEB,)) -> Target:
    """The source that is meant by what was typed; what stands on this machine comes first."""
    typed = text.strip()
    if is_git(typed):
        return Target("git", parse_git(typed).url)
    path = path_of(typed) if is_file_url(typed) else os.path.expanduser(typed)
    if repository := bare_repository(path):
        return Target("git", repository.url)
    if typed and "://" not in path and _is_there(path):
        return _on_disk(os.path.abspath(path))
    if _means_path(typed):
        raise UsageError(_not_there(typed, path))
    if on_github := github_address(typed, github_urls):
        return Target("github", on_github.url)
    return Target("web", typed_address(typed))


def address(text: str) -> str:
    """The address of a page as it is on record, from what was typed: a web address, a path or as it is."""
    typed = text.strip()
    if is_file_url(typed):
        return typed
    if page := plain_page(typed):
        return page
    archive, inside, name = typed.partition(INSIDE)
    if "://" not in typed and inside and is_archive(archive):
        return entry_url(file_url(os.path.abspath(os.path.expanduser(archive))), name)
    if _means_path(typed) or (typed and "://" not in typed and os.path.exists(typed)):
        return file_url(os.path.abspath(os.path.expanduser(typed)))
    return typed_address(typed)


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise UsageError(f"{path} cannot be looked at: {error.strerror}") from error
    return True


def _means_path(typed: str) -> bool:
    """Whether a path is meant, there or not: by how it begins or ends, or by its first folder."""
    if _PATH.match(typed) or is_file_url(typed):
        return True
    if not typed or "://" in typed:
        return False
    first, slash, _ = typed.partition("/")
    is_file = not slash or "." not in first
    return (is_file and typed.lower().endswith(_FILE_ENDINGS)) or bool(slash and os.path.isdir(first))


def _not_there(typed: str, path: str) -> str:
    if _PATH.match(typed) or is_file_url(typed):
        return f"there is no file or folder {path}"
    first, slash, _ = typed.partition("/")
    site = f"https://github.com/{typed}" if slash and "." not in first else f"https://{typed}"
    return f"there is no file or folder {path} here; if it is not on this machine, write {site}"


def _on_disk(path: str) -> Target:
    if os.path.isfile(path) and is_link_list(os.path.basename(path), _head(path)):
        return Target(LINKS, file_url(path))
    if os.path.isfile(path) and is_archive(path):
        return Target("archive", file_url(path))
    real = os.path.realpath(path)  # once: where a link leads later is another place
    return Target("file" if os.path.isfile(real) else "folder", file_url(real))


def _head(path: str) -> bytes:
    """The first lines of a file, whole; nothing of one that cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return b""
    return head if len(head) < _HEAD_BYTES else head[: head.rfind(b"\n") + 1]
