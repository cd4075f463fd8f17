"""Send messages, with retries for a day: signed to webhooks, or as plain text through apprise."""

import asyncio
import json
import logging
import os
import re
import socket
import sys
import threading
import warnings
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from difflib import get_close_matches
from itertools import groupby
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from afresh.aio import gather_all
from afresh.crawl.report import report_of
from afresh.dataclass import dataclass
from afresh.errors import ApiError, ApiTimeout
from afresh.notify import outbox
from afresh.notify.outbox import MessageState, MessageTarget, OutboxMessage
from afresh.notify.signatures import sign
from afresh.ops.processes import wait_for_exit
from afresh.ports import Clock, HttpApi
from afresh.sources.web.client import not_allowed
from afresh.sources.web.guard import AddressPolicy
from afresh.store.store import Store
from afresh.text.json_input import read_json
from afresh.text.quantities import count
from afresh.text.redact import NOT_ALLOWED, mask_secrets, one_line

log = logging.getLogger(__name__)

MessageBody = Mapping[str, Any]
Outcome = tuple[str | None, bool]  # why sending failed (None: it did not), and whether retries are useless

TIMEOUT_SECONDS = 15.0  # time limit per message
RESOLVE_SECONDS = 5.0
APPRISE_SECONDS = 30.0  # time limit per message, including the start of the process
CHILD = "afresh.notify.apprise_child"
# Variables that the child process gets: only those it needs to start, without proxies, credentials and settings.
_PASSED = (
    *("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT"),
    *("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
LEASE = timedelta(seconds=120)  # time after which another sender may send a message
MAX_LINES = 20  # pages listed in a plain-text message
_MAX_TEXT_CHARS = 300  # length of a URL or a reason in a plain-text message
_MARKS = re.compile(r"[<>`*|@]")
_CALLS = re.compile(r"[<>`*|]|@(?=everyone|here|channel|all)")
_COUNTED = ("new", "changed", "deleted", "moved", "missing", "failed", "refused")


def plain_text(body: Mapping[str, Any]) -> tuple[str, str]:
    label = _safe(body["source"] + (f"@{body['version']}" if body["version"] else ""))
    run = f"Run {body['run']} of {label}"
    if body["event"] == outbox.PAGES:
        return f"afresh: pages of {label}", _of_pages(run, body["pages"], more=body["more"])
    counts = body["counts"]
    if body["event"] == outbox.BRAKED:
        held = count(counts["held"], "page")
        waits = f"{run} would delete {held} and needs confirmation. To confirm, run: afresh confirm {body['run']}"
        return f"afresh: {label} needs confirmation", waits
    parts = ", ".join(f"{counts[name]} {name}" for name in _COUNTED if counts[name]) or "none changed"
    why = f"\nWhy: {_safe(body['error'])}" if body["error"] else ""
    ended = f"{run} ended: {body['state']}.\n{counts['checked']} checked, {parts}.{why}"
    return f"afresh: {label} {body['state']}", ended


def _of_pages(run: str, pages: Sequence[Mapping[str, Any]], *, more: bool) -> str:
    lines = [f"{run}:"]
    for page in pages[:MAX_LINES]:
        moved = f" -> {_address(page['moved_to'])}" if page["moved_to"] else ""
        lines.append(f"{page['event'].removeprefix('page.')} {_address(page['url'])}{moved}")
    left = len(pages) - MAX_LINES
    if left > 0:
        lines.append(f"and {'more than ' if more else ''}{left} more")
    return "\n".join(lines)


def _address(url: str) -> str:
    """Return a URL with `@` escaped, because some services notify users for `@everyone` in a path."""
    return mask_secrets(_MARKS.sub(lambda found: quote(found[0]), one_line(url)))[:_MAX_TEXT_CHARS]


def _safe(text: str) -> str:
    return mask_secrets(_CALLS.sub(" ", one_line(text)))[:_MAX_TEXT_CHARS]


class Transport(Protocol):
    @property
    def target(self) -> MessageTarget: ...

    async def send(self, message: OutboxMessage, body: MessageBody, now: datetime) -> Outcome:
        """Try once to send a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTransport:
    target: MessageTarget
    url: str
    secret: str
    client: HttpApi

    async def send(self, message: OutboxMessage, body: MessageBody, now: datetime) -> Outcome:
        at, data = int(now.timestamp()), json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message.message_id,
            "webhook-timestamp": str(at),
            "webhook-signature": sign(self.secret, message.message_id, at, data),
        }
        try:
            answer = await self.client.ask("POST", self.url, headers, data, TIMEOUT_SECONDS)
        except ApiError as error:
            return _refused(error)
        if 200 <= answer.status < 300:
            return None, True
        if 300 <= answer.status < 400:
            return f"the receiver answered {answer.status}: redirects are not followed, so set the final URL", False
        return f"the receiver answered {answer.status}", answer.status == 410


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseTransport:
    target: MessageTarget
    url: str
    allow: Sequence[str]  # hosts and networks that are not public but allowed

    async def send(self, message: OutboxMessage, body: MessageBody, now: datetime) -> Outcome:
        try:
            await notify(self.url, *plain_text(body), self.allow)
        except ApiError as error:
            return _refused(error)
        return None, True


async def notify(url: str, title: str, text: str, allow: Sequence[str]) -> None:
    """Send a message with apprise in a process that connects only to public hosts and those in `allow`."""
    order = {"url": url, "title": title, "text": text, "allow": list(allow)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", CHILD),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={name: os.environ[name] for name in _PASSED if name in os.environ} | {"NETRC": os.devnull},
    )
    try:
        async with asyncio.timeout(APPRISE_SECONDS) as deadline:
            output, _ = await process.communicate(json.dumps(order).encode())
    except TimeoutError:
        if not deadline.expired():
            raise
        raise ApiTimeout(f"the service did not answer within {APPRISE_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await wait_for_exit(process)
    try:
        result = read_json(output)
        refused, reason = result["refused"], result["reason"]
    except (ValueError, KeyError, TypeError):
        raise ApiError("apprise ended without a result") from None
    if refused is not None:
        raise ApiError(not_allowed(*refused))
    if reason is not None:
        raise ApiError(str(reason))


def _refused(error: ApiError) -> Outcome:
    return one_line(mask_secrets(str(error)))[:_MAX_TEXT_CHARS], NOT_ALLOWED in str(error)


@dataclass(slots=True, kw_only=True)
class MessageSender:
    store: Store
    transports: Mapping[str, Transport]
    clock: Clock

    async def deliver(self) -> int:
        """Send all due messages, with targets in parallel; return how many were sent."""
        due = sorted(await self.store.messages.due(self.clock()), key=lambda message: message.target)
        rounds = [list(group) for _, group in groupby(due, key=lambda message: message.target)]
        return sum(await gather_all(map(self._round, rounds)))

    async def _round(self, messages: list[OutboxMessage]) -> int:
        """Send the messages of one target in order until one fails; return how many were sent."""
        sent = 0
        for message in messages:
            if not await self.store.messages.reserve(message, self.clock() + LEASE):
                continue
            transport = self.transports.get(message.target)
            body = await self._body_of(message, transport.target) if transport is not None else None
            if transport is None or body is None:
                setting = message.target if "." in message.target else f"webhooks.{message.target}"
                gone = f"{setting} is no longer set" if transport is None else "the run of the message was deleted"
                await self._settle(message, gone, final=True)
                continue
            try:
                reason, final = await transport.send(message, body, self.clock())
            except asyncio.CancelledError:  # release the lease, so that the next sender need not wait for its end
                waiting, now = MessageState.WAITING, self.clock()
                await self.store.messages.record_attempt(message, waiting, now, again=now, error=None)
                raise
            await self._settle(message, reason, final=final)
            if reason is not None:
                break
            sent += 1
        return sent

    async def _settle(self, message: OutboxMessage, reason: str | None, *, final: bool) -> None:
        now = self.clock()
        again = None if final else outbox.next_try(message, now)
        state = MessageState.SENT if reason is None else MessageState.WAITING if again else MessageState.DEAD
        if state is MessageState.DEAD:
            body = {"target": message.target, "event": message.event, "why": reason}
            log.warning("outgoing message could not be delivered and is not retried", extra={"data": body})
        await self.store.messages.record_attempt(message, state, now, again=again, error=reason)

    async def _body_of(self, message: OutboxMessage, target: MessageTarget) -> dict[str, Any] | None:
        run = await self.store.runs.get(message.run_id)
        source = await self.store.sources.get(run.source_id) if run else None
        if run is None or source is None:
            return None
        report = report_of(run, source)
        if message.event not in (outbox.PAGES, outbox.DROPPED):
            return outbox.run_body(message, report)
        kinds = outbox.kinds_in(message, target)
        changes = await self.store.history.changes_of_run(run.id, kinds, limit=outbox.MAX_CHANGES + 1)
        return outbox.pages_body(message, report, changes)


def why_not_posted(url: str, allow: Sequence[str]) -> str | None:
    """Return why a webhook URL is not allowed; None if it is, or its host cannot be resolved now."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    policy = AddressPolicy(allow)
    kinds = [kind for ip in _addresses(host, port) if (kind := policy.check(ip, host, port))]
    return not_allowed(host, kinds[0]) if kinds else None


def _addresses(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host; none if it cannot be resolved in time."""
    found: list[str] = []

    def resolve() -> None:
        with suppress(OSError, UnicodeError):
            found.extend(str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(RESOLVE_SECONDS)
    return list(found)


def why_not_notified(url: str) -> str | None:
    """Return why apprise cannot use a URL, in words that show no secret of the URL; None if it can."""
    kind = url.partition("://")[0].lower()
    with _silence_apprise():
        from apprise import Apprise
        from apprise.manager_plugins import NotificationManager

        manager: Any = NotificationManager
        known: list[str] = sorted(manager().schemas())
        usable = Apprise.instantiate(url, suppress_exceptions=True) if kind in known else None
    if kind not in known:
        near = get_close_matches(kind, known, 5, 0.5) or ("discord", "mailtos", "ntfys", "slack", "tgram")
        return (
            f"apprise does not support {kind[:20]}://; it supports {', '.join(f'{each}://' for each in near)} and "
            f"{len(known) - len(near)} others (`apprise --details` lists them)"
        )
    return None if usable else f"apprise cannot use this URL: a part of {kind}://… is missing or wrong"


@contextmanager
def _silence_apprise() -> Iterator[None]:
    """Suppress warnings, and the log messages of apprise, which contain the secret URL."""
    logger = logging.getLogger("apprise")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before
