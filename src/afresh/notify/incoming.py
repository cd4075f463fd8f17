"""Check the signatures of incoming webhooks, and read which pages or sources they ask to refresh."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from afresh.access.permissions import same
from afresh.dataclass import dataclass
from afresh.model.records import SourceId
from afresh.sources.git.address import GitAddress
from afresh.sources.github.address import GithubAddress

TOLERANCE_SECONDS = 300  # maximum age of a message, and difference between the clocks of two machines
MAX_URLS = 1_000  # in one message
MAX_TEXT_CHARS = 2_000  # length of a URL or an id
_HEX = re.compile(r"sha256=[0-9a-f]{64}")
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


def may_be_signed_by_github(header: str | None) -> bool:
    """Return whether a header has the form of a GitHub signature; a cheap check before the body is read."""
    return header is not None and _HEX.fullmatch(header) is not None


def github_signed(secret: str, body: bytes, header: str | None) -> bool:
    """Return whether the GitHub signature of a body is valid; an empty secret is not."""
    if not secret or header is None or not may_be_signed_by_github(header):
        return False
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return same(f"sha256={digest}", header)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message by the Standard Webhooks specification."""
    digest = hmac.new(_key(secret), f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _key(secret: str) -> bytes:
    if secret.startswith("whsec_"):
        with suppress(binascii.Error):
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


def may_be_signed(message_id: str | None, timestamp: str | None, header: str | None, now: datetime) -> bool:
    """Return whether the headers are complete and recent; a cheap check before the body is read."""
    if not message_id or not header or not re.fullmatch(r"[0-9]{1,12}", timestamp or ""):
        return False
    return abs(now.timestamp() - int(timestamp or "")) <= TOLERANCE_SECONDS


def signed(
    secret: str, message_id: str | None, timestamp: str | None, body: bytes, header: str | None, now: datetime
) -> bool:
    """Return whether a message is recent and has a valid signature in `header`; False if any header is missing."""
    if not secret or not message_id or not header or not may_be_signed(message_id, timestamp, header, now):
        return False
    wanted = sign(secret, message_id, int(timestamp or ""), body)
    return any([same(wanted, each) for each in header.split(" ")[:10]])  # noqa: C419 - all of them, always


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
