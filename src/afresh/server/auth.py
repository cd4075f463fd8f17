"""Authenticate and authorize every request, whatever application answers it.

The checks run in this order: host and origin, request rate (`request_checks.py`), token, permissions, and
size and time of the body. The `Permissions` are stored in the state of the request. If a token is bound to
sources, the response of a route that did not read the permissions is withheld.

A browser may send a login cookie instead of a token. The cookie holds random text; the store keeps its hash and
the token that was used to log in. Browsers with neither are redirected to the login page. Wrong tokens are logged.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afresh.access.permissions import BOUND, EVERYTHING, READ_ONLY, Permissions
from afresh.config.server import AccessSettings
from afresh.errors import StoreError
from afresh.server import asgi
from afresh.server import request_checks as checks
from afresh.server.asgi import RequestRefused
from afresh.services.tokens import LOGIN_LENGTH, TokenService
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)

MAX_FORWARDED_CHARS = 200  # of the X-Forwarded-For header in the log
PER_PEER, IN_ALL = (0.1, 10), (10.0, 100)  # log lines per second on average, and at once
LOGIN, LOGOUT = "/login", "/logout"
ASSETS = "/assets/"
HOOKS = "/api/v1/webhooks/"
SAFE = ("GET", "HEAD", "OPTIONS")
MAX_RETURN_PATH_CHARS = 1_000  # of the page to open after a login
SURPRISE = "Internal error. The server log has the details."
UNKNOWN = "This token is unknown, expired or revoked."
ENDED = "Your login has expired, and nothing was changed. Log in and send the form again."
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}

Found = TypeVar("Found")
ErrorPage: TypeAlias = Callable[[Scope, Receive, Send, RequestRefused], Awaitable[None]]
COOKIE = "afresh_login"


class FailedLogins:
    """Logs requests with a wrong token at a limited rate; each line counts the failures since the last one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_peer = checks.RateLimiter(*PER_PEER, clock)
        self._of_all = checks.RateLimiter(*IN_ALL, clock)
        self._left_out = 0

    def record(self, scope: Scope) -> None:
        peer = checks.peer_of(scope)
        if self._of_peer.take(checks.caller(peer)) or self._of_all.take("all"):
            self._left_out += 1
            return
        claimed = ", ".join(asgi.values(scope, b"x-forwarded-for"))[:MAX_FORWARDED_CHARS]
        data = {
            "peer": peer,
            "forwarded_for": claimed or None,  # not verified
            "method": scope["method"],
            "path": scope["path"],
            "reason": UNKNOWN,
            "left_out": self._left_out or None,
        }
        self._left_out = 0
        log.warning("login failed", extra={"data": data})


def allowed_of(scope: Scope) -> Permissions:
    """Return the permissions of a request; raise KeyError if it did not pass the authentication."""
    state = scope["state"]
    state["asked"] = True
    found: Permissions = state["allowed"]
    return found


