"""What is Gemini's own in its sink: the SDK on our connections, and the oddities that were seen of Google."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from tests.fakes.faults import HttpFault
from tests.fakes.gemini_server import KEY, GeminiServer
from tests.sync.remote_stores import page

from afresh.config.server import SinkSettings
from afresh.errors import SinkBusy, SinkError, SinkMissing, SinkRefused
from afresh.ports import ApiResponse
from afresh.sources.web.api_client import ApiClient
from afresh.sync.sinks.gemini import GeminiSink
from afresh.testing import FrozenClock


class GeminiTools:
    """A sink, its server, and the time it waits in."""

    def __init__(self, server: GeminiServer, clock: FrozenClock) -> None:
        self.server = server
        self.waited = 0.0
        self._clock = clock
        settings = SinkSettings(kind="gemini", api_key=KEY, store="kb", base_url=server.base_url)
        self.sink = GeminiSink("team", settings, ApiClient([server.base_url]), sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.waited += seconds
        self._clock.advance(seconds)


@pytest.fixture
async def gemini() -> AsyncIterator[GeminiTools]:
    """A sink and a server with nothing in it."""
    clock = FrozenClock()
    with GeminiServer(clock) as server:
        made = GeminiTools(server, clock)
        yield made
        await made.sink.close()


async def test_the_document_of_an_upload_is_named_by_its_operation_or_by_its_id(gemini: GeminiTools) -> None:
    server, hosted = gemini.server, gemini.server.hosted
    hosted.operation_seconds = 3
    first = await gemini.sink.put(page(1))
    assert (first.id, server.kinds["operations.get"]) == (server.documents[0].name, 0)

    hosted.foreign_operations = True  # operations whose ids are not those of their documents
    second = await gemini.sink.put(page(2))
    assert (second.id, gemini.waited >= 3) == (server.documents[1].name, True)

    server.mute_operations = True
    with pytest.raises(SinkBusy, match="its result is unknown"):
        await gemini.sink.put(page(3))
    assert [each.mark and each.mark.page async for each in gemini.sink.all()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 3, "message": "Failed to count tokens."}, SinkRefused),
        ({"code": 14, "message": "try later"}, SinkBusy),
        ({"code": 5, "message": "the store went away"}, SinkMissing),
    ],
)
async def test_an_operation_that_ends_in_an_error_raises_it(
    gemini: GeminiTools, error: dict[str, object], kind: type[SinkError]
) -> None:
    gemini.server.hosted.operation_error = error
    with pytest.raises(kind, match=str(error["message"])):
        await gemini.sink.put(page(1))
    assert gemini.server.documents == []


async def test_F96_a_403_that_says_it_may_not_exist_is_an_absent_document_as_long_as_the_store_is_there(
    gemini: GeminiTools,
) -> None:
    put = await gemini.sink.put(page(1))
    await gemini.sink.drop(put.id)
    gemini.server.shy = True
    await gemini.sink.drop(put.id)
    assert await gemini.sink.look(put.id) is None
    gemini.server.hosted.stores.clear()
    for call in (gemini.sink.drop, gemini.sink.look):
        with pytest.raises(SinkMissing, match="may not exist"):
            await call(put.id)


async def test_an_error_during_the_upload_is_raised_at_once_and_never_retried_by_the_SDK(
    gemini: GeminiTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def block(seconds: float) -> None:
        raise AssertionError(f"the event loop was blocked for {seconds} s")

    await gemini.sink.look("fileSearchStores/x/documents/y")
    monkeypatch.setattr("time.sleep", block)
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [delay]}
    gemini.server.script.add(HttpFault(status=429, on="upload.bytes", error=error))
    with pytest.raises(SinkBusy) as found_text:
        await gemini.sink.put(page(1))
    assert found_text.value.retry_after == 34.5
    assert gemini.server.kinds["upload.bytes"] == 1


@pytest.mark.parametrize(
    "fault",
    [
        HttpFault(status=503, on="upload.bytes", done=True, retry_after="5"),
        HttpFault(status=200, on="upload.bytes", done=True),  # a gateway that drops the headers
        HttpFault(status=429, on="documents.get", retry_after="5"),
        HttpFault(status=403, on="documents.get"),
        HttpFault(status=500, on="documents.get"),
    ],
    ids=lambda fault: f"{fault.on}-{fault.status}",
)
async def test_F98_an_error_after_the_upload_leaves_a_doubt_and_no_second_upload(
    gemini: GeminiTools, fault: HttpFault
) -> None:
    gemini.server.script.add(fault)
    with pytest.raises(SinkBusy) as found_text:
        await gemini.sink.put(page(1))
    assert found_text.value.retry_after is None  # a time would mean that nothing was added
    assert [each.mark async for each in gemini.sink.all()] == [page(1).mark]
    assert gemini.server.kinds["upload.bytes"] == 1


async def test_an_upload_address_elsewhere_is_not_asked(gemini: GeminiTools) -> None:
    with GeminiServer() as elsewhere:
        gemini.server.upload_base_url = elsewhere.base_url
        with pytest.raises(SinkBusy, match="not one of the APIs in the settings"):
            await gemini.sink.put(page(1))
        assert len(elsewhere.requests) == 0
        assert not elsewhere.saw(KEY)


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"fileSearchStores": 7}', b'{"name": 7}'])
async def test_an_answer_of_another_form_is_no_crash(gemini: GeminiTools, body: bytes) -> None:
    gemini.server.bend = body
    with pytest.raises(SinkBusy, match="sent an unexpected answer"):
        await gemini.sink.put(page(1))
    assert gemini.server.documents == []


async def test_the_environment_leads_the_SDK_nowhere_else_and_the_log_holds_no_secret(
    gemini: GeminiTools, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in {
        "GOOGLE_API_KEY": "another-key",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.DEBUG):
        await gemini.sink.put(page(1))
    assert {each.path.split("/")[1] for each in gemini.server.requests} == {"v1beta", "upload"}
    assert gemini.server.saw(KEY)
    assert not gemini.server.saw("another-key")
    listed_name = [vars(each) for each in caplog.records]
    assert sum(each["name"] == "afresh.sinks" for each in listed_name) == len(gemini.server.requests)
    assert KEY not in repr(listed_name)
    assert "upload_id" not in repr([each for each in listed_name if each["name"] == "afresh.sinks"])


async def test_ten_uploads_go_side_by_side(gemini: GeminiTools) -> None:
    put = await asyncio.gather(*(gemini.sink.put(page(number)) for number in range(gemini.sink.at_once)))
    assert len({each.id for each in put}) == len(gemini.server.documents) == 10
    assert gemini.server.kinds["stores.create"] == 1


@pytest.mark.slow
def test_a_missing_SDK_is_named_with_its_extra_and_its_import_is_paid_by_nobody_else() -> None:
    script = """
