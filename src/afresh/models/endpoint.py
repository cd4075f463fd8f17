"""Call an API with retries; report errors without secrets and with the settings to check."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import count
from urllib.parse import urlsplit

from afresh.backoff import wait_to_retry
from afresh.dataclass import dataclass
from afresh.errors import AfreshError, ApiError, ApiTimeout
from afresh.ports import Clock, JsonApi, JsonReply
from afresh.sources.web.answers import status_words
from afresh.sources.web.http_dates import parse_retry_after
from afresh.text.redact import mask_secrets, one_line

_MAX_MESSAGE_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiService:
    section: str = "ai"  # of the settings
    gives: str  # what a good answer contains
    error: type[AfreshError]  # this request failed
    down: type[AfreshError]  # any other request would fail, too
    advice: str = "ai.budget_per_run limits the calls"  # how to send fewer requests
    suspects: str  # settings to check if the API rejects a request
    max_failures: int = 3  # timeouts and server errors in a row after which it counts as down


TRIES = 4
FIRST_WAIT_SECONDS = 1.0  # doubles with every try
MAX_WAIT_SECONDS = 60.0
_TEMPORARY = frozenset({408, 409, 425, 429})
_FIXES = {  # for statuses that affect all requests
    401: "check {section}.api_key",
    402: "check the account that {section}.api_key belongs to",
    403: "check {section}.api_key and its permissions",
    404: "check {section}.model and {section}.base_url",
    405: "check {section}.base_url",
    429: "the next run tries again; {advice}",
}
Sleep = Callable[[float], Awaitable[None]]
utc_now: Clock = partial(datetime.now, UTC)


@dataclass(slots=True)
class Endpoint:
    """One URL of an API; its errors say which setting to check."""

    service: ApiService
    caller: JsonApi
    url: str
    headers: Mapping[str, str]
    timeout_seconds: float = 60.0
    api_key: str | None = None  # masked in messages
    sleep: Sleep = asyncio.sleep
    clock: Clock = utc_now
    _failures: int = 0  # in a row

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    async def ask(self, body: object) -> JsonReply:
        """Send a request, with retries after temporary errors."""
        for failures in count(1):
            asked, status = None, 0
            try:
                reply = await self.caller.post_json(self.url, self.headers, body, self.timeout_seconds)
            except ApiTimeout as late:
                advice = f"check that the service works, or raise {self.service.section}.timeout_seconds"
                raise self._count_failure(f"{late}: {advice}") from None
            except ApiError as unreachable:
                error = self._unreachable(unreachable)
            else:
                status = reply.status
                if status not in _TEMPORARY and status < 500:
                    self._failures = 0
                    return reply
                error = self.refusal(reply)
                asked = parse_retry_after(reply.headers.get("retry-after"), self.clock()) or None
            wait = wait_to_retry(failures, asked, tries=TRIES, first=FIRST_WAIT_SECONDS, max_seconds=MAX_WAIT_SECONDS)
            if wait is None:
                raise self._count_failure(str(error)) if status >= 500 else error
            await self.sleep(wait)
        raise AssertionError("unreachable: the loop returns or raises")

    async def ask_once(self, body: object, max_seconds: float) -> JsonReply:
        """Send a request that a user waits for, without retries."""
        try:
            return await self.caller.post_json(self.url, self.headers, body, min(self.timeout_seconds, max_seconds))
        except ApiError as error:
            raise self._unreachable(error) from None

    def refusal(self, reply: JsonReply) -> AfreshError:
        """Return the error for an unusable answer, of the type `service.down` if other requests would fail, too."""
        service, status, message = self.service, reply.status, self.error_message(reply)
        if status == 200:
            return service.error(f"{self.host} answered without {service.gives}{message}")
        answer = f"{self.host} answered {status_words(status)}"
        if 300 <= status < 400:
            return service.down(f"{answer}: set {service.section}.base_url to the URL it moved to")
        fix = _FIXES.get(status, "").format(section=service.section, advice=service.advice)
        if status in (401, 403):  # some services repeat the key in their answer
            return service.down(f"{answer}: {fix}")
        if fix or status >= 500:
            return service.down(f"{answer}{message}: {fix or 'the next run tries again'}")
        return service.error(f"{answer}{message}: check {service.suspects}")

    def error_message(self, reply: JsonReply) -> str:
        """Return the error message in an answer as ` ("model not found")`, or ""."""
        error = reply.json.get("error") if isinstance(reply.json, dict) else None
        message = error.get("message") if isinstance(error, dict) else error
        if not isinstance(message, str) or not message.strip():
            return ""
        return f' ("{one_line(mask_secrets(message.strip(), filter(None, [self.api_key])))[:_MAX_MESSAGE_CHARS]}")'

    def _unreachable(self, error: ApiError) -> AfreshError:
        return self.service.down(f"{error}: check that the service runs and {self.service.section}.base_url is correct")

    def _count_failure(self, message: str) -> AfreshError:
        """Return the error for a failed request, of the type `service.down` after too many failures in a row."""
        self._failures += 1
        is_down = self._failures >= self.service.max_failures
        return self.service.down(message) if is_down else self.service.error(message)
