"""Call one API URL with retries, and report errors in terms of the settings, without secrets."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from urllib.parse import urlsplit

from afresh.backoff import wait_to_retry
from afresh.errors import AfreshError, ApiError, ApiTimeout
from afresh.ports import Clock, JsonApi, JsonReply
from afresh.sources.web.answers import status_words
from afresh.sources.web.http_dates import parse_retry_after
from afresh.text.redact import mask_secrets, one_line

_MAX_MESSAGE_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiService:
    """What an API is used for, and how its errors are reported."""

    section: str  # of the settings
    gives: str  # what a good answer contains
    error: type[AfreshError]  # this request failed
    down: type[AfreshError]  # any other request would fail, too
    less: str  # advice on how to send fewer requests
    odd: str  # settings to check if the API rejects a request
    strikes: int = 1  # consecutive timeouts and server errors after which it counts as down

    def fix(self, status: int) -> str | None:
        """Return the advice for a status that affects all requests; None for other statuses."""
        fixes = {
            401: f"check {self.section}.api_key",
            402: f"check the account that {self.section}.api_key belongs to",
            403: f"check {self.section}.api_key and what it may use",
            404: f"check {self.section}.model and {self.section}.base_url",
            405: f"check {self.section}.base_url",
            429: f"the next run tries again; {self.less}",
        }
        return fixes.get(status)


TRIES = 4
FIRST_WAIT = 1.0  # seconds; doubles with every try
LONGEST_WAIT = 60.0
_PASSES = frozenset({408, 409, 425, 429})
Sleep = Callable[[float], Awaitable[None]]


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Endpoint:
    """The URL of a service; missing answers and lasting errors are raised with advice."""

    service: ApiService
    caller: JsonApi
    url: str
    headers: Mapping[str, str]
    timeout_seconds: float = 60.0
    secrets: Sequence[str] = ()
    sleep: Sleep = asyncio.sleep
    clock: Clock = utc_now
    _strikes: int = field(default=0, init=False)

    @property
    def host(self) -> str:
        """Return the host of the URL."""
        return urlsplit(self.url).hostname or ""

    async def ask(self, body: object) -> JsonReply:
        """Return the answer to a request, with retries for temporary errors."""
        for failures in count(1):
            asked, reply = None, None
            try:
                reply = await self.caller.post_json(self.url, self.headers, body, self.timeout_seconds)
            except ApiTimeout as late:
                raise self._strike(
                    f"{late}: see if the service is well, or raise {self.service.section}.timeout_seconds"
                ) from None
            except ApiError as error:
                trouble = self._unreachable(error)
            else:
                if reply.status not in _PASSES and reply.status < 500:
                    self._strikes = 0
                    return reply
                trouble = self.refusal(reply)
                asked = parse_retry_after(reply.headers.get("retry-after"), self.clock()) or None
            wait = wait_to_retry(failures, asked, tries=TRIES, first=FIRST_WAIT, longest=LONGEST_WAIT)
            if wait is None and reply is not None and reply.status >= 500:
                raise self._strike(str(trouble))
            if wait is None:
                raise trouble
            await self.sleep(wait)
        raise AssertionError("a loop that returns or raises")

    async def ask_once(self, body: object, longest: float) -> JsonReply:
        """Return the answer to a request that a user waits for: one try, with a short timeout."""
        try:
            return await self.caller.post_json(
                self.url, self.headers, body, min(self.timeout_seconds, longest)
            )
        except ApiError as error:
            raise self._unreachable(error) from None

    def refusal(self, reply: JsonReply) -> AfreshError:
        """Return the error for an unusable answer: the service is down if other requests would fail, too."""
        service, status, said = self.service, reply.status, self.told(reply)
        if status == 200:
            return service.error(f"{self.host} answered without {service.gives}{said}")
        words = f"{self.host} answered {status_words(status)}"
        if 300 <= status < 400:
            return service.down(f"{words}: set {service.section}.base_url to the address it moved to")
        fix = service.fix(status)
        if status in (401, 403):  # some services repeat the key in their answer
            return service.down(f"{words}: {fix}")
        if fix or status >= 500:
            return service.down(f"{words}{said}: {fix or 'the next run tries again'}")
        return service.error(f"{words}{said}: check {service.odd}")

    def told(self, reply: JsonReply) -> str:
        """Return the error message of an answer as ` ("model not found")`, or ""."""
        error = reply.json.get("error") if isinstance(reply.json, dict) else None
        message = error.get("message") if isinstance(error, dict) else error
        if not isinstance(message, str) or not message.strip():
            return ""
        shown = one_line(mask_secrets(message.strip(), self.secrets))
        return f' ("{shown[:_MAX_MESSAGE_CHARS]}")'

    def _unreachable(self, error: ApiError) -> AfreshError:
        return self.service.down(
            f"{error}: see if the service runs and {self.service.section}.base_url is right"
        )

    def _strike(self, words: str) -> AfreshError:
        """Return the error of one request, or of the service if there were too many in a row."""
        self._strikes += 1
        lasting = self._strikes >= self.service.strikes
        return self.service.down(words) if lasting else self.service.error(words)
