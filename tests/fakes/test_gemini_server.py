"""The Gemini server on loopback, asked by the official SDK: sync and async, every call of File Search."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from google import genai
from tests.fakes.faults import HttpFault
from tests.fakes.gemini_hosted import after
from tests.fakes.gemini_server import KEY, GeminiServer

from afresh.testing import FrozenClock

MARK = [{"key": "page", "string_value": "7"}, {"key": "weight", "numeric_value": 0.5}]
CHUNKS = {"white_space_config": {"max_tokens_per_chunk": 200, "max_overlap_tokens": 20}}
LARGE = b"0123456789abcdef" * (9 * 1024 * 1024 // 16)  # the SDK sends pieces of 8 MB


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    """A server with nothing in it."""
    with GeminiServer(FrozenClock()) as running:
        yield running


class Calls:
    """The calls of the SDK, awaited alike whether they block or not."""

    def __init__(self, server: GeminiServer, version: str, key: str = KEY) -> None:
        options: Any = {"base_url": server.base_url, "api_version": version, "timeout": 10_000}
        self.session = aiohttp.ClientSession()  # the SDK's own is never quite closed
        options["aiohttp_client"] = self.session
        self.client: Any = genai.Client(api_key=key, vertexai=False, http_options=options)
        self.api: Any = self.client

    async def ask(self, call: Callable[..., Any], **arguments: Any) -> Any:
        """The result of a call that blocks; the server answers from a thread of its own."""
        return await asyncio.to_thread(call, **arguments)

    async def list(self, call: Callable[..., Any], **arguments: Any) -> list[Any]:
        """All that a call lists, page by page."""
        return await asyncio.to_thread(lambda: list(call(**arguments)))

    async def close(self) -> None:
        """End its connections."""
        self.client.close()
        await self.client.aio.aclose()
        await self.session.close()


class AsyncCalls(Calls):
    """The same of the async client."""

    def __init__(self, server: GeminiServer, version: str, key: str = KEY) -> None:
        super().__init__(server, version, key)
        self.api = self.client.aio

    async def ask(self, call: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """The result of a call."""
        return await call(**arguments)

    async def list(self, call: Callable[..., Awaitable[Any]], **arguments: Any) -> "list[Any]":
        """All that a call lists, page by page."""
        return [each async for each in await call(**arguments)]


@pytest.mark.parametrize(("kind", "version"), [(Calls, "v1beta"), (AsyncCalls, "v1")])
async def test_every_call_of_the_SDK_does_what_it_says(server: GeminiServer, kind: type[Calls], version: str) -> None:
    calls = kind(server, version)
    stores, clock = calls.api.file_search_stores, server.clock
    assert isinstance(clock, FrozenClock)

    made = await calls.ask(stores.create, config={"display_name": "Team docs"})
    assert made.name.startswith("fileSearchStores/teamdocs-")
    assert [each.name for each in await calls.list(stores.list)] == [made.name]
    assert (await calls.ask(stores.get, name=made.name)).display_name == "Team docs"

    server.hosted.fates = [after(60)]
    server.hosted.operation_seconds = 5
    config = {"display_name": "Tides", "mime_type": "text/markdown", "custom_metadata": MARK, "chunking_config": CHUNKS}
    upload = stores.upload_to_file_search_store
    operation = await calls.ask(upload, file_search_store_name=made.name, file=BytesIO(b"# Tides"), config=config)
    assert not operation.done
    assert not (await calls.ask(calls.api.operations.get, operation=operation)).done
    clock.advance(5)
    operation = await calls.ask(calls.api.operations.get, operation=operation)
    held = server.documents[0]
    assert operation.done
    assert operation.response.document_name == held.name
    assert (held.text, held.display_name, held.mime_type) == ("# Tides", "Tides", "text/markdown")
    assert held.values == {"page": "7", "weight": 0.5}
    assert held.chunking == CHUNKS
    found = await calls.ask(stores.documents.get, name=held.name)
    assert found.state.name == "STATE_PENDING"
    assert found.custom_metadata[0].string_value == "7"
    clock.advance(55)
    found = await calls.ask(stores.documents.get, name=held.name)
    assert (found.state.name, found.size_bytes) == ("STATE_ACTIVE", 7)
    assert (await calls.ask(stores.get, name=made.name)).active_documents_count == 1

    server.hosted.files["files/abc"] = ("text/plain", b"by the way")
    taken = await calls.ask(stores.import_file, file_search_store_name=made.name, file_name="files/abc")
    clock.advance(5)
    taken = await calls.ask(calls.api.operations.get, operation=taken)
    assert (taken.done, server.documents[1].text) == (True, "by the way")

    for number in range(23):
        server.hosted.add(server.store("Team docs"), {"displayName": f"More {number}"}, b"more")
    listed = await calls.list(stores.documents.list, parent=made.name, config={"page_size": 20})
    assert [each.name for each in listed] == [each.name for each in server.documents]
    assert server.kinds["documents.list"] == 2

    with pytest.raises(genai.errors.ClientError, match="Cannot delete non-empty Document"):
        await calls.ask(stores.documents.delete, name=held.name)
    await calls.ask(stores.documents.delete, name=held.name, config={"force": True})
    assert held.name not in {each.name for each in server.documents}
    with pytest.raises(genai.errors.ClientError, match="404"):
        await calls.ask(stores.documents.delete, name=held.name, config={"force": True})
    with pytest.raises(genai.errors.ClientError, match="Cannot delete non-empty FileSearchStore"):
        await calls.ask(stores.delete, name=made.name)
    await calls.ask(stores.delete, name=made.name, config={"force": True})
    assert not server.hosted.stores

    assert server.kinds["other"] == 0
    assert all(f"/{version}/" in each.path for each in server.requests)
    assert server.saw(KEY)
    assert KEY not in repr(list(server.requests))
    await calls.close()


@pytest.mark.filterwarnings("ignore:Sending a large body")  # which the SDK does
@pytest.mark.parametrize("kind", [Calls, AsyncCalls])
async def test_a_large_file_comes_in_pieces_and_a_small_one_in_one_multipart_body(
    server: GeminiServer, kind: type[Calls]
) -> None:
    calls, store = kind(server, "v1beta"), server.hosted.make_store("kb")
    upload = calls.api.file_search_stores.upload_to_file_search_store
    config = {"display_name": "large", "mime_type": "text/plain"}
    await calls.ask(upload, file_search_store_name=store.name, file=BytesIO(LARGE), config=config)
    assert (server.kinds["upload.start"], server.kinds["upload.bytes"]) == (1, 2)
    assert server.documents[0].data == LARGE

    for form in ("multipart/related", "multipart/form-data"):
        body = (
            b"--b\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Disposition: form-data; "
            b'name="metadata"\r\n\r\n{"displayName": "Caf\xc3\xa9"}\r\n--b\r\nContent-Type: text/markdown\r\n'
            b'Content-Disposition: form-data; name="file"\r\n\r\n# Caf\xc3\xa9\n\r\n--b--\r\n'
        )
        head = {"Content-Type": f"{form}; boundary=b", "X-Goog-Upload-Protocol": "multipart"}
        status, reply = await _post(server, f"/upload/v1beta/{store.name}:uploadToFileSearchStore", head, body)
        made = server.documents[-1]
        assert (status, made.display_name, made.text) == (200, "Café", "# Café\n")
        assert reply["name"].startswith(f"{store.name}/upload/operations/")
    await calls.close()


async def test_a_resumable_upload_is_asked_how_far_it_came_and_ends_once(server: GeminiServer) -> None:
    store = server.hosted.make_store("kb")
    path = f"/upload/v1beta/{store.name}:uploadToFileSearchStore"
    start = {"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start"}
    await _post(server, path, {**start, "X-Goog-Upload-Header-Content-Length": "6"}, b"{}")
    session = f"{path}?upload_id=upload-1"

    async def send(command: str, offset: int, data: bytes = b"") -> int:
        head = {"X-Goog-Upload-Command": command, "X-Goog-Upload-Offset": str(offset)}
        return (await _post(server, session, head, data))[0]

    assert await send("upload", 0, b"abc") == 400  # pieces but the last are whole blocks
    assert await send("upload, finalize", 3, b"abc") == 400  # three bytes are missing
    assert await send("query", 0) == 200
    assert await send("upload, finalize", 0, b"abcdef") == 200
    assert await send("upload, finalize", 0, b"abcdef") == 400
    assert [each.text for each in server.documents] == ["abcdef"]


@pytest.mark.parametrize("kind", [Calls, AsyncCalls])
async def test_errors_reach_the_SDK_in_Googles_form(server: GeminiServer, kind: type[Calls]) -> None:
    calls, store = kind(server, "v1beta"), server.hosted.make_store("kb")
    stores = calls.api.file_search_stores
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down", "details": [delay]}
    server.script.add(HttpFault(status=429, error=error, retry_after="7"))
    with pytest.raises(genai.errors.ClientError) as slow:
        await calls.ask(stores.get, name=store.name)
    assert (slow.value.code, slow.value.status) == (429, "RESOURCE_EXHAUSTED")
    server.hosted.storage_limit = 3
    config = {"mime_type": "text/plain"}
    with pytest.raises(genai.errors.ClientError, match="storage limit of 3 bytes"):
        await calls.ask(
            stores.upload_to_file_search_store, file_search_store_name=store.name, file=BytesIO(b"four"), config=config
        )
    server.keys.clear()
    with pytest.raises(genai.errors.ClientError, match="API key not valid"):
        await calls.ask(stores.get, name=store.name)
    assert (len(server.documents), server.script.left) == (0, 0)
    await calls.close()


async def _post(server: GeminiServer, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    from afresh.sources.web.api_client import ApiClient

    client = ApiClient([server.base_url])
    answer = await client.ask("POST", server.base_url + path, {"x-goog-api-key": KEY, **headers}, body, 10)
    await client.close()
    return answer.status, json.loads(answer.data or b"{}")
