"""What somebody means who calls the server: on the web, or in a folder that the settings open."""

import os
import re
from collections.abc import Sequence
from urllib.parse import unquote

from afresh.errors import UsageError
from afresh.sources.credentials import lends_keys
from afresh.sources.detect import Target, address, recognise
from afresh.sources.git.address import is_git, parse_git
from afresh.sources.github.address import PUBLIC_WEB, github_address
from afresh.urls.files import is_file_url, path_of
from afresh.urls.user_input import typed_address

_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_WEB = ("http://", "https://", "git+http://", "git+https://")
CLOSED = "files of the server are open only below a folder that server.allowed_roots names"


def recognise_from_afar(
    text: str,
    roots: Sequence[str],
    github_urls: Sequence[str] = (PUBLIC_WEB,),
    credentials_for: Sequence[str] = (),
) -> Target:
    """The source that is meant; nothing of this machine is looked at outside of the roots."""
    try:
        return _without_keys(_meant(text.strip(), roots, github_urls), credentials_for, github_urls)
    except UsageError as error:
        raise UsageError(f"target: {error}") from None


def _without_keys(target: Target, credentials_for: Sequence[str], github_urls: Sequence[str]) -> Target:
    """The target, unless it takes a key of the operator that is not lent."""
    if target.url.startswith("git+ssh://") and not lends_keys(*target, credentials_for, github_urls):
        raise UsageError(
            "ssh needs the operator's keys: write git+https://…, or have the host added to "
            "access.credentials_for"
        )
    return target


def _meant(typed: str, roots: Sequence[str], github_urls: Sequence[str]) -> Target:
    if not typed:
        raise UsageError("name a web address, a repository or a path")
    if "\0" in unquote(typed):  # which no path can hold
        raise UsageError(f"{typed[:200]!r} cannot be an address or a path: it holds a NUL")
    if is_file_url(typed) or typed.startswith(("/", "~", ".", "\\")):
        path = os.path.realpath(path_of(typed) if is_file_url(typed) else typed)
        if not os.path.isabs(typed if not is_file_url(typed) else path) or not is_below(path, roots):
            raise UsageError(CLOSED)
        return recognise(path, github_urls)
    if is_git(typed):
        address = parse_git(typed).url
        if not address.startswith(("git+https://", "git+http://", "git+ssh://")):
            raise UsageError(f"{CLOSED}; a repository is named as git+https://…")
        return Target("git", address)
    if on_github := github_address(typed, github_urls):
        return Target("github", on_github.url)
    return Target("web", web_address(typed))


def recognise_on_the_web(text: str, github_urls: Sequence[str] = (PUBLIC_WEB,)) -> Target:
    """The same for an agent, which may be talked into anything: its user alone adds files and uses keys."""
    if not text.strip().lower().startswith(_WEB):
        raise UsageError(
            f"{text!r} is not on the web: write https://… ; `afresh crawl PATH` adds files of this machine"
        )
    return recognise_from_afar(text, (), github_urls)


def page_address(typed: str) -> str:
    """The address of a page on record; just whole ones, as others may mean a path of this machine."""
    if not _WHOLE.match(typed.strip()):
        raise UsageError(
            f"{typed[:200]!r} is no whole address: it should look like https://docs.example.org/"
        )
    return address(typed)


def web_address(typed: str) -> str:
    """An address of the web from what was typed."""
    address = typed_address(typed.strip())
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"{typed[:200]!r} is no web address: begin it with https:// or http://")
    return address


def is_below(path: str, roots: Sequence[str]) -> bool:
    """Whether a real path is one of some folders or inside of one."""
    places = [os.path.realpath(os.path.expanduser(root)) for root in roots]
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)
