"""MCP over HTTP: a stateless ASGI application for one path of a server."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from afresh.access.permissions import EVERYTHING, Permissions
from afresh.kb import KnowledgeBase
from afresh.server.mcp.server import AfreshServer, make_server

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST_REQUEST = 1_048_576
# The permissions of the current request; the SDK handles each request in a task that inherits this.
_ASKING: ContextVar[Permissions] = ContextVar("asking")


class McpApp:
    """An ASGI application that answers every request as MCP, at any path, while `running` is open."""

    def __init__(
        self, reading: AfreshServer, writing: AfreshServer | None, allowed: Callable[[Scope], Permissions]
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._allowed = allowed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while this context is open; it can be opened only once."""
        async with AsyncExitStack() as stack:
            for server in (self._reading, self._writing):
                if server is not None:
                    await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":  # a stream of server messages: there are none without sessions
            await PlainTextResponse("ask by POST", 405, {"allow": "POST"})(scope, receive, send)
            return
        allowed = self._allowed(scope)
        server = self._writing if self._writing is not None and allowed.may_write else self._reading
        before = _ASKING.set(allowed)
        try:
            await server.session_manager.handle_request(scope, receive, send)
        finally:
            _ASKING.reset(before)


def asgi_app(
    kb: KnowledgeBase,
    *,
    read_only: bool = False,
    works: bool = False,
    hosts: Sequence[str] | None = (),
    allowed: Callable[[Scope], Permissions] = lambda scope: EVERYTHING,
) -> McpApp:
    """Return an MCP application for a knowledge base.

    `hosts` are the allowed host names besides loopback; None: another layer checks them. `allowed` returns
    the permissions of a request: without write permission only reading tools are shown, and only permitted
    sources are found. With `works`, it works on runs itself, otherwise other workers do.
    """
    allowed_hosts = [f"{name}{port}" for name in (*LOOPBACK, *(hosts or ())) for port in ("", ":*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=hosts is not None,
        allowed_hosts=allowed_hosts,
        allowed_origins=[f"{scheme}://{host}" for scheme in ("http", "https") for host in allowed_hosts],
    )

    def opened(server: AfreshServer) -> AfreshServer:
        server.streamable_http_app(
            streamable_http_path="/",
            stateless_http=True,  # no session can be lost, stolen or accumulate
            transport_security=security,
            max_request_body_size=LARGEST_REQUEST,
        )
        return server

    def reach() -> KnowledgeBase:
        return kb.scoped_to(_ASKING.get())

    reading = opened(make_server(kb, read_only=True, reach=reach))
    writing = None if read_only else opened(make_server(kb, works=works, reach=reach))
    return McpApp(reading, writing, allowed)
