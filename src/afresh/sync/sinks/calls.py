"""Every call to an external store: by the guarded client, logged, its trouble told once, no secret in it."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from afresh.errors import ApiError, SinkBusy, SinkDenied, SinkError, SinkFull, SinkGone, SinkRefused
from afresh.ports import Clock
from afresh.ports.calls import Answer, Asker
from afresh.sources.web.http_dates import parse_retry_after
from afresh.text.json_input import MAX_JSON_VALUES, BadJson, read_json, read_large_json
from afresh.text.redact import mask_secrets, one_line

log = logging.getLogger("afresh.sinks")

_LONGEST = 200
MAX_ANSWER_BYTES = 4 * 1024 * 1024  # a page of a listing names a hundred documents
_PASSES = frozenset({408, 409, 425, 429})
_FULL = ("storage limit", "storage quota", "insufficient_quota", "maximum storage")
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


class Absent(SinkGone):
    """What was asked for is not there: a document, or the whole store."""


def utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def variable(sink: str) -> str:
    """The variable that holds the key of a sink."""
    return f"AFRESH_SINKS__{sink.upper().replace('-', '_')}__API_KEY"


class Calls:
    """Asks the server of one sink; any answer but a good one is a SinkError that names what to check."""

    def __init__(
        self,
        asker: Asker,
        sink: str,
        base_url: str,
        *,
        secrets: Sequence[str],
        timeout_seconds: float = 60.0,
        clock: Clock = utc_now,
    ) -> None:
        self.section = f"sinks.{sink}"
        self.host = urlsplit(base_url).hostname or ""
        self._asker = asker
        self._secrets = secrets
        self._timeout = timeout_seconds
        self._clock = clock

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: bytes | None = None,
        *,
        adds: bool = False,
    ) -> Answer:
        """The answer to a request that went well; it is asked once, as the reconciler knows when to again.

        A request that `adds` a document may have done so before its answer failed. Then the error is a
        SinkBusy that names no time, by which the reconciler knows that it has to look.
        """
        began = time.monotonic()
        try:
            answer = await self._asker.ask(method, url, headers, data, self._timeout)
        except ApiError as error:
            self._log(method, url, "no answer", began)
            raise SinkBusy(
                f"{self._safe(str(error))}: see if the service is well and {self.section}.base_url is right"
            ) from None
        self._log(method, url, str(answer.status), began)
        if 200 <= answer.status < 300:
            return answer
        trouble = self.trouble(answer)
        raise self.doubt(trouble) if adds and answer.status >= 500 else trouble

    def doubt(self, trouble: SinkError) -> SinkBusy:
        """Trouble that came when a document was already handed over."""
        return SinkBusy(f"an upload was sent and nothing is known of it yet: {trouble}")

    def odd(self, error: Exception | str) -> SinkError:
        """An answer that was good by its status and not understood."""
        why = error if isinstance(error, str) else type(error).__name__
        return SinkBusy(
            f"{self.host} answered in a form that is not understood ({self._safe(why)}): "
            f"check {self.section}.base_url"
        )

    def trouble(self, answer: Answer) -> SinkError:
        """What an answer of no use means."""
        error = _error(answer.data)
        wait = parse_retry_after(answer.headers.get("retry-after"), self._clock()) or _delay(error)
        return self.refusal(answer.status, error, wait)

    def refusal(self, status: int, error: Mapping[str, Any], wait: float | None = None) -> SinkError:
        """What a status and the error beside it mean."""
        said = str(error.get("message") or "")
        words = f"{self.host} answered {_phrase(status)}"
        told = f'{words} ("{self._safe(said)[:_LONGEST]}")' if said else words
        full = f"{said} {error.get('code')}".lower()
        if status in (402, 507) or (status == 429 and any(each in full for each in _FULL)):
            return SinkFull(f"{told}: make room there, or ask for a larger quota", wait)
        if status == 404 or (status == 403 and "may not exist" in said):
            return Absent(f"{told}: check {self.section}.store")
        if status in _PASSES or status >= 500:
            return SinkBusy(f"{told}: it is tried again later", wait)
        if status in (401, 403) or "api key" in full:  # some services repeat the key when they refuse it
            return SinkDenied(f"{words}: check {self.section}.api_key and what it may use")
        if 300 <= status < 400:
            return SinkRefused(f"{words}: set {self.section}.base_url to the address it moved to")
        return SinkRefused(f"{told}: this request will not be taken as it is")

    def _safe(self, text: str) -> str:
        return one_line(mask_secrets(text, self._secrets))

    def _log(self, method: str, url: str, outcome: str, began: float) -> None:
        took = f"{time.monotonic() - began:.3f}"
        data = {
            "sink": self.section.removeprefix("sinks."),
            "method": method,
            "path": self._safe(urlsplit(url).path),
            "outcome": outcome,
            "seconds": took,
        }
        log.debug("sink asked", extra={"data": data})


async def as_object(data: bytes) -> dict[str, Any]:
    """The JSON object of a body; empty where it holds none."""
    bounds = {"max_bytes": MAX_ANSWER_BYTES, "max_values": MAX_JSON_VALUES}
    try:
        found = await asyncio.to_thread(read_large_json, data, **bounds)
    except BadJson:
        return {}
    return found if isinstance(found, dict) else {}


def _error(data: bytes) -> Mapping[str, Any]:
    """What an answer says of its trouble; nothing where it is longer than words are."""
    try:
        found = read_json(data)
    except BadJson:
        return {}
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _delay(error: Mapping[str, Any]) -> float | None:
    """The seconds that Google's RetryInfo asks for."""
    details = error.get("details")
    for each in details if isinstance(details, list) else ():
        delay = each.get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and (found := _DELAY.fullmatch(delay)):
            return float(found[1])
    return None


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
