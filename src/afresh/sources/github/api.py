"""GitHub's API: its token, its answers as checked values, and the mark of a state of a repository."""

import asyncio
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from afresh.errors import ApiError, ApiTimeout, ApiTooLarge
from afresh.model.fetch import Failed, Gone, NotModified, Outcome, Refused
from afresh.ops.processes import reaped
from afresh.ports import ApiResponse, Clock
from afresh.sources.git.address import ANONYMOUS, blob_id
from afresh.sources.github.address import is_ref, odd_path, quoted
from afresh.sources.web.answers import REDIRECTS, status_words
from afresh.sources.web.api_client import ApiClient, as_json
from afresh.sources.web.http_dates import LONGEST_WAIT_SECONDS, parse_retry_after
from afresh.text.json_input import MAX_JSON_VALUES
from afresh.urls.canonical import canonical

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_SYMLINK, _FILES = "120000", ("100644", "100755", "100664")
LINKS, MODULES, ODD = "symbolic links", "submodules", "with a name that cannot be a path"


class GithubFile(NamedTuple):
    """A file of a repository."""

    path: str
    id: str  # of its content, as git names it
    size: int | None

    @property
    def etag(self) -> str:
        """Return the validator of the page; it changes exactly when the content does."""
        return f'"{self.id}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubTree:
    """One listing of a repository, or of a folder of it."""

    id: str  # of the requested commit, or of the folder
    files: tuple[GithubFile, ...]
    folders: tuple[tuple[str, str], ...]  # path and id
    left_out: Mapping[str, int] = field(default_factory=dict)
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryFacts:
    """What GitHub says of a repository as a whole."""

    name: str  # its current name
    branch: str  # the default branch
    wiki: bool
    private: bool


class UnexpectedAnswer(ValueError):
    """An answer in a form that GitHub's API does not use."""


def read_tree(answer: object, below: str = "") -> GithubTree:
    """Parse an answer of `git/trees`; `below` is prepended to its paths."""
    found = _mapping(answer)
    entries = found.get("tree")
    if not isinstance(entries, list):
        raise UnexpectedAnswer("it lists no files")
    files: dict[str, GithubFile] = {}
    folders: dict[str, str] = {}
    left_out: Counter[str] = Counter()
    for entry in entries:
        each = _mapping(entry)
        path = each.get("path")
        if not isinstance(path, str) or odd_path(f"{below}{path}"):
            left_out[ODD] += 1
            continue
        kind, mode, path = each.get("type"), each.get("mode"), f"{below}{path}"
        if kind == "tree":
            folders[path] = _id(each.get("sha"))
        elif kind == "commit":
            left_out[MODULES] += 1
        elif mode == _SYMLINK:
            left_out[LINKS] += 1
        elif kind == "blob" and mode in _FILES:
            size = each.get("size")
            known = size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None
            files[path] = GithubFile(path, _id(each.get("sha")), known)
        else:
            left_out[ODD] += 1
    return GithubTree(
        id=_id(found.get("sha")),
        files=tuple(files.values()),
        folders=tuple(folders.items()),
        left_out=left_out,
        truncated=found.get("truncated") is True,
    )


def read_facts(answer: object) -> RepositoryFacts:
    """Parse an answer of `repos/owner/repo`."""
    found = _mapping(answer)
    name, branch = found.get("full_name"), found.get("default_branch")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UnexpectedAnswer("it names no repository")
    if not isinstance(branch, str) or not is_ref(branch):
        raise UnexpectedAnswer("it names no default branch")
    wiki, private = found.get("has_wiki"), found.get("private")
    return RepositoryFacts(name=name, branch=branch, wiki=wiki is True, private=private is not False)


def _mapping(answer: object) -> Mapping[str, object]:
    if not isinstance(answer, dict):
        raise UnexpectedAnswer("it is no JSON object")
    return answer


