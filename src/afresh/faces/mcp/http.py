"""MCP over HTTP: an ASGI application for one path of a server, without sessions."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from afresh.faces.mcp.server import AfreshServer, make_server
from afresh.kb import KnowledgeBase

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST_REQUEST = 1_048_576


def _anyone(scope: Scope) -> bool:
    return True


class McpApp:
    """Answers every request it is given as MCP, so it can stand at any path; open while `running`."""

    def __init__(
        self, reading: AfreshServer, writing: AfreshServer | None, may_write: Callable[[Scope], bool]
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._may_write = may_write

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
        server = self._writing if self._writing is not None and self._may_write(scope) else self._reading
        await server.session_manager.handle_request(scope, receive, send)


def asgi_app(
    kb: KnowledgeBase,
    *,
    read_only: bool = False,
    works: bool = False,
    hosts: Sequence[str] = (),
    may_write: Callable[[Scope], bool] = _anyone,
) -> McpApp:
    """MCP over a knowledge base; `hosts` are names it is reached by beside loopback.

    Whom `may_write` says no to is shown only what reads. With `works` it works on runs itself, else whoever
    works on the store does.
    """
    names = [*LOOPBACK, *hosts]
    security = TransportSecuritySettings(
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

    reading = opened(make_server(kb, read_only=True))
    return McpApp(reading, None if read_only else opened(make_server(kb, works=works)), may_write)
