"""`afresh serve` as a process: it says where it is, answers while it works, and ends when told to."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import IO, Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import settings
from tests.e2e.program import Program, ended
from tests.e2e.sites import lay, star
from tests.server.served import served

from afresh.errors import UsageError
from afresh.model.reports import RunReport
from afresh.server.uvicorn_server import open_socket
from afresh.services.runs import RunService
from afresh.testing import TinySite

SLOW = {"delay_seconds": 0.05, "concurrency": 1}


def asked(url: str, path: str, body: object = None) -> Any:
    """The JSON of an answer."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def address(process: "subprocess.Popen[str]") -> str:
    """Where a server says it is."""
    lines: IO[str] | None = process.stderr
    assert lines is not None
    for line in lines:
        if "Serving at" in line:
            return line.split("Serving at ")[1].split(" ")[0]
    raise AssertionError("it never said where")


def test_a_stopped_server_leaves_its_run_open_and_the_next_continues(tmp_path: Path) -> None:
    program = Program(tmp_path / "kb.db", in_process=True)
    with TinySite() as site:
        lay(site, star(20))
        first = program.start("serve", "--port", "0")
        url = address(first)
        made = asked(url, "/api/v1/sources", {"target": site.url, "name": "docs", "settings": SLOW})
        watched = f"{url}/api/v1/runs/{made['last_run']}/events"
        with urllib.request.urlopen(watched, timeout=60) as events:
            while b'"checked":0,' in (line := events.readline()) or not line.startswith(b"data"):
                assert line, "it ended before it began"
            assert asked(url, "/api/v1/search?q=text")["notes"] is not None, "answers while it works"
            first.send_signal(signal.SIGTERM)
            events.read()
        assert ended(first).code == 0
        second = program.start("serve", "--port", "0")
        url = address(second)
        with urllib.request.urlopen(f"{url}/api/v1/runs/{made['last_run']}/events", timeout=60) as events:
            assert b"event: end" in events.read()
        report = asked(url, f"/api/v1/runs/{made['last_run']}")
        assert (report["state"], report["new"]) == ("completed", 21)
        second.send_signal(signal.SIGTERM)
        assert ended(second).code == 0


def test_a_port_that_is_taken_is_named() -> None:
    taken = open_socket("127.0.0.1", 0)
    try:
        with pytest.raises(UsageError, match="--port"):
            open_socket("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(UsageError, match="--host"):
            open_socket("no such host", 0)
    finally:
        taken.close()


async def test_a_stream_of_events_ends_with_the_server(tmp_path: Path) -> None:
    config = settings(tmp_path / "kb.db")
    async with served(tmp_path / "kb.db", works=False, config=config) as client:
        _, source = await client.ask("POST", "/api/v1/sources", json={"target": "https://docs.example.org/"})
        stream = await client.session.get(f"/api/v1/runs/{source['last_run']}/events")
        assert (await stream.content.readline()).startswith(b"event: progress")
        client.server.leave()
        assert b"event: end" not in await stream.read(), "the run goes on at the next start"


async def test_U4_F171_the_rest_of_a_request_is_not_waited_for_at_the_end(tmp_path: Path) -> None:
    async with served(tmp_path / "kb.db", works=False) as client:
        await client.get("/health")
        reader, writer = await asyncio.open_connection(*client.server.socket.getsockname())
        head = b"POST /api/v1/sources HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n"
        writer.write(head + b"expect: 100-continue\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 100 "), "the body is waited for"
        await reader.readline()
        client.server.leave()
        assert await reader.read() == b"", "closed, and not after the time that answers have"
        writer.close()


async def test_U4_an_agent_that_waits_for_a_job_is_answered_when_the_server_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look = asyncio.Event(), RunService.get

    async def run(kb: RunService, number: int) -> RunReport:
        looked.set()
        return await look(kb, number)

    monkeypatch.setattr(RunService, "get", run)
    async with served(tmp_path / "kb.db", works=False) as client:
        _, source = await client.ask("POST", "/api/v1/sources", json={"target": "https://docs.example.org/"})
        call = {"name": "get_job_info", "arguments": {"jobId": source["last_run"], "wait": 600}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        accepts = {"accept": "application/json, text/event-stream"}
        looked.clear()
        asking = asyncio.create_task(client.session.post("/mcp", json=message, headers=accepts))
        await looked.wait()
        client.server.leave()
        answer = await asking
        assert '"status":"queued"' in await answer.text()


POLLS = [
    "crawl.worker_pool.POLL_SECONDS",
    "schedule.scheduler.POLL_SECONDS",
    "services.webhooks.POLL_SECONDS",
    "services.sinks.POLL_SECONDS",
    "server.api.runs.POLL_SECONDS",
    "server.web.runs.POLL_SECONDS",
    "server.web.runs.IDLE_POLL_SECONDS",
]


async def test_U4_an_idle_server_ends_without_waiting_for_its_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the index is written
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    for poll in POLLS:
        monkeypatch.setattr(f"afresh.{poll}", 86_400.0)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.md").write_text("# A\n\nSome words.\n")
    copies = {"sinks.copies.kind": "folder", "sinks.copies.path": str(tmp_path / "copies")}
    given = {"kb.sources_dir": str(tmp_path / "files"), **copies}
    config = settings(tmp_path / "kb.db", given)
    async with served(tmp_path / "kb.db", schedules=True, config=config) as client:
        await client.get("/health")
        stream = await client.session.get("/live")
        assert await stream.content.readline() == b"event: runs\n"
        assert set(client.server.app.state.server.tasks) == {
            "worker",
            "webhooks",
            "messages",
            "retention",
            "schedules",
            "external stores",
            "knowledge base",
        }
        client.server.leave()
        assert b"event: runs" not in await stream.read()


async def test_F110_a_run_under_way_is_cancelled_and_its_source_deleted_while_the_worker_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    async with served(tmp_path / "kb.db") as client:
        with TinySite() as site:
            lay(site, star(60))
            body = {"target": site.url, "name": "docs", "settings": SLOW}
            _, source = await client.ask("POST", "/api/v1/sources", json=body)
            await client.under_way(source["last_run"])
            again = {"source_id": source["id"]}
            status, content = await client.ask("POST", "/api/v1/runs", json=again)
            assert (status, content["run"]) == (409, source["last_run"])
            status, _ = await client.ask("POST", f"/api/v1/runs/{source['last_run']}/cancel")
            assert status == 200
            assert '"state":"cancelled"' in (await client.events(source["last_run"]))[-1]
            checked = (await client.get(f"/api/v1/runs/{source['last_run']}"))["checked"]
            assert (await client.ask("POST", "/api/v1/runs", json=again))[0] == 202
            await client.under_way(source["last_run"], checked)
            assert (await client.ask("DELETE", f"/api/v1/sources/{source['id']}"))[0] == 204
            assert (await client.get("/api/v1/pages?deleted=true"))["items"] == []
            _, other = await client.ask("POST", "/api/v1/sources", json={"target": site.url, "name": "other"})
            assert '"state":"completed"' in (await client.events(other["last_run"]))[-1]
