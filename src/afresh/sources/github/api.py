"""Send requests to GitHub's API, check its answers, and convert the state of a repository from and to text."""

import asyncio
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from afresh.config.sources import GithubSettings
from afresh.dataclass import asdict, dataclass, field, fields, replace
from afresh.errors import ApiError, ApiTimeout, ApiTooLarge
from afresh.model.fetch import Failed, Gone, NotModified, Outcome, Refused
from afresh.ports import ApiResponse, Clock
from afresh.sources.git.address import ANONYMOUS, blob_id
from afresh.sources.github.address import is_ref, odd_path, quoted
from afresh.sources.web.answers import REDIRECTS, status_words
from afresh.sources.web.api_client import ApiClient, as_json
from afresh.sources.web.http import HttpOptions
from afresh.sources.web.http_dates import MAX_WAIT_SECONDS, parse_retry_after
from afresh.text.json_input import MAX_JSON_VALUES
from afresh.urls.canonical import canonical

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_SYMLINK, _FILES = "120000", ("100644", "100755", "100664")
LINKS, MODULES, ODD = "symbolic links", "submodules", "with a name that cannot be a path"
VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
_GH_SECONDS = 5.0
_MAX_TOKEN_CHARS = 1_024


class GithubFile(NamedTuple):
    path: str
    id: str  # git's id of the content
    size: int | None

    @property
    def etag(self) -> str:
        return f'"{self.id}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubTree:
    id: str  # the id of the requested commit or folder
    files: tuple[GithubFile, ...]
    folders: tuple[tuple[str, str], ...]  # pairs of path and id
    left_out: Mapping[str, int] = field(default_factory=dict)
    truncated: bool = False
    etag: str = ""  # of the response, for a conditional request


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryFacts:
    name: str  # the current name, after any renames
    branch: str  # the default branch
    wiki: bool
    private: bool


class Unavailable(Exception):
    """GitHub refused a request or failed; `seen` is the result to return for the page."""

    def __init__(self, seen: Refused | Failed) -> None:
        super().__init__(seen.reason)
        self.seen = seen


class UnexpectedAnswer(Unavailable):
    def __init__(self, wrong: str) -> None:
        super().__init__(Failed(reason=f"the answer of GitHub's API cannot be used: {wrong}"))


def read_tree(answer: object, below: str = "") -> GithubTree:
    """Parse an answer of `git/trees`; prefix its paths with `below`."""
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
        raise UnexpectedAnswer("it is not a JSON object")
    return answer


def _id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise UnexpectedAnswer("it contains an invalid git id")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubState:
    """The state of a repository when it was listed; stored as text, so that the next run can detect changes."""

    etag: str  # the ETag of the listing; "" if the server sent none
    name: str  # the repository's name in the API
    url_name: str  # the repository's name in the URLs of its pages
    ref: str  # the requested ref
    path: str  # the requested folder; "" for all
    branch: str  # the branch in the URLs of its pages
    commit: str
    private: bool
    wiki: bool
    rules: str  # a text that changes with the rules that decide which files are listed

    def as_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def read_mark(text: str | None, rules: str) -> GithubState | None:
    """Parse a stored state; return None if it is invalid or was stored with other rules."""
    try:
        found = json.loads(text or "null")
        state = GithubState(**found) if isinstance(found, dict) else None
    except (ValueError, TypeError):
        return None
    if state is None or state.rules != rules or not state.etag:
        return None
    sound = all(isinstance(found[each.name], each.type) for each in fields(GithubState))  # type: ignore[arg-type]
    return state if sound else None


async def find_token(
    setting: str | None, environment: Mapping[str, str], host: str, *, seconds: float = _GH_SECONDS
) -> str | None:
    """Return the token for a server from the setting, the environment or `gh`; None if there is none."""
    for token in (setting, *(environment.get(name) for name in VARIABLES)):
        if token and _is_valid(token):
            return token
    program = shutil.which("gh", path=environment.get("PATH"))
    return await asyncio.to_thread(_run_gh, program, environment, host, seconds) if program else None


