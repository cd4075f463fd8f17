"""Syncing from the command line and from real runs: exact counts, kills, many pages, several stores."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.library import opened
from tests.e2e.program import TIMEOUT

from afresh.config.server import SinkSettings
from afresh.errors import UsageError
from afresh.model.filters import PageFilter
from afresh.model.records import PageStatus
from afresh.ops.failpoints import VARIABLE
from afresh.sync import sync
from afresh.sync.copy import Remote, RemoteState, Upload
from afresh.testing import ScriptedSink

QUIET = {"embedding.provider": "none", "policy.brake_percent": 100.0}


def to(folder: Path, name: str = "out", **more: object) -> dict[str, object]:
    """Settings of a folder as external store."""
    settings = {"kind": "folder", "path": str(folder), **more}
    return {**QUIET, **{f"sinks.{name}.{key}": value for key, value in settings.items()}}


def texts(folder: Path) -> set[str]:
    """The Markdown of all files."""
    return {path.read_text("utf-8").split("\n---\n\n", 1)[1] for path in folder.rglob("*.md")}


@pytest.mark.slow
@pytest.mark.usefixtures("work")
async def test_D5_D6_D7_D20_four_versions_of_a_documentation_cost_exactly_what_changed(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads are what was added or modified, deletes what was removed or modified."""
    sink = ScriptedSink()

    def scripted(name: str, settings: SinkSettings, user_agent: str) -> ScriptedSink:
        return sink

    monkeypatch.setattr(sync, "open_sink", scripted)
    docs = tmp_path / "docs"
    trees: dict[str, dict[str, bytes]] = {}
    with tarfile.open(shared / "data" / "docs-refresh" / "fastapi.tar.xz") as archive:
        for member in archive:
            if (file := archive.extractfile(member)) and member.name.endswith(".md"):
                version, _, name = member.name.removeprefix("./").partition("/")
                trees.setdefault(version, {})[name] = file.read()
    same = {name for name in trees["s1"] if len({tree.get(name) for tree in trees.values()}) == 1}
    kept = {*sorted(same)[:5], *sorted({name for tree in trees.values() for name in tree} - same)[::3]}
    async with opened(tmp_path / "kb.db", to(tmp_path / "unused")) as kb:
        for version in sorted(trees):
            _lay(docs, {name: data for name, data in trees[version].items() if name in kept})
            run = await kb.runs.crawl(str(docs), name="docs")
            sink.calls.clear()
            ready = await kb.pages.of_source("docs", PageFilter(status=PageStatus.READY_FOR_INDEXING))
            assert len(ready) == run.new + run.changed > 0
            [report] = await kb.sinks.sync()
            assert (report.uploaded, report.replaced, report.deleted) == (run.new, run.changed, run.deleted)
            assert sink.count("put") == run.new + run.changed
            assert sink.count("drop") == run.deleted + run.changed
            pages = await kb.pages.of_source("docs")
            marks = {each.mark.page: each.mark.hash for each in sink.documents.values() if each.mark}
            assert marks == {page.id: page.content_hash for page in pages}
            assert {page.status for page in pages} == {PageStatus.ACTIVE}


def _lay(folder: Path, tree: Mapping[str, bytes]) -> None:
    for old in folder.rglob("*.md"):
        if old.relative_to(folder).as_posix() not in tree:
            old.unlink()
    for name, data in tree.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


