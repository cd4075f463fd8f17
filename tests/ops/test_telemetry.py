"""OpenTelemetry: spans of requests, runs and looks, without secrets; not even an import where it is off."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.e2e.inprocess import InProcess
from tests.fakes.servers import answer, serving
from tests.server.served import served

from afresh.config import load
from afresh.errors import ConfigError
from afresh.ops.tracing import export_spans, record_spans
from afresh.testing import TinySite

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COMMAND = """
import sys
from afresh.cli import main
code = main(sys.argv[1:])
print(code, any(name.startswith("opentelemetry") for name in sys.modules))
"""


def last_words(folder: Path, *command: str, **more: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment |= {"AFRESH_NETWORK__ALLOW": "127.0.0.1", "AFRESH_CRAWL__PROBE": "false", **more}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *command, "--store", f"sqlite:///{folder / 'kb.db'}"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1].split()


def reported(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_requests_and_runs_are_reported_with_the_caller_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    exporter = InMemorySpanExporter()
    with record_spans(exporter, 1.0), TinySite() as site:
        site.put("/", "<h1>Root</h1><p>Some text about harbors.</p><a href='/a?token=hush'>a</a>")
        site.put("/a?token=hush", "<h1>A</h1><p>Some text about anchors.</p>")
        async with served(tmp_path / "kb.db") as client:
            status, source = await client.ask("POST", "/api/v1/sources", json={"target": site.url})
            assert status == 201, source
            place, caller = "/api/v1/sources/77?token=hush", {"traceparent": CALLER}
            assert (await client.ask("GET", place, headers=caller))[0] == 404
            ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            accept = {"accept": "application/json, text/event-stream"}
            async with client.session.post("/mcp", json=ask, headers=accept) as reply:
                await reply.read()
            _, runs = await client.ask("GET", "/api/v1/runs")
            await client.events(runs["items"][0]["run"])
    spans = {span.name: span for span in exporter.get_finished_spans()}
    asked = spans["GET /api/v1/sources/{number}"]
    assert not [span for span in spans.values() if span.parent and span.parent == asked.context]
    assert reported(asked)["http.response.status_code"] == 404
    assert asked.parent
    assert f"{asked.parent.trace_id:032x}" == CALLER.split("-")[1]
    assert {"POST /mcp", "tools/list"} <= set(spans)
    run = spans["run"]
    assert (reported(run)["afresh.state"], reported(run)["afresh.checked"]) == ("completed", 2)
    looks = [span for span in exporter.get_finished_spans() if span.name == "look"]
    assert {reported(span)["afresh.look"] for span in looks} == {"Body"}
    assert {span.context.trace_id for span in looks if span.context} == {run.context.trace_id if run.context else 0}
    assert "hush" not in "".join(span.to_json() for span in exporter.get_finished_spans())


@pytest.mark.slow
async def test_a_command_sends_spans_to_the_collector_that_the_environment_names(tmp_path: Path) -> None:
    async with serving({"/v1/traces": answer(200)}) as wire:
        with TinySite() as site:
            site.put("/", "<h1>Root</h1><p>Some text about harbors.</p>")
            collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": wire.url("")}
            message = await asyncio.to_thread(last_words, tmp_path, "crawl", site.url, **collector)
        assert message == ["0", "True"]
        found = [ExportTraceServiceRequest.FromString(asked.body) for asked in wire.asked]
    groups = [group for each in found for group in each.resource_spans]
    names = [span.name for group in groups for scope in group.scope_spans for span in scope.spans]
    assert names == ["run"]  # one look in a hundred
    assert "afresh" in {each.value.string_value for each in groups[0].resource.attributes}


def test_where_it_is_off_nothing_is_imported_and_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert last_words(tmp_path, "token", "create", "--scope", "read") == ["0", "False"]
    config = load(None, {}, {"telemetry.endpoint": "http://127.0.0.1:9"}, tmp_path)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"afresh\[otel\]"), export_spans(config):
        pass
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with export_spans(load(None, {}, {}, tmp_path)):  # meant for others on this machine
        pass
