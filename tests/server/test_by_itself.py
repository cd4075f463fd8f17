"""What a server does by itself: scheduled runs, syncs after runs, the index of files; and what it lets go."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened, settings
from tests.e2e.sites import lay, star, word
from tests.postgres import Postgres
from tests.server.log_lines import hearing
from tests.server.served import Client, served

from afresh.testing import FrozenClock, TinySite

API = "/api/v1"
WORDS = {"embedding.provider": "none"}
SECONDS = 5.0  # within which a cancelled run is let go


async def test_C1_D22_E14_F25_two_servers_start_a_run_once_sync_after_it_and_write_the_index(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    monkeypatch.setattr("afresh.services.sinks.POLL_SECONDS", 0.1)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tea.md").write_text("# Tea\n\nWater first, then leaves.\n", "utf-8")
    flags: dict[str, object] = {
        "store.url": await postgres.emptied(),
        "sinks.out.kind": "folder",
        "sinks.out.path": str(tmp_path / "out"),
        "sinks.out.sources": ["docs"],
        "kb.sources_dir": str(tmp_path / "notes"),
        "kb.index_path": str(tmp_path / "index.txt"),
        "kb.index_cache_path": str(tmp_path / "cache.json"),
        **WORDS,
    }
    store, config = tmp_path / "kb.db", settings(tmp_path / "kb.db", flags)

    def copied() -> str:
        return "".join(each.read_text("utf-8") for each in (tmp_path / "out").rglob("*.md"))

    with TinySite() as site:
        lay(site, star(3))
        past = datetime.now(UTC) - timedelta(days=2)
        async with opened(store, flags, clock=FrozenClock(past)) as kb:
            await kb.runs.crawl(site.url, name="docs")
            await kb.schedules.set_rule(await kb.sources.labelled(["docs"]), "every 1d")
        site.edit("/p1", add_paragraph=word("/news"))
        with hearing() as log:
            async with (
                served(store, schedules=True, config=config) as one,
                served(store, schedules=True, works=False, config=config) as two,
            ):
                at = await log.line("run ended", "'source': 'docs'", "'changed': 1")
                while word("/news") not in copied():
                    at = await log.line("synced", "out", after=at)
                await log.line("index.txt: its source kb/files is up to date")
                assert "Tea" in (tmp_path / "index.txt").read_text("utf-8")
                for client in (one, two):
                    [view] = (await client.get(f"{API}/schedules"))["items"]
                    assert (view["source"], view["last_state"], view["overdue"]) == (*("docs", "completed"), False)
                    assert (await client.get("/ready"))["schedules"] == "here"
                assert (await two.get("/ready"))["worker"] == "elsewhere"
                runs = (await one.get(f"{API}/sources/{view['source_id']}/runs"))["items"]
                runs = [run for run in runs if run["mode"] != "sync"]
                assert [(run["mode"], run["state"]) for run in runs] == [
                    ("refresh", "completed"),
                    ("crawl", "completed"),
                ]
                assert runs[0]["run"] == view["last_run"]


async def test_F110_a_run_whose_page_never_answers_is_cancelled_within_seconds_through_rest_and_mcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    ticks = asyncio.get_running_loop().time
    with TinySite() as site:
        lay(site, star(3))
        held = [site.hold("/robots.txt"), site.hold("/p1")]  # before the first page, and among them
        with hearing() as log:
            async with served(tmp_path / "kb.db", config=settings(tmp_path / "kb.db", WORDS)) as client:
                new = {"target": site.url, "name": "docs"}
                _, source = await client.ask("POST", f"{API}/sources", json=new)
                run = source["last_run"]
                for gate, path, cancel in zip(held, ("/robots.txt", "/p2"), (by_rest, by_mcp), strict=True):
                    await gate.arrived(timeout=60)
                    began, at = ticks(), len(log.lines)
                    await cancel(client, run)
                    assert (await client.get(f"{API}/runs/{run}"))["state"] == "cancelled"
                    await log.line(f"run {run} is skipped", "was cancelled", after=at)
                    assert ticks() - began < SECONDS
                    site.release(path)
                    again = await client.ask("POST", f"{API}/runs", json={"source_id": source["id"]})
                    assert (again[0], again[1]["run"]) == (202, run)
                await held[1].arrived(2, timeout=60)
                site.release("/p1")
                assert '"state":"completed"' in (await client.events(run))[-1]
                assert (await client.get(f"{API}/runs/{run}"))["new"] == 4


async def by_rest(client: Client, run: int) -> None:
    """Cancel as a script does."""
    status, content = await client.ask("POST", f"{API}/runs/{run}/cancel")
    assert (status, content["state"]) == (200, "cancelled")


async def by_mcp(client: Client, run: int) -> None:
    """Cancel as an agent does."""
    call = {"name": "cancel_job", "arguments": {"jobId": run}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = {"accept": "application/json, text/event-stream"}
    async with client.session.post("/mcp", json=message, headers=accepts) as answer:
        content = await answer.text()
    assert answer.status == 200
    assert '"status":"cancelled"' in content.replace("\\", "").replace(": ", ":"), json.dumps(content)