async def _ended(command: list[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    return await asyncio.to_thread(
        subprocess.run, command, env=env, timeout=TIMEOUT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
async def test_F07_F98_a_sync_that_is_killed_goes_on_in_the_next_without_doubles(tmp_path: Path) -> None:
    docs, out = tmp_path / "docs", tmp_path / "out"
    _lay(docs, {f"{number}.md": f"# Page {number}\n".encode() for number in range(6)})
    async with opened(tmp_path / "kb.db", QUIET) as kb:
        await kb.runs.crawl(str(docs), name="docs")
        with pytest.raises(UsageError, match="no external store is configured"):
            await kb.sinks.sync()
    config = tmp_path / "afresh.yaml"
    config.write_text(
        f'store: {{url: "sqlite:///{tmp_path / "kb.db"}"}}\n'
        f"sinks: {{out: {{kind: folder, path: {json.dumps(str(out))}, at_once: 2}}}}\n"
    )
    command = [sys.executable, "-m", "afresh", "--config", str(config), "sync", "--json"]
    killed = {**os.environ, VARIABLE: "sync.put=kill@3"}
    assert (await _ended(command, killed)).returncode == -signal.SIGKILL
    assert 2 <= len(texts(out)) < 6
    ended = await _ended(command, os.environ)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["audit"]["adopted"] >= 1
    assert report["uploaded"] + report["audit"]["adopted"] + 2 == 6
    async with opened(tmp_path / "kb.db", QUIET) as kb:  # R9: what was killed is closed, and no crawl waits
        mended, dead, crawl = await kb.runs.records(await kb.sources.ids("docs"))
        assert [each.mode for each in (mended, dead, crawl)] == ["sync", "sync", "crawl"]
        assert (mended.state, dead.state, report["runs"]) == ("completed", "failed", [mended.run])
        assert "interrupted" in str(dead.error)
        done = await kb.runs.documents(mended.run, limit=9)
        assert {each.outcome for each in done} <= {"uploaded", "adopted"}
        assert len(done) == report["uploaded"] + report["audit"]["adopted"]
    assert texts(out) == {f"# Page {number}\n" for number in range(6)}
    config.write_text(config.read_text().replace(str(out), str(tmp_path / "gone" / "out")))
    ended = await _ended(command, os.environ)  # F97: another place, which cannot be reached
    assert (ended.returncode, json.loads(ended.stdout)["state"]) == (1, "failed")
    assert "gone" in json.loads(ended.stdout)["error"]


async def test_F99_several_stores_hold_different_sources_and_what_is_removed_leaves(tmp_path: Path) -> None:
    _lay(tmp_path / "a", {"a.md": b"# A\n"})
    _lay(tmp_path / "b", {"b.md": b"# B\n"})
    one, two = tmp_path / "one", tmp_path / "two"
    flags = {**to(one, "one", sources=["a"]), **to(two, "two", replace="upload_first")}
    async with opened(tmp_path / "kb.db", flags) as kb:
        for name in "ab":
            await kb.runs.crawl(str(tmp_path / name), name=name)
        first = {report.sink: report for report in await kb.sinks.sync(dry_run=True)}
        assert (first["one"].uploaded, first["two"].uploaded, one.exists()) == (1, 2, False)
        await kb.sinks.sync(["b"])
        assert (texts(one), texts(two)) == (set(), {"# B\n"})
        await kb.sinks.sync()
        assert (texts(one), texts(two)) == ({"# A\n"}, {"# A\n", "# B\n"})
        views = (await kb.sources.view("a")).sinks or ()
        assert [(view.sink, view.states) for view in views] == [("one", {"active": 1}), ("two", {"active": 1})]
        why = await kb.pages.explain((tmp_path / "b" / "b.md").as_uri())
        assert [(copy.sink, copy.state) for copy in why.page.copies] == [("two", PageStatus.ACTIVE)]
        with pytest.raises(UsageError, match="there is no sink three; configured are: one, two"):
            await kb.sinks.sync(to=["three"])
        await kb.sources.remove("a")
        reports = {report.sink: report for report in await kb.sinks.sync()}
        assert (reports["one"].deleted, reports["two"].deleted) == (1, 1)
        assert (texts(one), texts(two)) == (set(), {"# B\n"})


def memory() -> int:
    """Bytes that this process holds of its own."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line]
    return int(line.split()[1]) * 1024


@dataclass(slots=True)
class Forgetful(ScriptedSink):
    """Keeps no text, and notes how much memory its guest takes."""

    most: int = 0

    async def put(self, upload: Upload) -> Remote:
        remote = await ScriptedSink.put(self, upload)
        self.texts.clear()
        if self.count("put") % 50 == 0:
            self.most = max(self.most, memory())
        return remote


@pytest.mark.slow
async def test_P18_two_thousand_pages_are_synced_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Forgetful(at_once=40, arrives=RemoteState.ACTIVE)
    monkeypatch.setattr(sync, "open_sink", lambda name, settings, user_agent: sink)
    _lay(tmp_path / "docs", {"a.md": b"# A\n"})
    async with opened(tmp_path / "kb.db", to(tmp_path / "out")) as kb:
        await kb.runs.crawl(str(tmp_path / "docs"), name="docs")
        with closing(sqlite3.connect(tmp_path / "kb.db")) as db, db:
            db.execute(
                "with recursive n (i) as (select 10 union all select i + 1 from n where i < 2009) "
                "insert into pages (id, source_id, url, status, content_hash, created_at, updated_at) "
                "select i, s.id, 'file:///' || i, 'active', 'h' || i, s.created_at, s.updated_at "
                "from n, sources s"
            )
            db.execute(
                "insert into documents (page_id, markdown) select id, hex(zeroblob(20000)) from pages where id >= 10"
            )
        before = memory()
        [report] = await kb.sinks.sync()
        assert (report.uploaded, len(sink.documents), report.state) == (2001, 2001, "completed")
        assert sink.most - before < 40_000_000  # of 80 MB of text
        assert sink.most_at_once == 40


@pytest.mark.usefixtures("work")
async def test_pages_by_status_are_those_of_sources_with_and_without_external_stores(tmp_path: Path) -> None:
    for name in ("copied", "kept", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nSome text about {name}.\n")
    async with opened(tmp_path / "kb.db", to(tmp_path / "out", sources=["copied"])) as kb:
        for name in ("kept", "copied", "more"):
            await kb.runs.crawl(str(tmp_path / name), name=name)

        async def titles(status: PageStatus, *, after: int = 0, limit: int = 9) -> list[str | None]:
            pages = await kb.pages.records(None, PageFilter(status=status), after=after, limit=limit)
            return [page.title for page in pages]

        assert await titles(PageStatus.READY_FOR_INDEXING) == ["copied"]
        assert await titles(PageStatus.ACTIVE) == ["kept", "more"]
        await kb.sinks.sync()
        assert await titles(PageStatus.ACTIVE) == ["kept", "copied", "more"], "in the order of their numbers"
        assert await titles(PageStatus.ACTIVE, limit=2) == ["kept", "copied"]
        assert await titles(PageStatus.ACTIVE, after=1) == ["copied", "more"]
