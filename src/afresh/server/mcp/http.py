"""MCP over HTTP: an ASGI application for one path of a server, without sessions."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from afresh.access.permissions import EVERYTHING, Allowed
from afresh.kb import KnowledgeBase
from afresh.server.mcp.request_context import reach_of
from afresh.server.mcp.server import AfreshServer, make_server

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST_REQUEST = 1_048_576
# What the request under way may do; the SDK answers each request in a task of its own, which takes it along.
_ASKING: ContextVar[Allowed] = ContextVar("asking")


def _anything(scope: Scope) -> Allowed:
    return EVERYTHING


class McpApp:
    """Answers every request it is given as MCP, so it can stand at any path; open while `running`."""

    def __init__(
        self, reading: AfreshServer, writing: AfreshServer | None, allowed: Callable[[Scope], Allowed]
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._allowed = allowed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while this is open; once only."""
        async with AsyncExitStack() as stack:
            for server in (self._reading, self._writing):
                if server is not None:
                    await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request with the tools that whoever asks may use."""
        if scope["method"] == "GET":  # a stream for what the server says by itself: without sessions, nothing
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
    allowed: Callable[[Scope], Allowed] = _anything,
) -> McpApp:
    """MCP over a knowledge base; `hosts` are names it is reached by beside loopback, None: a door checks.

    `allowed` tells what a request may do: who may not write is shown only what reads, and who is bound to
    some sources finds no others. With `works` it works on runs itself, else whoever
    works on the store does.
    """
    names = [*LOOPBACK, *(hosts or ())]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=hosts is not None,
        allowed_hosts=[f"{name}{port}" for name in names for port in ("", ":*")],
        allowed_origins=[
            f"{scheme}://{name}{port}"
            for scheme in ("http", "https")
            for name in names
            for port in ("", ":*")
        ],
    )

    def opened(server: AfreshServer) -> AfreshServer:
        server.streamable_http_app(
            streamable_http_path="/",
            stateless_http=True,  # each request stands alone: no session can be lost, stolen or piled up
            transport_security=security,
            max_request_body_size=LARGEST_REQUEST,
        )
        return server

    reach = reach_of(kb, _ASKING.get)
    reading = opened(make_server(kb, read_only=True, reach=reach))
    writing = None if read_only else opened(make_server(kb, works=works, reach=reach))
    return McpApp(reading, writing, allowed)
