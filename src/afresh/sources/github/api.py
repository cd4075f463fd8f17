"""GitHub's REST API and its raw files, as far as afresh asks them: every answer is a value, and checked."""

import asyncio
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from afresh.errors import ApiError, ApiLate, ApiTooLarge
from afresh.model.fetch import Failed, Gone, NotModified, Outcome, Refused
from afresh.ports import Clock
from afresh.ports.calls import Answer
from afresh.sources.git.address import ANONYMOUS
from afresh.sources.github.address import blob_id, quoted
from afresh.sources.github.token import Token
from afresh.sources.github.tree import Facts, File, Tree, WrongAnswer, read_facts, read_tree
from afresh.sources.web.answers import REDIRECTS, status_words
from afresh.sources.web.api_client import ApiClient, as_json
from afresh.sources.web.http_dates import LONGEST_WAIT_SECONDS, parse_retry_after
from afresh.text.json_input import MAX_JSON_VALUES
from afresh.urls.canonical import canonical

_JSON, _BYTES = "application/vnd.github+json", "application/vnd.github.raw+json"
_VERSION = "2022-11-28"
_MAX_FACTS_BYTES = 1024 * 1024
_MAX_TREE_BYTES = 32 * 1024 * 1024
_MAX_TREE_VALUES = 1_500_000  # GitHub lists at most 100,000 files, with eight values each
_MOST_HOPS = 3
_CLIMBS = re.compile(
    r"(?:%2f|%5c|/)\.{1,2}(?:%2f|%5c|[/?]|$)", re.IGNORECASE
)  # for servers that decode twice
_RAISED_BY = "; a token raises it (github.token, GITHUB_TOKEN or `gh auth login`)"

Trouble = Gone | Refused | Failed


class Listing(NamedTuple):
    """A tree, and what lets the next question for it be conditional."""

    tree: Tree
    etag: str | None