class AuthMiddleware:
    """An ASGI application that authenticates requests before another application answers them.

    `hooks` is the application for webhooks, which carry a signature instead of a token. `page` renders errors for
    browsers, and allows them to log in; other clients get errors as JSON.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenService,
        settings: AccessSettings,
        *,
        hooks: ASGIApp | None = None,
        page: ErrorPage | None = None,
        failures: FailedLogins | None = None,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._settings = settings
        self._hooks = hooks
        self._page = page
        self._asked = checks.RateLimiter(settings.requests_per_second, settings.burst)
        self._failed = checks.RateLimiter(settings.requests_per_second, settings.burst)
        self._failures = failures or FailedLogins()
        self._has_tokens = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            guarded = _GuardedSend(send)
            try:
                await self._answer(scope, receive, guarded)
            except RequestRefused as refused:
                await self._refuse(scope, receive, guarded, refused)
            except Exception:
                if guarded.began:  # the response began: let the server abort the connection
                    raise
                log.exception("%s %s failed", scope["method"], scope["path"])
                await self._refuse(scope, receive, guarded, RequestRefused(500, SURPRISE))

    async def _answer(self, scope: Scope, receive: Receive, send: "_GuardedSend") -> None:
        has_tokens = await self._check_origin(scope)
        if self._hooks is not None and scope["method"] == "POST" and scope["path"].startswith(HOOKS):
            self._take(f"webhooks of {checks.caller(checks.peer_of(scope))}")
            await self._hooks(scope, receive, send)
            return
        allowed = await self._permissions(scope, has_tokens=has_tokens)
        state = {"allowed": allowed, "asked": False, "is_valid": partial(self._is_valid, scope)}
        scope.setdefault("state", {}).update(state)
        if allowed.sources is not None:
            send.only_if_asked = scope["state"]
        if scope["method"] == "HEAD":
            asked = {**scope, "method": "GET"}
            await self._app(asked, receive, asgi.without_body(send, asked, scope))
            return
        if scope["method"] == "GET":
            await self._app(scope, receive, send)
            return
        body = await checks.read_body(scope, receive, self._settings)
        checks.check_shape(scope, body)
        await self._app(scope, checks.replay(body, receive), send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, refused: RequestRefused) -> None:
        """Send the refusal: JSON, or for browsers a page or a redirect to the login."""
        if self._page is None or not is_browser(scope):
            await asgi.refuse(send, refused)
            return
        if refused.status == 401:
            if scope["method"] in ("GET", "HEAD"):
                await asgi.refuse(send, _to_login(scope))
                return
            refused = RequestRefused(401, ENDED, **refused.headers)
        scope.setdefault("state", {}).setdefault("allowed", Permissions(caller="nobody", sources=frozenset()))
        await self._page(scope, receive, send, refused)

    async def _check_origin(self, scope: Scope) -> bool:
        """Refuse a foreign origin or a wrong host, more strictly while no token exists; return whether tokens exist."""
        checks.check_origin(scope, self._settings.origins)
        checks.check_host(scope, self._settings.hosts, addresses=True)
        if not self._has_tokens:  # revoked tokens are kept, so this stays true
            self._has_tokens = await _look_up(self._tokens.exist())
        if not self._has_tokens:
            checks.check_host(scope, self._settings.hosts, addresses=False)
        return self._has_tokens

    async def _permissions(self, scope: Scope, *, has_tokens: bool) -> Permissions:
        peer = checks.caller(checks.peer_of(scope))
        if self._is_open(scope):
            self._take(f"health for {peer}" if scope["path"] == asgi.OPEN else peer)
            return Permissions(caller=peer, sources=frozenset())
        text = _bearer(scope)
        if text is None and checks.is_local(scope) and (not has_tokens or self._settings.loopback_open):
            return EVERYTHING
        # Only wrong tokens count by peer: all clients behind one proxy are the same peer.
        allowed = await _look_up(self._login_permissions(scope) if text is None else self._tokens.permissions_of(text))
        if allowed is None:
            if text is not None:
                self._failures.record(scope)
            if wait := self._failed.take(peer):
                raise checks.too_many(wait)
            raise _unauthorized(has_tokens=has_tokens, given=text is not None)
        self._take(allowed.caller)
        is_mcp = f"{scope['path']}/".startswith(f"{asgi.MCP}/")  # a POST may only read: its tools check
        if scope["method"] not in SAFE and not allowed.may_write and not is_mcp:
            raise RequestRefused(403, READ_ONLY)
        return allowed

    def _is_open(self, scope: Scope) -> bool:
        """Return whether a path needs no token: `/health`, the login pages and the assets."""
        path, reads = scope["path"], scope["method"] in SAFE
        if self._page is not None and (path in (LOGIN, LOGOUT) or (reads and path.startswith(ASSETS))):
            return True
        return bool(path == asgi.OPEN) and reads

    async def _login_permissions(self, scope: Scope) -> Permissions | None:
        """Return the permissions of a browser login; refuse a change that a page of another site submits."""
        cookie = cookie_of(scope) if self._page is not None else None
        allowed = await self._tokens.permissions_of_login(cookie) if cookie else None
        if allowed is None:
            return None
        if scope["method"] not in SAFE and not checks.comes_from_us(scope):
            raise RequestRefused(403, "Cross-site form blocked: a logged-in browser can only use forms of this server.")
        scope.setdefault("state", {})["login"] = True
        return allowed

    async def _is_valid(self, scope: Scope) -> bool:
        text, cookie = _bearer(scope), cookie_of(scope)
        try:
            if text is not None:
                return await self._tokens.permissions_of(text) is not None
            if cookie is not None and scope["state"].get("login"):
                return await self._tokens.permissions_of_login(cookie) is not None
            return self._settings.loopback_open or not await self._tokens.exist()
        except StoreError:
            return True  # other checks report the error

    def _take(self, caller: str) -> None:
        if wait := self._asked.take(caller):
            raise checks.too_many(wait)


async def _look_up(asked: Awaitable[Found]) -> Found:
    """Return the result of reading the store; refuse the request with 503 if the store does not respond."""
    try:
        return await asked
    except StoreError as error:
        raise RequestRefused(503, mask_secrets(str(error)), retry_after="5") from None


def is_browser(scope: Scope) -> bool:
    wants = any("text/html" in each for each in asgi.values(scope, b"accept"))
    return wants and not scope["path"].startswith("/api/")


def _to_login(scope: Scope) -> RequestRefused:
    query = scope.get("query_string", b"").decode("latin-1")
    place = quote(scope["path"]) + (f"?{query}" if query else "")
    place = place if len(place) <= MAX_RETURN_PATH_CHARS else "/"
    return RequestRefused(303, "Log in with a token.", location=f"{LOGIN}?to={quote(place, safe='/')}")


def _bearer(scope: Scope) -> str | None:
    """Return the token of a request; None without an Authorization header."""
    if not asgi.values(scope, b"authorization"):
        return None
    kind, _, text = (asgi.value(scope, b"authorization") or "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


def _unauthorized(*, has_tokens: bool, given: bool) -> RequestRefused:
    how = "Missing token. Send `Authorization: Bearer <token>`; `afresh token create` on the server makes one."
    if given:
        how = UNKNOWN
    elif not has_tokens:
        how = "No tokens exist yet, so only this machine can connect. Create one with `afresh token create`."
    return RequestRefused(401, how, www_authenticate="Bearer")


class _GuardedSend:
    """Adds common headers to responses; answers 403 if a token is bound to sources and no code read its permissions."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._withheld = False
        self.began = False
        self.only_if_asked: dict[str, object] | None = None

    async def __call__(self, message: Message) -> None:
        if self._withheld:
            return
        if message["type"] == "http.response.start":
            self.began = True
            state = self.only_if_asked
            if state is not None and not state["asked"] and message["status"] < 400:
                self._withheld = True
                await asgi.refuse(_GuardedSend(self._send), RequestRefused(403, BOUND))
                return
            given = message.get("headers", ())  # the headers of the response replace the common ones
            there = {name.lower() for name, _ in given}
            ours = [each for each in asgi.encode(HEADERS) if each[0] not in there]
            message = {**message, "headers": [*given, *ours]}
        await self._send(message)


def cookie_of(scope: Scope) -> str | None:
    # Parsed by hand: the parser of the standard library stops at an invalid cookie, and other servers on
    # this machine, at any port, set cookies that are sent along.
    pairs = (pair.strip().partition("=") for text in asgi.values(scope, b"cookie") for pair in text.split(";"))
    return next((text[:200] for name, _, text in pairs if name == COOKIE), None)


def cookie_header(scope: Scope, text: str) -> str:
    """Return the Set-Cookie header for a login; with an empty text it deletes the cookie."""
    secure = scope.get("scheme") == "https" or asgi.value(scope, b"x-forwarded-proto") == "https"
    age = int(LOGIN_LENGTH.total_seconds()) if text else 0
    return f"{COOKIE}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{'; Secure' if secure else ''}"
