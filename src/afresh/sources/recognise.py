"""What a person means by a target: a site, a folder, a file, a repository or a list of links."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from afresh.core.archives import is_archive
from afresh.core.errors import UsageError
from afresh.core.file_urls import file_url, is_file_url, path_of
from afresh.core.git_address import is_git, parse_git
from afresh.core.git_pages import plain_page
from afresh.core.github_address import PUBLIC_WEB, github_address
from afresh.core.link_list import LINKS, is_link_list
from afresh.core.typed import typed_address
from afresh.sources.git import bare_repository

_PATH = re.compile(r"(?:\.{0,2}|~[^/]*)/|\.{1,2}$|~$")  # what can only be meant as a path

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
    if typed and "://" not in path and os.path.exists(path):
        return _on_disk(os.path.abspath(path))
    if _PATH.match(typed) or is_file_url(typed):
        raise UsageError(f"there is no file or folder {path}")
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
    if _PATH.match(typed) or (typed and "://" not in typed and os.path.exists(typed)):
        return file_url(os.path.abspath(os.path.expanduser(typed)))
    return typed_address(typed)


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
