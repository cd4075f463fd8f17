"""Create a client of Google's SDK that sends its requests through `SinkCalls`."""

import httpx2
from google import genai
from google.genai import types

from afresh.sync.sinks.calls import SinkCalls
from afresh.text.json_input import count_values

MAX_PARSED_BYTES = 1024 * 1024  # limited because the SDK parses on the event loop; real answers are far smaller
MAX_PARSED_VALUES = 10_000
_OURS = frozenset({"host", "user-agent", "connection", "content-length", "accept-encoding", "transfer-encoding"})
_SPENT = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of the SDK through `SinkCalls`, as the SDK blocks the event loop during retries."""

    def __init__(self, calls: SinkCalls) -> None:
        self._calls = calls

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        data = await request.aread()
        headers = {name: value for name, value in request.headers.items() if name not in _OURS}
        uploads = "upload" in (command := headers.get("x-goog-upload-command", ""))
        adds = "finalize" in command
        answer = await self._calls.send(request.method, str(request.url), headers, data or None, adds=adds)
        if uploads and "x-goog-upload-status" not in answer.headers:
            raise self._calls.odd("an upload without a status")
        if len(answer.data) > MAX_PARSED_BYTES or count_values(answer.data) > MAX_PARSED_VALUES:
            raise self._calls.odd("the answer is too large for one page of a listing")
        kept = {name: value for name, value in answer.headers.items() if name not in _SPENT}
        return httpx2.Response(answer.status, headers=kept, content=answer.data, request=request)


class _Nobody(httpx2.BaseTransport):
    """Refuses all requests of the SDK's blocking client, which is not used."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.UnsupportedProtocol("only the async client is used", request=request)


def open_client(calls: SinkCalls, *, api_key: str, base_url: str, api_version: str) -> genai.Client:
    """Return a client that sends requests only through `calls`, and never through a proxy of the environment."""
    options = types.HttpOptions(
        base_url=base_url,
        api_version=api_version,
        httpx_client=httpx2.Client(transport=_Nobody(), trust_env=False),
        httpx_async_client=httpx2.AsyncClient(transport=GuardedTransport(calls), trust_env=False),
    )
    return genai.Client(vertexai=False, api_key=api_key, http_options=options)
