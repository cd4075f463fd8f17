"""Detect which kind of source a typed target names: a site, folder, file, repository or list of links.

Clients of the server can use local paths only below server.allowed_roots, and the operator's keys only for
the repositories that access.credentials_for names.
"""

import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from afresh.errors import UsageError
from afresh.plugins import SOURCES, installed_plugins
from afresh.sources.archive.paths import INSIDE, entry_url, is_archive
from afresh.sources.git.address import GitAddress, at_path, is_git, parse_git, plain_page
from afresh.sources.github.address import PUBLIC_WEB, github_address
from afresh.sources.linklist.parse import LINKS, is_link_list
from afresh.sources.registry import load_source_kind
from afresh.urls.canonical import typed_address
from afresh.urls.files import file_url, is_file_url, path_of

_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_WEB = ("http://", "https://", "git+http://", "git+https://")
CLOSED = "local paths must be inside a folder listed in server.allowed_roots"


def may_use_keys(kind: str, url: str, places: Sequence[str], github_urls: Sequence[str]) -> bool:
    """Return whether `places` (`host`, `host/owner`, …) permit the operator's keys for a repository."""
    if kind == "github":  # names on GitHub are not case-sensitive
        on_github = github_address(url, github_urls)
        if on_github is None:
            return False
        found = [urlsplit(on_github.web).netloc.lower(), on_github.owner.lower(), on_github.repo.lower()]
        places = [place.lower() for place in places]
    elif kind == "git":
        try:
            address = parse_git(url)
        except UsageError:
            return False
        host = f"{address.host}:{address.port}" if address.port else address.host
        found = [host, *unquote(address.path).strip("/").removesuffix(".git").split("/")]
    else:
        return False
    return any(found[: len(parts)] == parts for parts in (place.split("/") for place in places))


_PATH = re.compile(r"(?:\.{0,2}|~[^/]*)/|\.{1,2}$|~$")  # the start of a text that can only be a path
_WORD = re.compile(r"(?!localhost$)[\w -]+", re.IGNORECASE)  # neither a URL nor a repository: a misspelt folder

_FILE_ENDINGS = tuple(
    ".md .markdown .mdx .txt .rst .adoc .html .htm .pdf .docx .pptx .xlsx .epub .ipynb "  # noqa: SIM905
    ".json .yaml .yml .zip .tar .tgz .tar.gz .tar.xz .tar.bz2".split()
)
_HEAD_BYTES = 65_536

_log = logging.getLogger(__name__)


class SourceTarget(NamedTuple):
    kind: str
    url: str


def recognise(text: str, github_urls: Sequence[str] = (PUBLIC_WEB,)) -> SourceTarget:
    """Return the source that a user typed, as a path, a URL or a repository; an existing path takes precedence."""
    typed = text.strip()
    if is_git(typed):
        return SourceTarget("git", parse_git(typed).url)
    path = path_of(typed) if is_file_url(typed) else os.path.expanduser(typed)
    if repository := bare_repository(path):
        return SourceTarget("git", repository.url)
    if typed and "://" not in path and _is_there(path):
        return _on_disk(os.path.abspath(path))
    if by_plugin := _by_plugin(typed):
        return by_plugin
    named = "://" not in typed and not _PATH.match(typed) and typed.lower().endswith(_FILE_ENDINGS)
    if _WORD.fullmatch(typed) or (named and _means_path(typed)):
        raise UsageError(f"there is no file or folder {path} here; the URL of a site begins with https://")
    if _means_path(typed):
        if _PATH.match(typed) or is_file_url(typed):
            raise UsageError(f"there is no file or folder {path}")
        first, slash, _ = typed.partition("/")
        site = f"https://github.com/{typed}" if slash and "." not in first else f"https://{typed}"
        raise UsageError(f"there is no file or folder {path} here; if it is not on this machine, write {site}")
    if on_github := github_address(typed, github_urls):
        return SourceTarget("github", on_github.url)
    return SourceTarget("web", typed_address(typed))


def address(text: str) -> str:
    """Return the URL under which the page with a typed URL or path is stored."""
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
    if "://" in typed and not typed.lower().startswith(("http:", "https:")) and installed_plugins(SOURCES):
        return typed
    return typed_address(typed)


def _by_plugin(typed: str, *, remote: bool = False, roots: Sequence[str] = ()) -> SourceTarget | None:
    """Return the source that an installed plug-in recognises; log plug-ins that fail, and skip them."""
    for name in installed_plugins(SOURCES):
        try:
            kind = load_source_kind(name)
            root = kind.recognise(typed) if kind.recognise else None
        except UsageError:
            raise
        except Exception as error:
            _log.warning("source kind %s was skipped: its plug-in failed to recognise a target: %s", name, error)
            continue
        if root is None:
            continue
        if remote and not kind.is_remote_safe:
            raise UsageError(f"sources of kind {name} can only be added on the server itself, with `afresh crawl`")
        if remote and is_file_url(root) and not is_below(os.path.realpath(path_of(root)), roots):
            raise UsageError(CLOSED)
        return SourceTarget(name, root)
    return None


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise UsageError(f"{path} cannot be accessed: {error.strerror}") from error
    return True


