"""`POST /api/v1/webhooks/NAME`: receive signed messages about changes."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from afresh.config.server import GITHUB, WebhookSettings
from afresh.errors import AfreshError, UsageError
from afresh.notify import incoming
from afresh.ports import Clock
from afresh.server.asgi import Receive, RequestRefused, Scope, Send, answer_json, refuse, value
from afresh.server.auth import HOOKS
from afresh.server.replies import status_of
from afresh.services.webhooks import WebhookService
from afresh.text.json_input import BadJson, read_json
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)

_ID = re.compile(r"[\x21-\x7e]{1,200}")
_PUSHES = ("push", "gollum")
UNSIGNED = "the signature is missing, wrong or old"


class WebhookReceiver:
    """An ASGI application that receives webhooks.

    The signature is checked over the raw bytes before they are parsed. No body is read before name and
    headers are plausible.
    """

    def __init__(self, service: WebhookService, hooks: Mapping[str, WebhookSettings], clock: Clock) -> None:
        self._service = service
        self._hooks = {name: hook for name, hook in hooks.items() if hook.url is None}
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            heard = await self._taken(scope, receive)
        except RequestRefused as refused:
            log.warning("a webhook was refused", extra={"data": {"status": refused.status, "why": refused}})
            await refuse(send, refused)
        except UsageError as wrong:
            await refuse(send, RequestRefused(404, str(wrong)))
        except AfreshError as trouble:
            status = status_of(trouble, scope["path"])
            headers = {"retry_after": "5"} if status == 503 else {}
            await refuse(send, RequestRefused(status, mask_secrets(str(trouble)), **headers))
        else:
            await answer_json(send, 202 if heard.state == "taken" else 200, asdict(heard))

    async def _taken(self, scope: Scope, receive: Receive) -> incoming.ReceivedMessage:
        name = scope["path"].removeprefix(HOOKS)
        hook = self._hooks.get(name)
        if hook is None:
            raise RequestRefused(404, "there is no webhook of that name: webhooks.NAME.secret makes one")
        if name == GITHUB:
            return await self._from_github(scope, receive, hook)
        message = value(scope, b"webhook-id")
        timestamp, header = value(scope, b"webhook-timestamp"), value(scope, b"webhook-signature")
        if not incoming.may_be_signed(message, timestamp, header, self._clock()):
            raise RequestRefused(401, UNSIGNED)
        body = await _body(scope, receive)
        if not incoming.signed(hook.secret, message, timestamp, body, header, self._clock()):
            raise RequestRefused(401, UNSIGNED)
        urls = _read(incoming.read_urls, _json(body))
        return await self._service.hear_urls(name, _checked_id(message), urls, hook.concerns)

    async def _from_github(
        self, scope: Scope, receive: Receive, hook: WebhookSettings
    ) -> incoming.ReceivedMessage:
        header = value(scope, b"x-hub-signature-256")
        if not incoming.may_be_signed_by_github(header):
            raise RequestRefused(401, UNSIGNED)
        body = await _body(scope, receive)
        if not incoming.github_signed(hook.secret, body, header):
            raise RequestRefused(401, UNSIGNED)
        told, event = _json(body), value(scope, b"x-github-event") or ""
        delivery = _checked_id(value(scope, b"x-github-delivery"))
        if event not in _PUSHES or (isinstance(told, dict) and told.get("deleted")):
            return incoming.ReceivedMessage(state="nothing")
        push = _read(lambda given: incoming.read_push(given, event), told)
        return await self._service.hear_push(delivery, push, hook.concerns)


def _checked_id(delivery: str | None) -> str:
    if delivery is None or not _ID.fullmatch(delivery):
        raise RequestRefused(400, "a message needs an id, so that it is taken once")
    return delivery


async def _body(scope: Scope, receive: Receive) -> bytes:
    media = (value(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise RequestRefused(400, "expected the content type application/json")
    body: bytes = (await receive())["body"]
    return body


def _json(body: bytes) -> Any:
    try:
        return read_json(body, max_bytes=len(body))
    except BadJson:
        raise RequestRefused(400, "the body is no JSON") from None


def _read(read: Callable[[Any], Any], told: Any) -> Any:
    try:
        return read(told)
    except incoming.BadMessage as wrong:
        raise RequestRefused(400, str(wrong)) from None
