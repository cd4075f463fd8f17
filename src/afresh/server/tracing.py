"""A span for each request, where somebody keeps spans."""

from afresh.ops.tracing import Recorder
from afresh.server.asgi import App, Message, Receive, Scope, Send, route_of
from afresh.server.metrics import METHODS


class Traced:
    """An ASGI application around another one; a span ends with the last byte of its answer."""

    def __init__(self, app: App, recorder: Recorder) -> None:
        self._app = app
        self._recorder = recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "other"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        caller = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        with self._recorder.span(method, {"http.request.method": method}, caller) as note:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status, route = message["status"], route_of(scope)
                    note.add({"http.response.status_code": status, "http.route": route})
                    note.rename(f"{method} {route}", failed=status >= 500)
                await send(message)

            await self._app(scope, receive, noted)
