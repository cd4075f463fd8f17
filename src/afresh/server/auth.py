"""The door of the server: who may ask for what. It stands before every route, whatever app it is.

In this order: the name it was called by and the page that asks (`names.py`), how often this caller asks
(`limits.py`), the token, what that allows, and the body's size and time. What is allowed is `Allowed`, in the
state of the request. A token that is bound to sources gets no answer from a route that does not look at it.
A browser may bring a login (`logins.py`) instead of a token; who has neither is led to where one logs in.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from afresh.access.permissions import EVERYTHING, Allowed
from afresh.config.access import AccessSettings
from afresh.errors import StoreError
from afresh.server.asgi import (
    OPEN,
    App,
    Message,
    Receive,
    Refused,
    Scope,
    Send,
    bodiless,
    encoded,
    refuse,
    value,
    values,
)
from afresh.server.failures import FailedLogins
from afresh.server.host_checks import check_host, check_origin, comes_from_us, is_local, peer_of
from afresh.server.limits import Buckets, body_of, caller, check_shape, gathered, replayed, too_many
from afresh.server.logins import cookie_of
from afresh.services.tokens import TokenService
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)

LOGIN, LOGOUT = "/login", "/logout"
ASSETS = "/assets/"
HOOKS = "/api/v1/webhooks/"
JUDGES_ITSELF = ("/mcp",)  # where a POST may just read: its tools ask `Allowed`
SAFE = ("GET", "HEAD", "OPTIONS")
LONGEST_PLACE = 1_000  # characters of where one goes after a login
SURPRISE = "something went wrong that should not; the log of the server has the details"
UNKNOWN = "this token is unknown, expired or revoked"
ENDED = "you are not logged in, or no longer, and nothing was changed: log in, and send it again"
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}


Found = TypeVar("Found")
Page: TypeAlias = Callable[[Scope, Receive, Send, Refused], Awaitable[None]]


def allowed_of(scope: Scope) -> Allowed:
    """What the request under way may do; nothing is allowed where nobody stood at the door."""
    state = scope["state"]
    state["asked"] = True
    found: Allowed = state["allowed"]
    return found


class Door:
    """An ASGI application in front of another one; `hooks` answers what webhooks sign instead of a token.

    With `logins` there are pages for people, who log in; `page` tells them what programs are told as JSON.
    """

    def __init__(
        self,
        app: App,
        tokens: TokenService,
        settings: AccessSettings,
        *,
        hooks: App | None = None,
        logins: bool = False,
        page: Page | None = None,
        names: Collection[str] = (),
        failures: FailedLogins | None = None,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._settings = settings
        self._hooks = hooks
        self._logins = logins
        self._page = page
        self._names = frozenset((*settings.hosts, *names))
        self._asked = Buckets(settings.requests_per_second, settings.burst)
        self._failed = Buckets(settings.requests_per_second, settings.burst)
        self._failures = failures or FailedLogins()
        self._has_tokens = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            guarded = _Guarded(send)
            try:
                await self._let_in(scope, receive, guarded)
            except Refused as refused:
                await self._turned_away(scope, receive, guarded, refused)
            except Exception:
                if guarded.began:  # half an answer is none: the server breaks it off
                    raise
                log.exception("%s %s failed", scope["method"], scope["path"])
                await self._turned_away(scope, receive, guarded, Refused(500, SURPRISE))

    async def _let_in(self, scope: Scope, receive: Receive, send: "_Guarded") -> None:
        has_tokens = await self._checked(scope)
        if self._hooks is not None and scope["method"] == "POST" and scope["path"].startswith(HOOKS):
            self._take(f"webhooks of {caller(peer_of(scope))}")
            limits = (self._settings.max_body_bytes, self._settings.body_seconds)
            await self._hooks(scope, gathered(scope, receive, *limits), send)
            return
        allowed = await self._allowed(scope, has_tokens=has_tokens)
        state = {"allowed": allowed, "asked": False, "holds": partial(self._holds, scope)}
        scope.setdefault("state", {}).update(state)
        if allowed.sources is not None:
            send.only_if_asked = scope["state"]
        if scope["method"] == "HEAD":
            asked = {**scope, "method": "GET"}
            await self._app(asked, receive, bodiless(send, asked, scope))
            return
        if scope["method"] == "GET":
            await self._app(scope, receive, send)
            return
        body = await self._body(scope, receive)
        await self._app(scope, replayed(body, receive), send)

    async def _turned_away(self, scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
        """Say why not; a person reads it on a page, and is led to where one logs in."""
        if not is_person(scope):
            await refuse(send, refused)
            return
        if refused.status == 401 and self._logins:
            opens = scope["method"] in ("GET", "HEAD")
            refused = _led_to_login(scope) if opens else Refused(401, ENDED, **refused.headers)
        if self._page is None or refused.status < 400:
            await refuse(send, refused)
            return
        nobody = Allowed(who="nobody", sources=frozenset())
        scope.setdefault("state", {}).setdefault("allowed", nobody)
        await self._page(scope, receive, send, refused)

    async def _checked(self, scope: Scope) -> bool:
        """Refuse a wrong name and a foreign page before anything is looked up; whether there are tokens."""
        check_origin(scope, self._settings.origins)
        check_host(scope, self._names, addresses=True)
        if not self._has_tokens:  # once there are some it stays so: revoked ones are kept too
            self._has_tokens = await _looked_up(self._tokens.exist())
        if not self._has_tokens:
            check_host(scope, self._names, addresses=False)
        return self._has_tokens

    async def _allowed(self, scope: Scope, *, has_tokens: bool) -> Allowed:
        peer = caller(peer_of(scope))
        if self._is_open(scope):
            self._take(f"health for {peer}" if scope["path"] == OPEN else peer)
            return Allowed(who=peer, sources=frozenset())
        text = _bearer(scope)
        if text is None and is_local(scope) and (not has_tokens or self._settings.loopback_open):
            return EVERYTHING
        # Wrong ones are counted by peer, good ones are not: all behind one proxy are the same peer.
        allowed = await _looked_up(
            self._logged_in(scope) if text is None else self._tokens.permissions_of(text)
        )
        if allowed is None:
            if text is not None:
                self._failures.tell(scope, UNKNOWN)
            if wait := self._failed.take(peer):
                raise too_many(wait)
            raise _unknown(has_tokens=has_tokens, given=text is not None)
        self._take(allowed.who)
        if scope["method"] not in SAFE and not allowed.may_write and not _judges_itself(scope["path"]):
            raise Refused(403, "this token may only read: use one that was made with --scope write")
        return allowed

    def _is_open(self, scope: Scope) -> bool:
        """Whether everybody gets an answer: what tells of no source, and where one logs in."""
        path, reads = scope["path"], scope["method"] in SAFE
        if self._logins and (path in (LOGIN, LOGOUT) or (reads and path.startswith(ASSETS))):
            return True
        return bool(path == OPEN) and reads

    async def _logged_in(self, scope: Scope) -> Allowed | None:
        """What the login of a browser allows; what changes something has to come from a page of ours."""
        cookie = cookie_of(scope) if self._logins else None
        allowed = await self._tokens.permissions_of_login(cookie) if cookie else None
        if allowed is None:
            return None
        if scope["method"] not in SAFE and not comes_from_us(scope):
            raise Refused(403, "a browser that is logged in changes things only from a page of this server")
        scope.setdefault("state", {})["login"] = True
        return allowed

    async def _holds(self, scope: Scope) -> bool:
        """Whether the token or login that a request came with is still good."""
        text, cookie = _bearer(scope), cookie_of(scope)
        try:
            if text is not None:
                return await self._tokens.permissions_of(text) is not None
            if cookie is not None and scope["state"].get("login"):
                return await self._tokens.permissions_of_login(cookie) is not None
            return self._settings.loopback_open or not await self._tokens.exist()
        except StoreError:
            return True  # which is told elsewhere

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        body = await body_of(scope, receive, self._settings.max_body_bytes, self._settings.body_seconds)
        check_shape(scope, body)
        return body

    def _take(self, who: str) -> None:
        if wait := self._asked.take(who):
            raise too_many(wait)


async def _looked_up(asked: Awaitable[Found]) -> Found:
    """What the store knows of who asks; a store that is away is told as it is by every route."""
    try:
        return await asked
    except StoreError as error:
        raise Refused(503, mask_secrets(str(error)), retry_after="5") from None


def _judges_itself(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in JUDGES_ITSELF)


def is_person(scope: Scope) -> bool:
    """Whether somebody looks at pages in a browser."""
    wants = any("text/html" in each for each in values(scope, b"accept"))
    return wants and not scope["path"].startswith("/api/")


def _led_to_login(scope: Scope) -> Refused:
    query = scope.get("query_string", b"").decode("latin-1")
    place = quote(scope["path"]) + (f"?{query}" if query else "")
    place = place if len(place) <= LONGEST_PLACE else "/"
    return Refused(303, "log in with a token", location=f"{LOGIN}?to={quote(place, safe='/')}")


def _bearer(scope: Scope) -> str | None:
    """The token that a request carries; None: none at all."""
    if not values(scope, b"authorization"):
        return None
    kind, _, text = (value(scope, b"authorization") or "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


def _unknown(*, has_tokens: bool, given: bool) -> Refused:
    if given:
        return Refused(401, UNKNOWN, www_authenticate="Bearer")
    how = "Missing token. Send `Authorization: Bearer <token>`."
    if not has_tokens:
        how = "without tokens only this machine itself is answered: `afresh token create` makes one"
    return Refused(401, how, www_authenticate="Bearer")


class _Guarded:
    """Sends with the headers of every answer; keeps back what nobody checked for a token bound to sources."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._withheld = False
        self.began = False
        self.only_if_asked: dict[str, object] | None = None

    async def __call__(self, message: Message) -> None:
        """Pass a message on."""
        if self._withheld:
            return
        if message["type"] == "http.response.start":
            self.began = True
            state = self.only_if_asked
            if state is not None and not state["asked"] and message["status"] < 400:
                self.only_if_asked, self._withheld = None, True
                told = Refused(403, "this token is bound to some sources, and this concerns all of them")
                await refuse(_Guarded(self._send), told)
                return
            message = {**message, "headers": _with_ours(message.get("headers", ()))}
        await self._send(message)


def _with_ours(given: Collection[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What an answer says of itself stays."""
    there = {name.lower() for name, _ in given}
    return [*given, *(each for each in encoded(HEADERS.items()) if each[0] not in there)]
