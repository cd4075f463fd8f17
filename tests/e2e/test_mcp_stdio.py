"""`afresh mcp`: real processes, spoken to by the official client and line by line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from tests.e2e.library import assert_sound, opened
from tests.e2e.noisy import NOISE
from tests.e2e.program import ROOT, TIMEOUT, Program
from tests.e2e.sites import BusySite, lay, page, star

from afresh.testing import TinySite

TOOLS = {
    *("search_docs", "list_libraries", "find_version", "fetch_url", "list_jobs", "get_job_info"),
    *("what_changed", "scrape_docs", "refresh_version", "cancel_job", "remove_docs"),
}
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def command(program: Program, *words: str, module: str = "tests.e2e.mortal") -> list[str]:
    """The command that a client starts."""
    return [sys.executable, "-m", module, "mcp", *words, "--config", str(program.file)]


class Raw:
    """A client that writes lines and reads lines, and believes nothing."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.received: list[dict[str, Any]] = []
        self._id = 0

    def write(self, line: str) -> None:
        """Send a line, whatever it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def send(self, method: str, **params: Any) -> int:
        """Send a request."""
        self._id += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))
        return self._id

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request; every line until then must be the protocol's."""
        number = self.send(method, **params)
        assert self.process.stdout is not None
        while True:
            message = json.loads(self.process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            self.received.append(message)
            if message.get("id") == number:
                return message  # type: ignore[no-any-return]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]  # type: ignore[no-any-return]


@contextmanager
def raw(program: Program, *words: str, module: str = "tests.e2e.mortal") -> Iterator[Raw]:
    """A server and a raw client that has shaken hands; killed if it is left running."""
    environment = {**os.environ, **program.environment()}
    process = subprocess.Popen(
        command(program, *words, module=module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
        cwd=ROOT,
    )
    try:
        client = Raw(process)
        assert client.ask("initialize", **HANDSHAKE)["result"]["serverInfo"]["name"] == "afresh"
        client.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        yield client
    finally:
        process.kill()
        process.communicate()


async def test_the_official_client_lists_and_calls_every_tool_over_stdio(store: Path) -> None:
    program = Program(store, in_process=True)
    words = command(program)
    server = StdioServerParameters(
        command=words[0], args=words[1:], env={**os.environ, **program.environment()}, cwd=ROOT
    )
    reported: list[float] = []

    async def say(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    with TinySite() as site:
        lay(site, star(5))
        async with Client(stdio_client(server)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == TOOLS
            assert all(tool.output_schema for tool in tools.values())
            assert not [name for name, tool in tools.items() if "\n" in (tool.description or "")], "one line each"
            called = set()

            async def call(name: str, **arguments: Any) -> Any:
                called.add(name)
                result = await client.call_tool(name, arguments, progress_callback=say)
                assert not result.is_error, result
                return result.structured_content

            job = await call("scrape_docs", url=site.url, library="docs", version="2", wait=TIMEOUT)
            assert (job["status"], job["new"]) == ("completed", 6)
            assert reported
            found = await call("search_docs", query="wxp3", library="docs", limit=1)
            [hit] = found["results"]
            assert (hit["url"], hit["version"]) == (site.at("/p3"), "2")
            assert hit["checked_at"]
            assert hit["changed_at"]
            assert (found["weak"], hit["relevance"]) == (False, 1)
            weak = await client.call_tool("search_docs", {"query": "wxp3 xyzzyqwv blorptang vontifex frimmish"})
            assert weak.structured_content["weak"]
            assert "no good match for this query" in str(weak.content[0])
            listed = await call("list_libraries")
            assert [each["source"] for each in listed["libraries"][0]["versions"]] == ["docs@2"]
            assert (await call("find_version", library="docs", targetVersion="^2"))["version"] == "2"
            assert "wxp1" in (await call("fetch_url", url=site.at("/p1")))["text"]
            site.edit("/p1", add_paragraph="something new")
            again = await call("refresh_version", library="docs", version="2", wait=TIMEOUT)
            assert (again["status"], again["changed"]) == ("completed", 1)
            assert (await call("get_job_info", jobId=again["jobId"]))["changed"] == 1
            assert len((await call("list_jobs", status="completed"))["jobs"]) == 2
            changes = await call("what_changed", library="docs", version="2", kind="changed")
            assert "something new" in changes["changes"][0]["diff"]
            library = await client.read_resource("afresh://library/docs@2")
            assert f"afresh://page/{site.at('/p1')}" in library.contents[0].text  # type: ignore[union-attr]
            text = await client.read_resource(f"afresh://page/{site.at('/p1')}")
            assert "something new" in text.contents[0].text  # type: ignore[union-attr]
            assert [each.name for each in (await client.list_resources()).resources] == ["docs@2"]
            with pytest.raises(MCPError, match="not indexed"):
                await client.read_resource("afresh://page/https://nowhere.example/")
            called.add("cancel_job")
            over = await client.call_tool("cancel_job", {"jobId": 1})
            assert over.is_error
            assert "has already ended" in over.content[0].text  # type: ignore[union-attr]
            assert (await call("remove_docs", library="docs", version="2"))["pages"] == 6
            assert called == TOOLS
    assert_sound(store)


def test_F109_stdout_carries_nothing_but_the_protocol_and_errors_are_reported(store: Path) -> None:
    program = Program(store, in_process=True)
    with TinySite() as site, raw(program, module="tests.e2e.noisy") as client:
        for index in range(12):  # 12 passages of 6 KB do not fit into one answer
            site.put(f"/p{index}", page(f"P{index}", text="tall tales " * 700))
        site.put("/", page("Root", [f"/p{index}" for index in range(12)]))
        assert client.call("scrape_docs", url=site.url, library="docs", wait=TIMEOUT)["structuredContent"]["new"]
        half = {"name": "list_jobs", "arguments": {"library": "\ud800"}}
        for line in ("this is no JSON", "[" * 100_000, f'{{"id": "{"x" * 5_000_000}"}}'):
            client.write(line)
        client.write(json.dumps({"jsonrpc": "2.0", "id": 98, "method": "tools/call", "params": half}))
        client.write('{"jsonrpc": "2.0", "id": 99, "method": "no/such"}')
        unknown = client.ask("tools/call", name="no_such_tool", arguments={})["error"]
        assert (unknown["code"], "search_docs" in unknown["message"]) == (-32602, True)
        assert {98, 99} <= {each.get("id") for each in client.received}
        for arguments, says in (
            ({}, "query is missing"),
            ({"query": "x", "limit": "many"}, "limit: Input should be a valid integer"),
            ({"query": "x", "limitt": 3}, "takes no 'limitt'; its arguments are: query"),
            ({"query": "x", "library": "dogs"}, "did you mean docs"),
            ({"query": "x", "version": "2"}, "version needs a library"),
            ({"query": "x", "cursor": "WzMsICJ4Il0"}, "start again without a cursor"),
        ):
            wrong = client.call("search_docs", **arguments)
            assert wrong["isError"], arguments
            assert says in wrong["content"][0]["text"]
            assert "Traceback" not in wrong["content"][0]["text"]
        seen: list[str] = []
        more: dict[str, str] = {}
        while not seen or more:
            part = client.call("search_docs", query="tall tales", library="docs", limit=12, **more)
            seen += [each["url"] for each in part["structuredContent"]["results"]]
            cursor = part["structuredContent"]["nextCursor"]
            more = {"cursor": cursor} if cursor else {}
        assert len(set(seen)) == len(seen) >= 12
        for _ in range(2):
            found = client.call("find_version", library="docs")
            assert found["structuredContent"]["unversioned"]
            assert found["content"][0]["text"].endswith("\ndocs is indexed without a version.")
        assert max(len(json.dumps(each, ensure_ascii=False).encode()) for each in client.received[2:]) <= 50_000
        rest, errors = client.process.communicate(timeout=TIMEOUT)  # hangs up
        assert client.process.returncode == 0
        assert all("jsonrpc" in json.loads(line) for line in rest.splitlines())
        assert errors.count(NOISE) == 6
        assert "Traceback" not in errors
    assert_sound(store)


async def test_a_job_outlives_its_session_and_goes_on_with_the_next(store: Path) -> None:
    program = Program(store, in_process=True)
    with BusySite() as site:
        lay(site, star(30))
        held = ["/p0", "/p1", "/p2"]  # as many as are asked for at a time
        gates = [site.hold(path) for path in held]
        with raw(program) as client:
            job = client.call("scrape_docs", url=site.url, library="docs")["structuredContent"]
            assert (job["jobId"], job["status"] in ("queued", "running")) == (1, True)
            client.send("tools/call", name="get_job_info", arguments={"jobId": 1, "wait": TIMEOUT})
            for gate in gates:
                gate.wait(timeout=TIMEOUT)
            client.process.send_signal(signal.SIGTERM)
            for path in held:
                site.release(path)
            assert client.process.wait(TIMEOUT) == 0  # though the client still holds the line
        async with opened(store) as kb:
            assert (await kb.runs.get(1)).state == "queued"
        with raw(program) as client:
            done = client.call("get_job_info", jobId=1, wait=TIMEOUT)["structuredContent"]
            assert (done["status"], done["new"]) == ("completed", 31)
            client.process.send_signal(signal.SIGTERM)
            assert client.process.wait(TIMEOUT) == 0
    assert_sound(store)
