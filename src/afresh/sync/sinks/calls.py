"""Send requests to the APIs of external stores, explain errors, and tag the uploaded documents."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from afresh.errors import ApiError, SinkBusy, SinkError, SinkFull, SinkMissing, SinkRefused, SinkUnauthorized
from afresh.ports import ApiResponse, HttpApi, OwnerTag, Upload
from afresh.sources.web.answers import status_words
from afresh.sources.web.http_dates import parse_retry_after
from afresh.sync.copy import display_name
from afresh.text.json_input import MAX_JSON_VALUES, BadJson, read_json, read_large_json
from afresh.text.redact import mask_secrets, one_line

log = logging.getLogger("afresh.sinks")

_MAX_MESSAGE_CHARS = 200
TIMEOUT_SECONDS = 60.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024  # more than a listing page with a hundred documents needs
_PASSES = frozenset({408, 409, 425, 429})
_FULL = ("storage limit", "storage quota", "insufficient_quota", "maximum storage")
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_STORE, _SOURCE, _PAGE, _HASH = "afresh_store", "afresh_source", "afresh_page", "afresh_hash"
_URL = "url"
MAX_VALUE_CHARS = 512  # limit for a metadata value


class RemoteMissing(SinkMissing):
    """The requested document or the whole external store does not exist."""


def variable(sink: str) -> str:
    return f"AFRESH_SINKS__{sink.upper().replace('-', '_')}__API_KEY"


class SinkCalls:
    """Sends requests to the server of a sink; its errors say which setting to check."""

    def __init__(self, asker: HttpApi, sink: str, base_url: str, *, secrets: Sequence[str]) -> None:
        self.section = f"sinks.{sink}"
        self.host = urlsplit(base_url).hostname or ""
        self._asker = asker
        self._secrets = secrets

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None = None, *, adds: bool = False
    ) -> ApiResponse:
        """Send a request once; retries are up to the caller.

        If a request that `adds` a document fails on the server, the document may exist. Then raise SinkBusy without a
        delay, so that the caller looks for it.
        """
        began = time.monotonic()
        try:
            answer = await self._asker.ask(method, url, headers, data, TIMEOUT_SECONDS)
        except ApiError as error:
            self._log(method, url, "no answer", began)
            raise SinkBusy(
                f"{self._safe(str(error))}: check that the service is available and {self.section}.base_url is correct"
            ) from None
        self._log(method, url, str(answer.status), began)
        if 200 <= answer.status < 300:
            return answer
        failure = self.failure(answer)
        raise self.doubt(failure) if adds and answer.status >= 500 else failure

    def one_of(self, stores: Sequence[str], name: str) -> bool:
        """Return whether `stores`, the ids of stores called `name`, has one; raise SinkRefused if it has several."""
        if len(stores) > 1:
            which = ", ".join(sorted(stores))
            raise SinkRefused(f'{len(stores)} stores are called "{name}": set {self.section}.store to one of {which}')
        return bool(stores)

    def doubt(self, error: SinkError) -> SinkBusy:
        """Return an error that says that an upload may have succeeded."""
        return SinkBusy(f"an upload was sent, but its result is unknown: {error}")

    def odd(self, error: Exception | str) -> SinkError:
        why = error if isinstance(error, str) else type(error).__name__
        return SinkBusy(f"{self.host} sent an unexpected answer ({self._safe(why)}): check {self.section}.base_url")

    def failure(self, answer: ApiResponse) -> SinkError:
        error = _error(answer.data)
        wait = parse_retry_after(answer.headers.get("retry-after"), datetime.now(UTC)) or _delay(error)
        return self.refusal(answer.status, error, wait)

    def refusal(self, status: int, error: Mapping[str, Any], wait: float | None = None) -> SinkError:
        message = str(error.get("message") or "")
        words = f"{self.host} answered {status_words(status)}"
        text = f'{words} ("{self._safe(message)[:_MAX_MESSAGE_CHARS]}")' if message else words
        full = f"{message} {error.get('code')}".lower()
        if status in (402, 507) or (status == 429 and any(each in full for each in _FULL)):
            return SinkFull(f"{text}: delete documents there, or ask for a larger quota", wait)
        if status == 404 or (status == 403 and "may not exist" in message):
            return RemoteMissing(f"{text}: check {self.section}.store")
        if status in _PASSES or status >= 500:
            return SinkBusy(f"{text}: the request is repeated later", wait)
        if status in (401, 403) or "api key" in full:  # some services repeat the key in their message
            return SinkUnauthorized(f"{words}: check {self.section}.api_key and its permissions")
        if 300 <= status < 400:
            return SinkRefused(f"{words}: set {self.section}.base_url to the new URL of the API")
        return SinkRefused(f"{text}: the service does not accept this document or request")

    def _safe(self, text: str) -> str:
        return one_line(mask_secrets(text, self._secrets))

    def _log(self, method: str, url: str, outcome: str, began: float) -> None:
        data = {"sink": self.section.removeprefix("sinks."), "method": method, "outcome": outcome}
        data |= {"path": self._safe(urlsplit(url).path), "seconds": f"{time.monotonic() - began:.3f}"}
        log.debug("sink asked", extra={"data": data})


async def as_object(data: bytes) -> dict[str, Any]:
    bounds = {"max_bytes": MAX_ANSWER_BYTES, "max_values": MAX_JSON_VALUES}
    try:
        found = await asyncio.to_thread(read_large_json, data, **bounds)
    except BadJson:
        return {}
    return found if isinstance(found, dict) else {}


def _error(data: bytes) -> Mapping[str, Any]:
    try:
        found = read_json(data)
    except BadJson:
        return {}
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _delay(error: Mapping[str, Any]) -> float | None:
    """Return the delay in seconds that Google's RetryInfo asks for, or None."""
    details = error.get("details")
    for each in details if isinstance(details, list) else ():
        delay = each.get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and (found := _DELAY.fullmatch(delay)):
            return float(found[1])
    return None


def metadata(upload: Upload) -> dict[str, str]:
    """Return the metadata of a document: the tag of afresh, and fields for filters in searches."""
    mark = upload.mark
    fields = {_STORE: mark.store, _SOURCE: mark.source, _PAGE: str(mark.page), _HASH: mark.hash}
    if len(upload.url) <= MAX_VALUE_CHARS:  # a truncated URL would be misleading
        fields[_URL] = upload.url
    if title := upload.title.strip():
        fields["title"] = title[:MAX_VALUE_CHARS]
    if upload.language:
        fields["language"] = upload.language
    return {key: sendable(value) for key, value in fields.items()}


def mark_in(metadata: Mapping[str, object]) -> OwnerTag | None:
    match [metadata.get(key) for key in (_STORE, _SOURCE, _PAGE, _HASH)]:
        case [str(store), str(source), str(page), str(digest)] if page.isascii() and page.isdigit():
            return OwnerTag(store=store, source=source, page=int(page), hash=digest)
    return None


def content(upload: Upload) -> bytes:
    """Return the content to upload: for an empty page a heading, because sinks refuse empty files."""
    text = upload.markdown if upload.markdown.strip() else f"# {upload.title.strip() or upload.url}\n"
    return text.encode("utf-8", "replace")


def document_name(upload: Upload) -> str:
    return display_name(sendable(upload.name), sendable(upload.url))


def url_in(metadata: Mapping[str, object]) -> str | None:
    url = metadata.get(_URL)
    return url if isinstance(url, str) and url else None


def sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
