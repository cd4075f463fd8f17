"""For which repositories the operator lends keys to others."""

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from afresh.errors import UsageError
from afresh.sources.git.address import parse_git
from afresh.sources.github.address import github_address


def lends_keys(kind: str, url: str, places: Sequence[str], github_urls: Sequence[str]) -> bool:
    """Whether one of the places (`host`, `host/owner`, `host/owner/repo`) covers a repository."""
    found = _place(kind, url, github_urls)
    return found is not None and any(_covers(place, found, kind) for place in places)


def _covers(place: str, found: tuple[str, ...], kind: str) -> bool:
    parts = tuple(place.split("/"))
    if kind == "github":  # where the case of owners and repositories does not matter
        parts = tuple(part.lower() for part in parts)
    return found[: len(parts)] == parts


def _place(kind: str, url: str, github_urls: Sequence[str]) -> tuple[str, ...] | None:
    """The host and the path of a repository, in parts."""
    if kind == "github":
        found = github_address(url, github_urls)
        if found is None:
            return None
        return urlsplit(found.web).netloc.lower(), found.owner.lower(), found.repo.lower()
    if kind != "git":
        return None
    try:
        address = parse_git(url)
    except UsageError:
        return None
    path = unquote(address.path).strip("/").removesuffix(".git")
    host = f"{address.host}:{address.port}" if address.port else address.host
    return (host, *path.split("/"))