import asyncio, sys
import afresh.app, afresh.sync.sinks.gemini as gemini, afresh.sync.sinks.openai
assert not {name for name in sys.modules if name.startswith(("google.genai", "httpx2", "openai."))}
sys.modules["google.genai"] = None
sink = gemini.GeminiSink("team", gemini.SinkSettings(kind="gemini", api_key="k", store="kb"), None)
try:
    asyncio.run(sink.look("x"))
except Exception as error:
    print(type(error).__name__, error)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("SinkRefused sinks.team: kind gemini needs Google's SDK")
    assert "pip install 'afresh[gemini]'" in ran.stdout


@pytest.mark.parametrize("body", [b'{"name": "' + b"a" * 1_100_000 + b'"}', b'{"a": [' + b"1," * 10_000 + b"1]}"])
async def test_S2_F165_the_SDK_is_not_handed_more_than_it_may_parse(body: bytes) -> None:
    class Large:
        async def ask(self, *_: object) -> ApiResponse:
            return ApiResponse(200, {"content-type": "application/json"}, body)

        async def close(self) -> None: ...

    settings = SinkSettings(kind="gemini", api_key=KEY, store="kb", base_url="https://gemini.example")
    sink = GeminiSink("team", settings, Large())
    with pytest.raises(SinkBusy, match="too large for one page of a listing"):
        await sink.put(page(1))
    await sink.close()