def _id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise UnexpectedAnswer("it holds an id that is none of git's")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubState:
    """The state of a repository when it was listed; stored as text, it is the mark of the source."""

    etag: str  # of the listing; "" if the server sent none
    name: str  # under which the API knows the repository
    shown: str  # in the URLs of its pages
    ref: str  # that was requested
    path: str  # of the wanted folder; "" for all
    branch: str  # in the URLs of its pages
    commit: str
    private: bool
    wiki: bool
    rules: str  # what else decided which files are listed

    def as_text(self) -> str:
        """Return the mark as text."""
        return json.dumps(asdict(self), sort_keys=True)


def read_mark(text: str | None, rules: str) -> GithubState | None:
    """Parse a mark; return None if it is of another version or was made under other rules."""
    try:
        found = json.loads(text or "null")
        state = GithubState(**found) if isinstance(found, dict) else None
    except (ValueError, TypeError):
        return None
    if state is None or state.rules != rules or not state.etag:
        return None
    sound = all(isinstance(found[each.name], each.type) for each in fields(GithubState))  # type: ignore[arg-type]
    return state if sound else None


VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
_SECONDS = 5.0
_LONGEST = 1_024


class GithubToken:
    """The token for one server, searched for when it is first needed."""

    def __init__(
        self, setting: str | None, environment: Mapping[str, str], host: str, *, anonymous: bool = False
    ) -> None:
        self.is_anonymous = anonymous  # never send a token
        self._setting = setting
        self._environment = environment
        self._host = host
        self._found: asyncio.Future[str | None] | None = None

    async def get(self) -> str | None:
        """Return the token, or None if there is none."""
        if self.is_anonymous:
            return None
        if self._found is None:
            self._found = asyncio.ensure_future(find_token(self._setting, self._environment, self._host))
        return await asyncio.shield(self._found)


async def find_token(
    setting: str | None, environment: Mapping[str, str], host: str, *, seconds: float = _SECONDS
) -> str | None:
    """Find the token for one server, or return None; problems with `gh` are ignored."""
    for token in (setting, *(environment.get(name) for name in VARIABLES)):
        if token and _sound(token):
            return token
    program = shutil.which("gh", path=environment.get("PATH"))
    return await _from_program(program, environment, host, seconds) if program else None


