"""`POST /api/v1/webhooks/NAME`: receive signed messages about changes."""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from afresh.config.server import GITHUB, AccessSettings, WebhookSettings
from afresh.dataclass import asdict
from afresh.errors import AfreshError, UsageError
from afresh.notify import incoming, signatures
from afresh.ports import Clock
from afresh.server.asgi import RequestRefused, refuse, value
from afresh.server.auth import HOOKS
from afresh.server.replies import status_of
from afresh.server.request_checks import media_of, read_body
from afresh.services.webhooks import WebhookService
from afresh.text.json_input import BadJson, read_json
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)

_ID = re.compile(r"[\x21-\x7e]{1,200}")
_PUSHES = ("push", "gollum")
UNSIGNED = "Invalid, missing or expired signature."


class WebhookReceiver:
    """Receives webhooks; reads a body only if name and headers are valid, and parses it only if its signature is."""

    def __init__(
        self, service: WebhookService, hooks: Mapping[str, WebhookSettings], access: AccessSettings, clock: Clock
    ) -> None:
        self._service = service
        self._hooks = {name: hook for name, hook in hooks.items() if hook.url is None}
        self._access = access
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            received = await self._receive(scope, receive)
        except RequestRefused as refused:
            log.warning("webhook refused", extra={"data": {"status": refused.status, "why": refused}})
            await refuse(send, refused)
        except UsageError as wrong:
            await refuse(send, RequestRefused(404, str(wrong)))
        except AfreshError as error:
            status = status_of(error, scope["path"])
            headers = {"retry_after": "5"} if status == 503 else {}
            await refuse(send, RequestRefused(status, mask_secrets(str(error)), **headers))
        else:
            await JSONResponse(asdict(received), 202 if received.state == "taken" else 200)(scope, receive, send)

    async def _receive(self, scope: Scope, receive: Receive) -> incoming.ReceivedMessage:
        name = scope["path"].removeprefix(HOOKS)
        if (hook := self._hooks.get(name)) is None:
            raise RequestRefused(404, "Unknown webhook. Configure it with `webhooks.NAME.secret`.")
        if name == GITHUB:
            return await self._from_github(scope, receive, hook)
        message = value(scope, b"webhook-id")
        timestamp, header = value(scope, b"webhook-timestamp"), value(scope, b"webhook-signature")
        if not signatures.may_be_signed(message, timestamp, header, self._clock()):
            raise RequestRefused(401, UNSIGNED)
        body = await self._read_body(scope, receive)
        if not signatures.signed(hook.secret, message, timestamp, body, header, self._clock()):
            raise RequestRefused(401, UNSIGNED)
        urls = _read(incoming.read_urls, _json(body))
        return await self._service.receive_urls(name, _checked_id(message), urls, hook.concerns)

    async def _from_github(self, scope: Scope, receive: Receive, hook: WebhookSettings) -> incoming.ReceivedMessage:
        header = value(scope, b"x-hub-signature-256")
        if not signatures.may_be_signed_by_github(header):
            raise RequestRefused(401, UNSIGNED)
        body = await self._read_body(scope, receive)
        if not signatures.github_signed(hook.secret, body, header):
            raise RequestRefused(401, UNSIGNED)
        content, event = _json(body), value(scope, b"x-github-event") or ""
        delivery = _checked_id(value(scope, b"x-github-delivery"))
        if event not in _PUSHES or (isinstance(content, dict) and content.get("deleted")):
            return incoming.ReceivedMessage(state="nothing")
        push = _read(lambda given: incoming.read_push(given, event), content)
        return await self._service.receive_push(delivery, push, hook.concerns)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        if media_of(scope) != "application/json":
            raise RequestRefused(400, "The content type must be application/json.")
        return await read_body(scope, receive, self._access)


def _checked_id(delivery: str | None) -> str:
    if delivery is None or not _ID.fullmatch(delivery):
        raise RequestRefused(
            400, "The header webhook-id (from GitHub: X-GitHub-Delivery) must be 1 to 200 ASCII characters, no spaces."
        )
    return delivery


def _json(body: bytes) -> Any:
    try:
        return read_json(body, max_bytes=len(body))
    except BadJson:
        raise RequestRefused(400, "The body is not valid JSON.") from None


def _read(read: Callable[[Any], Any], content: Any) -> Any:
    try:
        return read(content)
    except incoming.BadMessage as wrong:
        raise RequestRefused(400, str(wrong)) from None
