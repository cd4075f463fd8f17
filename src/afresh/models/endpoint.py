"""One address of an API: asked with patience, its trouble told in the words of the settings."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from afresh.errors import AfreshError, ApiError, ApiLate
from afresh.models.refusals import Service, refusal
from afresh.ports import Caller, Clock, Reply
from afresh.sources.web.http_dates import parse_retry_after

TRIES = 4
FIRST_WAIT = 1.0  # seconds; it doubles with every try
LONGEST_WAIT = 60.0
_PASSES = frozenset({408, 409, 425, 429})
Sleep = Callable[[float], Awaitable[None]]


def utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


class Endpoint:
    """Where a service is asked; no answer and trouble that lasts are errors that name the fix."""

    def __init__(
        self,
        service: Service,
        caller: Caller,
        url: str,
        headers: Mapping[str, str],
        *,
        timeout_seconds: float,
        secrets: Sequence[str] = (),
        sleep: Sleep = asyncio.sleep,
        clock: Clock = utc_now,
    ) -> None:
        self.host = urlsplit(url).hostname or ""
        self._service = service
        self._caller = caller
        self._url = url
        self._headers = headers
        self._timeout = timeout_seconds
        self._secrets = secrets
        self._sleep = sleep
        self._clock = clock
        self._strikes = 0

    async def ask(self, body: object) -> Reply:
        """The answer to a request, asked again while the trouble is of a kind that passes."""
        for left in reversed(range(TRIES)):
            wait = FIRST_WAIT * 2 ** (TRIES - 1 - left)
            try:
                reply = await self._caller.post_json(self._url, self._headers, body, self._timeout)
            except ApiLate as late:
                raise self._strike(
                    f"{late}: see if the service is well, or raise {self._service.section}.timeout_seconds"
                ) from None
            except ApiError as error:
                trouble = self._unreachable(error)
            else:
                if reply.status not in _PASSES and reply.status < 500:
                    self._strikes = 0
                    return reply
                trouble = self.refusal(reply)
                wait = self._asked_wait(reply) or wait
                if reply.status >= 500 and (not left or wait > LONGEST_WAIT):
                    trouble = self._strike(str(trouble))
            if not left or wait > LONGEST_WAIT:
                raise trouble
            await self._sleep(wait)
        raise AssertionError("a loop that returns or raises")

    async def ask_once(self, body: object, longest: float) -> Reply:
        """The answer to a request that somebody waits for: one try, and not for long."""
        try:
            return await self._caller.post_json(self._url, self._headers, body, min(self._timeout, longest))
        except ApiError as error:
            raise self._unreachable(error) from None

    def refusal(self, reply: Reply) -> AfreshError:
        """What an answer of no use means."""
        return refusal(self._service, reply, self.host, self._secrets)

    def _unreachable(self, error: ApiError) -> AfreshError:
        return self._service.down(
            f"{error}: see if the service runs and {self._service.section}.base_url is right"
        )

    def _strike(self, words: str) -> AfreshError:
        """Trouble that may be one request's own, until it comes too often in a row."""
        self._strikes += 1
        lasting = self._strikes >= self._service.strikes
        return self._service.down(words) if lasting else self._service.error(words)

    def _asked_wait(self, reply: Reply) -> float | None:
        return parse_retry_after(reply.headers.get("retry-after"), self._clock())