async def _from_program(
    program: str, environment: Mapping[str, str], host: str, seconds: float
) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            program, "auth", "token", "--hostname", host,
            env={**environment, "GH_PROMPT_DISABLED": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
    said = b""
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await reaped(process)
    token = said.decode("ascii", "replace").strip()
    return token if process.returncode == 0 and _sound(token) else None


def _sound(token: str) -> bool:
    """Return whether a token is valid in a header."""
    return 0 < len(token) <= _LONGEST and token.isascii() and token.isprintable() and " " not in token


_JSON, _BYTES = "application/vnd.github+json", "application/vnd.github.raw+json"
_VERSION = "2022-11-28"
_MAX_FACTS_BYTES = 1024 * 1024
_MAX_TREE_BYTES = 32 * 1024 * 1024
_MAX_TREE_VALUES = 1_500_000  # GitHub lists at most 100,000 files, with eight values each
_MOST_HOPS = 3
_CLIMBS = re.compile(r"(?:%2f|%5c|/)\.{1,2}(?:%2f|%5c|[/?]|$)", re.IGNORECASE)  # if decoded twice
_RAISED_BY = "; a token raises it (github.token, GITHUB_TOKEN or `gh auth login`)"

Trouble = Gone | Refused | Failed


class TreeListing(NamedTuple):
    """A tree, and the ETag for a conditional request."""

    tree: GithubTree
    etag: str | None


class GithubApi:
    """Sends requests to one GitHub server; the token goes to its API and nowhere else."""

    def __init__(
        self,
        client: ApiClient,
        *,
        api_url: str,
        raw_url: str,
        token: GithubToken,
        clock: Clock,
        timeout: float = 60.0,
        max_file_bytes: int = 10 * 1024 * 1024,
    ) -> None:
        self._client = client
        self._api, self._raw = api_url.rstrip("/"), raw_url.rstrip("/")
        self._token = token
        self._clock = clock
        self._timeout = timeout
        self._largest = max_file_bytes

    @property
    def is_anonymous(self) -> bool:
        """Return whether no token is ever sent."""
        return self._token.is_anonymous

    async def has_token(self) -> bool:
        """Return whether requests are sent with a token."""
        return await self._token.get() is not None

    async def facts(self, name: str) -> RepositoryFacts | Trouble:
        """Return the facts of a repository, following renames."""
        answer = await self._ask(f"{self._api}/repos/{name}", _MAX_FACTS_BYTES)
        if isinstance(answer, NotModified):
            reason = "304 Not Modified, though nothing was asked conditionally"
            return Failed(outcome=Outcome.FAILED, reason=reason)
        if not isinstance(answer, ApiResponse):
            return answer
        try:
            return read_facts(await as_json(answer.data, _MAX_FACTS_BYTES, MAX_JSON_VALUES))
        except UnexpectedAnswer as wrong:
            return _odd(wrong)

    async def tree(
        self, name: str, ref: str, *, etag: str | None = None, below: str = "", whole: bool = True
    ) -> TreeListing | NotModified | Trouble:
        """Return the files of a commit or a folder: all below it if `whole`, else only its direct entries."""
        url = f"{self._api}/repos/{name}/git/trees/{quote(ref, safe='')}" + ("?recursive=1" if whole else "")
        answer = await self._ask(url, _MAX_TREE_BYTES, etag)
        if not isinstance(answer, ApiResponse):
            return answer
        try:
            found = await as_json(answer.data, _MAX_TREE_BYTES, _MAX_TREE_VALUES)
            tree = await asyncio.to_thread(read_tree, found, below)
            etag = answer.headers.get("etag") or ""
            sound = len(etag) <= 1024 and etag.isascii() and etag.isprintable()
            return TreeListing(tree, etag if etag and sound else None)
        except UnexpectedAnswer as wrong:
            return _odd(wrong)

    async def raw_file(self, name: str, revision: str, file: GithubFile) -> bytes | Trouble:
        """Return the content of a public file, requested without the token."""
        url = f"{self._raw}/{name}/{quoted(revision)}/{quoted(file.path)}"
        return await self._content(url, {"Accept": "*/*"}, file)

    async def blob(self, name: str, file: GithubFile) -> bytes | Trouble:
        """Return the content of a file by its id."""
        url = f"{self._api}/repos/{name}/git/blobs/{file.id}"
        return await self._content(url, await self._headers(_BYTES), file)

    async def close(self) -> None:
        await self._client.close()

    async def _content(self, url: str, headers: Mapping[str, str], file: GithubFile) -> bytes | Trouble:
        if (file.size or 0) > self._largest:
            return _too_large(self._largest)
        answer = await self._get(url, headers, self._largest)
        if not isinstance(answer, ApiResponse):
            return answer
        if answer.status != 200:
            return await self._trouble(answer)
        if blob_id(answer.data, file.id) != file.id:
            return Gone(status_code=None)  # another version: the requested one does not exist there
        return answer.data

    async def _ask(
        self, url: str, largest: int, etag: str | None = None
    ) -> ApiResponse | NotModified | Trouble:
        """Return an answer of the API, following redirects of renamed repositories within the API."""
        headers = await self._headers(_JSON) | ({"If-None-Match": etag} if etag else {})
        for _ in range(_MOST_HOPS + 1):
            answer = await self._get(url, headers, largest)
            if not isinstance(answer, ApiResponse):
                return answer
            if answer.status == 200:
                return answer
            if answer.status == 304 and etag:
                return NotModified()
            target = self._target(url, answer)
            if target is None:
                return await self._trouble(answer)
            url = target
        return Refused(outcome=Outcome.FAILED, reason="GitHub's API redirects in circles")

    async def _get(
        self, url: str, headers: Mapping[str, str], largest: int
    ) -> ApiResponse | Refused | Failed:
        try:
            return await self._client.get(url, headers, self._timeout, largest=largest)
        except ApiTooLarge:
            return _too_large(largest)
        except ApiTimeout as late:
            return Failed(outcome=Outcome.TIMEOUT, reason=str(late))
        except ApiError as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error))

    async def _headers(self, accept: str) -> dict[str, str]:
        own, token = {"Accept": accept, "X-GitHub-Api-Version": _VERSION}, await self._token.get()
        return own | ({"Authorization": f"Bearer {token}"} if token else {})

    def _target(self, url: str, answer: ApiResponse) -> str | None:
        """Return where a redirect of the API leads, with `..` resolved; None if it leads out of the API."""
        location = answer.headers.get("location")
        if answer.status not in REDIRECTS or not location:
            return None
        target, api = canonical(location, url), canonical(f"{self._api}/")
        leaves = target is None or api is None or not target.startswith(api) or _CLIMBS.search(target)
        return None if leaves else target

    async def _trouble(self, answer: ApiResponse) -> Trouble:
        """Return what an answer without content means."""
        status, words = answer.status, f"GitHub answered {status_words(answer.status)}"
        if status in (404, 410, 422):
            return Gone(status_code=status)
        if status == 401:
            return _refused(f"{words}: it does not take this token", status)
        if status in (403, 429) and (limit := await self._limit(answer)):
            return limit
        if status == 409:
            return _refused("the repository is empty", status)
        if status == 451:
            return _refused(f"{words}: the repository had to be taken down", status)
        if status == 429 or status >= 500:
            blocked = Outcome.BLOCKED_5XX if status >= 500 else Outcome.BLOCKED_4XX
            wait = parse_retry_after(answer.headers.get("retry-after"), self._clock())
            return Failed(outcome=blocked, reason=words, status_code=status, retry_after=wait)
        return _refused(words, status)

    async def _limit(self, answer: ApiResponse) -> Failed | None:
        """Return the rate limit and when it ends; None if the answer is about something else."""
        now, headers = self._clock(), answer.headers
        wait = parse_retry_after(headers.get("retry-after"), now)
        if wait is None and headers.get("x-ratelimit-remaining") == "0":
            wait = _until(headers.get("x-ratelimit-reset"), now)
        elif wait is None and b"rate limit" not in answer.data[:4096].lower():
            return None
        wait = 60.0 if wait is None else wait  # GitHub's advice for limits without a time
        end = f"{now + timedelta(seconds=wait):%H:%M} UTC"
        way_out = "" if await self.has_token() else f"; {ANONYMOUS}" if self.is_anonymous else _RAISED_BY
        reason = f"GitHub's rate limit is used up until {end}{way_out}"
        wait = min(wait, LONGEST_WAIT_SECONDS)
        code = answer.status
        return Failed(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=code, retry_after=wait)


def _until(reset: str | None, now: datetime) -> float | None:
    """Return the seconds until a Unix time, at most a day; GitHub's limits end within an hour."""
    text = (reset or "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        return None
    return min(max(int(text) - now.timestamp(), 0.0), 86_400.0)


def _refused(reason: str, status: int) -> Refused:
    return Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=status)


def _too_large(largest: int) -> Refused:
    most = f"{largest // 1024 // 1024} MB" if largest >= 1024 * 1024 else f"{largest // 1024} KB"
    return Refused(outcome=Outcome.FAILED, reason=f"larger than {most}")


def _odd(wrong: UnexpectedAnswer) -> Failed:
    return Failed(outcome=Outcome.FAILED, reason=f"the answer of GitHub's API cannot be used: {wrong}")