class GithubApi:
    """Asks one GitHub server; the token goes to its API and to nothing else."""

    def __init__(
        self,
        client: ApiClient,
        *,
        api_url: str,
        raw_url: str,
        token: Token,
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
        """Whether no token is shown, whatever there is."""
        return self._token.is_anonymous

    async def has_token(self) -> bool:
        """Whether it asks as somebody."""
        return await self._token.get() is not None

    async def facts(self, name: str) -> Facts | Trouble:
        """What is known of a repository, wherever it moved to."""
        answer = await self._ask(f"{self._api}/repos/{name}", _MAX_FACTS_BYTES)
        if not isinstance(answer, Answer):
            return _asked(answer)
        try:
            return read_facts(await as_json(answer.data, _MAX_FACTS_BYTES, MAX_JSON_VALUES))
        except WrongAnswer as wrong:
            return _odd(wrong)

    async def tree(
        self, name: str, ref: str, *, etag: str | None = None, below: str = "", whole: bool = True
    ) -> Listing | NotModified | Trouble:
        """The files of a commit or a folder: all that are below it, or only those that stand in it."""
        url = f"{self._api}/repos/{name}/git/trees/{quote(ref, safe='')}" + ("?recursive=1" if whole else "")
        answer = await self._ask(url, _MAX_TREE_BYTES, etag)
        if not isinstance(answer, Answer):
            return answer
        try:
            found = await as_json(answer.data, _MAX_TREE_BYTES, _MAX_TREE_VALUES)
            tree = await asyncio.to_thread(read_tree, found, below)
            return Listing(tree, _etag(answer.headers.get("etag")))
        except WrongAnswer as wrong:
            return _odd(wrong)

    async def raw_file(self, name: str, revision: str, file: File) -> bytes | Trouble:
        """A file as everybody may read it, without the token."""
        url = f"{self._raw}/{name}/{quoted(revision)}/{quoted(file.path)}"
        return await self._content(url, {"Accept": "*/*"}, file)

    async def blob(self, name: str, file: File) -> bytes | Trouble:
        """A file by the id of its content."""
        url = f"{self._api}/repos/{name}/git/blobs/{file.id}"
        return await self._content(url, await self._headers(_BYTES), file)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _content(self, url: str, headers: Mapping[str, str], file: File) -> bytes | Trouble:
        if (file.size or 0) > self._largest:
            return _too_large(self._largest)
        answer = await self._get(url, headers, self._largest)
        if not isinstance(answer, Answer):
            return answer
        if answer.status != 200:
            return await self._trouble(answer)
        if blob_id(answer.data, file.id) != file.id:
            return Gone(status_code=None)  # another version of it: what was asked for is not there
        return answer.data

    async def _ask(self, url: str, largest: int, etag: str | None = None) -> Answer | NotModified | Trouble:
        """An answer of the API, followed to where a renamed repository went, within the API."""
        headers = await self._headers(_JSON) | ({"If-None-Match": etag} if etag else {})
        for _ in range(_MOST_HOPS + 1):
            answer = await self._get(url, headers, largest)
            if not isinstance(answer, Answer):
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

    async def _get(self, url: str, headers: Mapping[str, str], largest: int) -> Answer | Refused | Failed:
        try:
            return await self._client.get(url, headers, self._timeout, largest=largest)
        except ApiTooLarge:
            return _too_large(largest)
        except ApiLate as late:
            return Failed(outcome=Outcome.TIMEOUT, reason=str(late))
        except ApiError as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error))

    async def _headers(self, accept: str) -> dict[str, str]:
        own, token = {"Accept": accept, "X-GitHub-Api-Version": _VERSION}, await self._token.get()
        return own | ({"Authorization": f"Bearer {token}"} if token else {})

    def _target(self, url: str, answer: Answer) -> str | None:
        """Where a redirect of the API leads, all `..` taken; None for what is none, or leads out of it."""
        location = answer.headers.get("location")
        if answer.status not in REDIRECTS or not location:
            return None
        target, api = canonical(location, url), canonical(f"{self._api}/")
        leaves = target is None or api is None or not target.startswith(api) or _CLIMBS.search(target)
        return None if leaves else target

    async def _trouble(self, answer: Answer) -> Trouble:
        """What an answer without content means."""
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

    async def _limit(self, answer: Answer) -> Failed | None:
        """A rate limit, told with its end; None where an answer speaks of none."""
        now, headers = self._clock(), answer.headers
        wait = parse_retry_after(headers.get("retry-after"), now)
        if wait is None and headers.get("x-ratelimit-remaining") == "0":
            wait = _until(headers.get("x-ratelimit-reset"), now)
        elif wait is None and b"rate limit" not in answer.data[:4096].lower():
            return None
        wait = 60.0 if wait is None else wait  # as GitHub asks where a limit does not say
        end = f"{now + timedelta(seconds=wait):%H:%M} UTC"
        way_out = "" if await self.has_token() else f"; {ANONYMOUS}" if self.is_anonymous else _RAISED_BY
        reason = f"GitHub's rate limit is used up until {end}{way_out}"
        return Failed(
            outcome=Outcome.BLOCKED_4XX,
            reason=reason,
            status_code=answer.status,
            retry_after=min(wait, LONGEST_WAIT_SECONDS),
        )


def _until(reset: str | None, now: datetime) -> float | None:
    """Seconds until a moment in Unix time; within a day, as a limit of GitHub's ends within an hour."""
    text = (reset or "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        return None
    return min(max(int(text) - now.timestamp(), 0.0), 86_400.0)


def _etag(value: str | None) -> str | None:
    return value if value and len(value) <= 1024 and value.isascii() and value.isprintable() else None


def _refused(reason: str, status: int) -> Refused:
    return Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=status)


def _too_large(largest: int) -> Refused:
    most = f"{largest // 1024 // 1024} MB" if largest >= 1024 * 1024 else f"{largest // 1024} KB"
    return Refused(outcome=Outcome.FAILED, reason=f"larger than {most}")


def _odd(wrong: WrongAnswer) -> Failed:
    return Failed(outcome=Outcome.FAILED, reason=f"the answer of GitHub's API cannot be used: {wrong}")


def _asked(answer: NotModified | Trouble) -> Trouble:
    """The answer to a question without conditions."""
    if not isinstance(answer, NotModified):
        return answer
    return Failed(outcome=Outcome.FAILED, reason="304 Not Modified, though nothing was asked conditionally")