def _means_path(typed: str) -> bool:
    if _PATH.match(typed) or is_file_url(typed):
        return True
    if not typed or "://" in typed:
        return False
    first, slash, _ = typed.partition("/")
    is_file = not slash or "." not in first
    return (is_file and typed.lower().endswith(_FILE_ENDINGS)) or bool(slash and os.path.isdir(first))


def _on_disk(path: str) -> SourceTarget:
    if os.path.isfile(path):
        head = b""
        with suppress(OSError), open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
        if len(head) == _HEAD_BYTES:
            head = head[: head.rfind(b"\n") + 1]  # drop the incomplete last line
        if is_link_list(os.path.basename(path), head):
            return SourceTarget(LINKS, file_url(path))
        if is_archive(path):
            return SourceTarget("archive", file_url(path))
    real = os.path.realpath(path)  # resolved once: if a link changes later, the source stays the same
    return SourceTarget("file" if os.path.isfile(real) else "folder", file_url(real))


def bare_repository(typed: str) -> GitAddress | None:
    path, _, folder = typed.rpartition("#") if "#" in typed else (typed, "", "")
    place, _, ref = path.rpartition("@") if "@" in path else (path, "", "")
    for each, name, part in ((typed, "", ""), (path, "", folder), (place, ref, folder)):
        if not each:
            continue
        with suppress(OSError):
            found = Path(each)
            if (found / "HEAD").is_file() and (found / "objects").is_dir() and (found / "refs").is_dir():
                return at_path(os.fsencode(os.path.realpath(each)), name or None, os.fsencode(part))
    return None


def recognise_remote(
    text: str, roots: Sequence[str], github_urls: Sequence[str] = (PUBLIC_WEB,), credentials_for: Sequence[str] = ()
) -> SourceTarget:
    """Return the source that a client of the server typed; never access files outside `roots`."""
    try:
        target = _resolve_remote(text.strip(), roots, github_urls)
    except UsageError as error:
        raise UsageError(f"target: {error}") from None
    if target.url.startswith("git+ssh://") and not may_use_keys(*target, credentials_for, github_urls):
        raise UsageError(
            "target: ssh needs the operator's keys: use git+https://…, or ask the operator to add the host to "
            "access.credentials_for"
        )
    return target


def _resolve_remote(typed: str, roots: Sequence[str], github_urls: Sequence[str]) -> SourceTarget:
    if not typed:
        raise UsageError("enter a URL, a repository or a path")
    if "\0" in unquote(typed):  # which no path can contain
        raise UsageError(f"{typed[:200]!r} is neither a URL nor a path: it contains a NUL character")
    if is_file_url(typed) or typed.startswith(("/", "~", ".", "\\")):
        path = os.path.realpath(path_of(typed) if is_file_url(typed) else typed)
        if not os.path.isabs(typed if not is_file_url(typed) else path) or not is_below(path, roots):
            raise UsageError(CLOSED)
        return recognise(path, github_urls)
    if is_git(typed):
        address = parse_git(typed).url
        if not address.startswith(("git+https://", "git+http://", "git+ssh://")):
            raise UsageError(f"{CLOSED}; write a remote repository as git+https://…")
        return SourceTarget("git", address)
    if on_github := github_address(typed, github_urls):
        return SourceTarget("github", on_github.url)
    return _by_plugin(typed, remote=True, roots=roots) or SourceTarget("web", web_address(typed))


def recognise_on_the_web(text: str, github_urls: Sequence[str] = (PUBLIC_WEB,)) -> SourceTarget:
    """Return the source that an AI agent names; allow no local files and no keys, as the agent may be manipulated."""
    if not text.strip().lower().startswith(_WEB):
        raise UsageError(f"{text!r} is not a web URL: write https://… ; to add local files, run `afresh crawl PATH`")
    return recognise_remote(text, (), github_urls)


def page_address(typed: str) -> str:
    """Return the canonical URL of a page; raise UsageError if it is not a full URL, as it may be a local path then."""
    if not _WHOLE.match(typed.strip()):
        raise UsageError(f"{typed[:200]!r} is not a full URL: write it like https://docs.example.org/")
    return address(typed)


def web_address(typed: str) -> str:
    address = typed_address(typed.strip())
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"{typed[:200]!r} is not a web URL: it must begin with https:// or http://")
    return address


def is_below(path: str, roots: Sequence[str]) -> bool:
    places = [os.path.realpath(os.path.expanduser(root)) for root in roots]
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)
