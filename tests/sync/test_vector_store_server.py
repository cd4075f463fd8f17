"""The vector store server on loopback, asked by OpenAI's SDK; and what is OpenAI's own in its sink."""

from collections.abc import AsyncIterator, Iterator

import openai
import pytest
from tests.fakes.faults import HttpFault
from tests.fakes.gemini_hosted import after
from tests.fakes.vector_store_server import KEY, VectorStoreServer
from tests.sync.remote_stores import page

from afresh.config.server import SinkSettings
from afresh.errors import SinkBusy, SinkMissing
from afresh.sources.web.api_client import ApiClient
from afresh.sync.sinks.openai import OpenAISink
from afresh.testing import FrozenClock


@pytest.fixture
def server() -> Iterator[VectorStoreServer]:
    """A server with nothing in it."""
    with VectorStoreServer(FrozenClock()) as running:
        yield running


@pytest.fixture
async def sink(server: VectorStoreServer) -> AsyncIterator[OpenAISink]:
    """A sink that asks it."""
    made = OpenAISink(
        "team",
        SinkSettings(kind="openai", api_key=KEY, store="kb", base_url=server.base_url),
        ApiClient([server.base_url]),
    )
    yield made
    await made.close()


async def test_the_SDK_of_OpenAI_understands_every_answer(server: VectorStoreServer) -> None:
    async with openai.AsyncOpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client:
        store = await client.vector_stores.create(name="kb")
        file = await client.files.create(file=("tides.md", b"# Tides"), purpose="assistants")
        server.fates = [after(60)]
        places = client.vector_stores.files
        placed = await places.create(store.id, file_id=file.id, attributes={"page": "7"})
        assert (placed.status, placed.attributes) == ("in_progress", {"page": "7"})
        assert isinstance(server.clock, FrozenClock)
        server.clock.advance(60)
        assert (await places.retrieve(file.id, vector_store_id=store.id)).status == "completed"
        assert (await client.files.retrieve(file.id)).filename == "tides.md"
        for number in range(23):
            server.add(store.id, f"{number}.md", b"more")
        listed = [each.id async for each in places.list(store.id, limit=20, order="asc")]
        assert listed == [each.id for each in server.documents]
        assert server.documents[0].text == "# Tides"
        assert (await places.delete(file.id, vector_store_id=store.id)).deleted
        assert (await client.files.delete(file.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.files.retrieve(file.id)
        assert [each.name async for each in client.vector_stores.list()] == ["kb"]
        assert (await client.vector_stores.delete(store.id)).deleted
    assert (server.documents, server.kinds["other"]) == ([], 0)


async def test_a_file_that_gets_no_place_is_removed_again(server: VectorStoreServer, sink: OpenAISink) -> None:
    server.script.add(HttpFault(status=503, on="POST vector_stores/files"))
    with pytest.raises(SinkBusy):
        await sink.put(page(1))
    assert server.files == {}


async def test_F96_a_drop_that_was_cut_short_is_finished_by_the_next(
    server: VectorStoreServer, sink: OpenAISink
) -> None:
    put = await sink.put(page(1))
    server.script.add(HttpFault(status=500, on="DELETE files"))
    with pytest.raises(SinkBusy):
        await sink.drop(put.id)
    assert [each.id async for each in sink.all()] == [put.id]
    await sink.drop(put.id)
    assert server.files == {}


async def test_a_store_that_has_expired_is_gone(server: VectorStoreServer, sink: OpenAISink) -> None:
    server.stores[server.make_store("kb")]["status"] = "expired"
    with pytest.raises(SinkMissing, match="has expired"):
        await sink.put(page(1))


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"data": 7}', b'{"data": [{"name": "kb"}]}'])
async def test_an_answer_of_another_form_is_no_crash(server: VectorStoreServer, sink: OpenAISink, body: bytes) -> None:
    server.bend = body
    with pytest.raises(SinkBusy, match="sent an unexpected answer"):
        await sink.put(page(1))
    assert server.files == {}