def _run_gh(program: str, environment: Mapping[str, str], host: str, seconds: float) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603
            [program, "auth", "token", "--hostname", host],
            env={**environment, "GH_PROMPT_DISABLED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    token = done.stdout.decode("ascii", "replace").strip()
    return token if done.returncode == 0 and _is_valid(token) else None


def _is_valid(token: str) -> bool:
    return 0 < len(token) <= _MAX_TOKEN_CHARS and token.isascii() and token.isprintable() and " " not in token


_JSON, _BYTES = "application/vnd.github+json", "application/vnd.github.raw+json"
_VERSION = "2022-11-28"
_MAX_FACTS_BYTES = 1024 * 1024
_MAX_TREE_BYTES = 32 * 1024 * 1024
_MAX_TREE_VALUES = 1_500_000  # GitHub lists at most 100,000 files, with eight values each
_MAX_REDIRECTS = 3
# Matches `.` and `..` segments, also those that appear when a URL is decoded twice.
_CLIMBS = re.compile(r"(?:%2f|%5c|/)\.{1,2}(?:%2f|%5c|[/?]|$)", re.IGNORECASE)
_REASONS = {401: "the token is not valid", 409: "the repository is empty", 451: "the repository was taken down"}
_RAISED_BY = "; set a token for a higher limit (github.token, GITHUB_TOKEN or `gh auth login`)"


class GithubApi:
    """Sends requests to one GitHub server; the token is sent only to its API."""

    def __init__(
        self,
        places: GithubSettings,
        environment: Mapping[str, str],
        options: HttpOptions,
        clock: Clock,
        max_file_bytes: int,
        *,
        anonymous: bool,
    ) -> None:
        self.is_anonymous = anonymous  # never send a token
        self._places, self._environment = places, environment
        self._client = ApiClient(
            [places.api_url, places.raw_url], user_agent=options.agent, connect_seconds=options.connect_seconds
        )
        self._api, self._raw = places.api_url.rstrip("/"), places.raw_url.rstrip("/")
        self._token: asyncio.Future[str | None] | None = None
        self._clock = clock
        self._timeout = options.timeout_seconds
        self._max_bytes = max_file_bytes

    async def token(self) -> str | None:
        """Return the token, if any; search for it on the first call."""
        if self.is_anonymous:
            return None
        if self._token is None:
            host = URL(self._places.web_url).host or ""
            self._token = asyncio.ensure_future(find_token(self._places.token, self._environment, host))
        return await asyncio.shield(self._token)

    async def facts(self, name: str) -> RepositoryFacts | Gone:
        answer = await self._ask(f"{self._api}/repos/{name}", _MAX_FACTS_BYTES)
        if isinstance(answer, Gone):
            return answer
        return read_facts(await as_json(answer.data, _MAX_FACTS_BYTES, MAX_JSON_VALUES))

    async def tree(
        self, name: str, ref: str, *, etag: str | None = None, below: str = "", whole: bool = True
    ) -> GithubTree | NotModified | Gone:
        """Request the files of a commit or a folder; without `whole`, leave out those in subfolders."""
        url = f"{self._api}/repos/{name}/git/trees/{quote(ref, safe='')}" + ("?recursive=1" if whole else "")
        answer = await self._ask(url, _MAX_TREE_BYTES, etag)
        if isinstance(answer, Gone):
            return answer
        if answer.status == 304:
            return NotModified()
        found = await as_json(answer.data, _MAX_TREE_BYTES, _MAX_TREE_VALUES)
        tree = await asyncio.to_thread(read_tree, found, below)
        etag = answer.headers.get("etag") or ""
        return replace(tree, etag=etag) if len(etag) <= 1024 and etag.isascii() and etag.isprintable() else tree

    async def raw_file(self, name: str, revision: str, file: GithubFile) -> bytes | Gone:
        """Request the content of a public file without a token."""
        url = f"{self._raw}/{name}/{quoted(revision)}/{quoted(file.path)}"
        return await self._content(url, {"Accept": "*/*"}, file)

    async def blob(self, name: str, file: GithubFile) -> bytes | Gone:
        url = f"{self._api}/repos/{name}/git/blobs/{file.id}"
        return await self._content(url, await self._headers(_BYTES), file)

    async def close(self) -> None:
        await self._client.close()

    async def _content(self, url: str, headers: Mapping[str, str], file: GithubFile) -> bytes | Gone:
        if (file.size or 0) > self._max_bytes:
            raise _too_large(self._max_bytes)
        answer = await self._get(url, headers, self._max_bytes)
        if answer.status != 200:
            return await self._explain(answer)
        if blob_id(answer.data, file.id) != file.id:
            return Gone(status_code=None)  # the URL has another version of the file
        return answer.data

    async def _ask(self, url: str, max_bytes: int, etag: str | None = None) -> ApiResponse | Gone:
        """Return an answer of the API; follow redirects within it, which renamed repositories cause."""
        headers = await self._headers(_JSON) | ({"If-None-Match": etag} if etag else {})
        for _ in range(_MAX_REDIRECTS + 1):
            answer = await self._get(url, headers, max_bytes)
            if answer.status == 200 or (answer.status == 304 and etag):
                return answer
            if (target := self._target(url, answer)) is None:
                return await self._explain(answer)
            url = target
        raise Unavailable(Refused(reason="GitHub's API redirects in a loop"))

    async def _get(self, url: str, headers: Mapping[str, str], max_bytes: int) -> ApiResponse:
        try:
            return await self._client.get(url, headers, self._timeout, largest=max_bytes)
        except ApiTooLarge:
            raise _too_large(max_bytes) from None
        except ApiError as error:
            outcome = Outcome.TIMEOUT if isinstance(error, ApiTimeout) else Outcome.FAILED
            raise Unavailable(Failed(outcome=outcome, reason=str(error))) from None

    async def _headers(self, accept: str) -> dict[str, str]:
        own, token = {"Accept": accept, "X-GitHub-Api-Version": _VERSION}, await self.token()
        return own | ({"Authorization": f"Bearer {token}"} if token else {})

    def _target(self, url: str, answer: ApiResponse) -> str | None:
        location = answer.headers.get("location")
        if answer.status not in REDIRECTS or not location:
            return None
        target, api = canonical(location, url), canonical(f"{self._api}/")
        leaves = target is None or api is None or not target.startswith(api) or _CLIMBS.search(target)
        return None if leaves else target

    async def _explain(self, answer: ApiResponse) -> Gone:
        """Return Gone for a missing resource; raise Unavailable for other errors."""
        status, words = answer.status, f"GitHub answered {status_words(answer.status)}"
        if status in (404, 410, 422):
            return Gone(status_code=status)
        if status in (403, 429):
            await self._check_limit(answer)
        if status == 429 or status >= 500:
            blocked = Outcome.BLOCKED_5XX if status >= 500 else Outcome.BLOCKED_4XX
            wait = parse_retry_after(answer.headers.get("retry-after"), self._clock())
            raise Unavailable(Failed(outcome=blocked, reason=words, status_code=status, retry_after=wait))
        reason = f"{words}: {_REASONS[status]}" if status in _REASONS else words
        raise Unavailable(Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=status))

    async def _check_limit(self, answer: ApiResponse) -> None:
        now, headers = self._clock(), answer.headers
        wait = parse_retry_after(headers.get("retry-after"), now)
        if wait is None and headers.get("x-ratelimit-remaining") == "0":
            wait = _until(headers.get("x-ratelimit-reset"), now)
        elif wait is None and b"rate limit" not in answer.data[:4096].lower():
            return
        wait = 60.0 if wait is None else wait  # GitHub's advice for limits without a time
        end = f"{now + timedelta(seconds=wait):%H:%M} UTC"
        way_out = "" if await self.token() else f"; {ANONYMOUS}" if self.is_anonymous else _RAISED_BY
        reason = f"GitHub's rate limit is used up until {end}{way_out}"
        wait, code = min(wait, MAX_WAIT_SECONDS), answer.status
        raise Unavailable(Failed(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=code, retry_after=wait))


def _until(reset: str | None, now: datetime) -> float | None:
    """Return the seconds until the Unix time `reset`, at most a day; None if it is invalid."""
    text = (reset or "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        return None
    return min(max(int(text) - now.timestamp(), 0.0), 86_400.0)


def _too_large(max_bytes: int) -> Unavailable:
    limit = f"{max_bytes // 1024 // 1024} MB" if max_bytes >= 1024 * 1024 else f"{max_bytes // 1024} KB"
    return Unavailable(Refused(reason=f"larger than {limit}"))
