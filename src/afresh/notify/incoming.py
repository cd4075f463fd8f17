"""Read which pages or sources incoming webhooks ask to refresh."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from afresh.dataclass import dataclass
from afresh.model.records import SourceId
from afresh.sources.git.address import GitAddress
from afresh.sources.github.address import GithubAddress

MAX_URLS = 1_000  # in one message
MAX_TEXT_CHARS = 2_000  # length of a URL or an id
_BRANCH, _TAG = "refs/heads/", "refs/tags/"
_REMOTE = re.compile(r"(?:git\+)?(?:[a-z]+://)?(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?[:/]+(?P<path>.*?)(?:\.git)?/*")


class BadMessage(ValueError):
    """A message is malformed; the text says what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """A request to check a page or, without a URL, a source."""

    id: int
    source_id: SourceId
    url: str
    times: int  # number of equal requests; a new one during a check causes another check
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    state: str  # taken (accepted), known (a duplicate) or nothing (no source is affected)
    sources: tuple[str, ...] = ()
    pages: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    web: str  # web URL of the repository
    remotes: tuple[str, ...]  # other URLs of the repository, for git
    ref: str  # refs/heads/… or refs/tags/…
    default: str  # the default branch
    paths: frozenset[str] | None  # the changed files; None: unknown
    wiki: bool = False


def read_push(body: Any, event: str) -> Push:
    """Parse a push event of GitHub, or an edit of a wiki, which is a push to its repository."""
    repository = body.get("repository") if isinstance(body, dict) else None
    if not isinstance(repository, dict) or not isinstance(web := repository.get("html_url"), str):
        raise BadMessage("repository.html_url is missing")
    if not web.startswith(("http://", "https://")):
        raise BadMessage("repository.html_url is not a web URL")
    remotes = (repository.get(name) for name in ("clone_url", "ssh_url", "git_url"))
    ref = "" if event == "gollum" else body.get("ref")
    if not isinstance(ref, str):
        raise BadMessage("ref is missing")
    return Push(
        web=web[:MAX_TEXT_CHARS],
        remotes=tuple(each[:MAX_TEXT_CHARS] for each in remotes if isinstance(each, str)),
        ref=ref,
        default=str(repository.get("default_branch") or "main"),
        paths=_paths(body),
        wiki=event == "gollum",
    )


def _paths(body: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the changed paths; None if the message does not show them all, as after a forced push."""
    commits = body.get("commits")
    if body.get("forced") or body.get("created") or not isinstance(commits, list) or not commits:
        return None
    if not all(isinstance(commit, dict) for commit in commits):
        return None
    lists = [commit.get(kind, []) for commit in commits for kind in ("added", "modified", "removed")]
    if not all(isinstance(names, list) for names in lists):
        return None
    return frozenset(name for names in lists for name in names if isinstance(name, str)) or None


def concerns_github(push: Push, address: GithubAddress) -> bool:
    if push.wiki:
        return address.has_wiki
    branch = push.ref.removeprefix(_BRANCH) if push.ref.startswith(_BRANCH) else None
    if address.rest:
        rest = "/".join(address.rest)
        name = branch or push.ref.removeprefix(_TAG)
        return rest == name or (rest.startswith(f"{name}/") and _touches(push, rest.removeprefix(f"{name}/")))
    return not address.wiki_only and _is_pushed_to(push, address.ref)


def concerns_git(push: Push, address: GitAddress) -> bool:
    folder = address.folder.decode("utf-8", "replace")
    is_target = not push.wiki and _is_pushed_to(push, address.ref)
    return is_target and is_pushed(push, address) and (not folder or _touches(push, folder))


def is_pushed(push: Push, address: GitAddress) -> bool:
    """Return whether a push is to this repository, whatever its branch and folder."""
    ours = _place(address.remote)
    return ours is not None and ours in {_place(each) for each in (push.web, *push.remotes)}


def _is_pushed_to(push: Push, ref: str | None) -> bool:
    return push.ref in (_BRANCH + (ref or push.default), *((_TAG + ref,) if ref else ()))


def _touches(push: Push, folder: str) -> bool:
    if push.paths is None:
        return True
    return any(path == folder or path.startswith(f"{folder}/") for path in push.paths)


def _place(remote: str) -> tuple[str, str] | None:
    found = _REMOTE.fullmatch(remote.lower())
    return (found["host"], found["path"]) if found else None


def read_urls(body: Any) -> Sequence[str]:
    urls = body.get("urls") if isinstance(body, dict) else None
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise BadMessage('expected {"urls": ["https://…", …]}')
    if len(urls) > MAX_URLS or any(len(url) > MAX_TEXT_CHARS for url in urls):
        raise BadMessage(f"expected at most {MAX_URLS:,} URLs of at most {MAX_TEXT_CHARS:,} characters")
    return list(dict.fromkeys(urls))
