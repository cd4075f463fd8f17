"""MCP over HTTP: a stateless ASGI application for one path of a server."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from afresh.access.permissions import Permissions
from afresh.kb import KnowledgeBase
from afresh.server.mcp.server import AfreshServer, make_server

MAX_REQUEST_BYTES = 1_048_576
# The permissions of the current request; the SDK handles each request in a task that inherits this.
_PERMISSIONS: ContextVar[Permissions] = ContextVar("permissions")


class McpApp:
    """The MCP application for the services in `kb`, at any path; `AuthMiddleware` must check hosts and origins first.

    `allowed` returns the permissions of a request: without write permission, only reading tools are offered, and only
    permitted sources are visible. Runs are queued for workers. Requests are answered only inside `running()`.
    """

    def __init__(self, kb: KnowledgeBase, *, allowed: Callable[[Scope], Permissions], read_only: bool = False) -> None:
        def reach() -> KnowledgeBase:
            return kb.scoped_to(_PERMISSIONS.get())

        self._allowed = allowed
        self._reading = _opened(make_server(kb, read_only=True, reach=reach))
        self._writing = None if read_only else _opened(make_server(kb, works=False, reach=reach))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve requests while this context is open. It can be opened only once."""
        async with AsyncExitStack() as stack:
            for server in (self._reading, self._writing):
                if server is not None:
                    await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":  # GET would open a stream of server messages, which needs a session
            await PlainTextResponse("use POST", 405, {"allow": "POST"})(scope, receive, send)
            return
        allowed = self._allowed(scope)
        server = self._writing if self._writing is not None and allowed.may_write else self._reading
        before = _PERMISSIONS.set(allowed)
        try:
            await server.session_manager.handle_request(scope, receive, send)
        finally:
            _PERMISSIONS.reset(before)


def _opened(server: AfreshServer) -> AfreshServer:
    server.streamable_http_app(
        streamable_http_path="/",
        stateless_http=True,  # so no session can be lost or stolen, and none piles up
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=MAX_REQUEST_BYTES,
    )
    return server
