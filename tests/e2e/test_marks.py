"""The mark of a source: it names a state that was read whole, and nothing else is ever taken for it."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import counts, opened
from tests.fakes.github_server import GithubServer

from afresh.crawl.tools import RunOptions
from afresh.events import ignore
from afresh.kb import KnowledgeBase
from afresh.model.records import RunMode
from afresh.ops import failpoints

OLD = 1_600_000_000_000_000_001


def put(path: Path, text: str, at: int = OLD) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(at, at))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for number in range(4):
        put(folder / f"f{number}.md", f"# Page {number}\n\nalpha text {number}\n")
    return folder


async def texts(kb: KnowledgeBase, label: str = "docs") -> dict[str, str]:
    active = [page.url for page in await kb.pages.of_source(label) if str(page.status) == "active"]
    return {url.rpartition("/")[2]: (await kb.pages.open(url)).markdown.split()[3] for url in active}


def at_failpoint(monkeypatch: pytest.MonkeyPatch, name: str, act: object) -> None:
    """Do something once when a run reaches a place."""
    waiting = [act]

    def hit(reached: str) -> None:
        if reached == name and waiting:
            waiting.pop()()  # type: ignore[operator]

    monkeypatch.setattr(failpoints, "_hit", hit)
    monkeypatch.setitem(failpoints._armed, "x", failpoints._Armed("raise", 1))


def edit(path: Path, word: str) -> None:
    put(path, f"# Page 0\n\n{word} text, and longer than before\n", OLD + 10**12)


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_F01_a_change_between_a_kill_and_its_resumption_is_seen(
    docs: Path, store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    pid = os.fork()
    if pid == 0:
        os.environ["AFRESH_FAILPOINTS"] = "finish.begin=kill"

        async def doomed() -> None:
            async with opened(store) as kb:
                await kb.runs.crawl(str(docs), name="docs")

        asyncio.new_event_loop().run_until_complete(doomed())
        os._exit(0)
    os.waitpid(pid, 0)  # noqa: ASYNC222
    if change == "edit":
        edit(docs / "f0.md", "gamma")
    else:
        (docs / "f0.md").unlink()
    async with opened(store) as kb:
        for _ in range(3):
            await kb.runs.refresh(["docs"])
        assert (await texts(kb)).get("f0.md") == ("gamma" if change == "edit" else None)


async def test_a_file_that_was_moved_away_and_back_during_a_run_is_found_again(
    docs: Path, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = docs.parent / "away.md"
    at_failpoint(monkeypatch, "run.filled", lambda: (docs / "f0.md").rename(away))
    await kb.runs.crawl(str(docs), name="docs")
    away.rename(docs / "f0.md")
    await kb.runs.refresh(["docs"])
    assert "f0.md" in await texts(kb)


async def test_F81_a_file_that_was_read_as_another_than_listed_is_read_again(
    docs: Path, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_failpoint(monkeypatch, "run.filled", lambda: edit(docs / "f0.md", "gamma"))
    await kb.runs.crawl(str(docs), name="docs")
    put(docs / "f0.md", "# Page 0\n\nalpha text 0\n")  # restored with its time, as cp -p does
    await kb.runs.refresh(["docs"])
    assert (await texts(kb))["f0.md"] == "alpha"


async def test_the_mark_is_not_older_than_the_run_that_believes_it(docs: Path, kb: KnowledgeBase) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    [early] = await kb._context.store.sources.all()  # `refresh` of many reads them all before the first run
    edit(docs / "f0.md", "gamma")
    await kb.runs.refresh(["docs"])  # another process, in the meantime
    put(docs / "f0.md", "# Page 0\n\nalpha text 0\n")
    await kb.runs._runner.run(early, RunOptions(mode=RunMode.REFRESH), ignore)
    assert (await texts(kb))["f0.md"] == "alpha"


async def test_F82_a_time_in_the_future_hides_no_change(docs: Path, kb: KnowledgeBase) -> None:
    future = time.time_ns() + 10**18
    put(docs / "f0.md", "# Page 0\n\nalpha text 0\n", future)
    await kb.runs.crawl(str(docs), name="docs")
    put(docs / "f0.md", "# Page 0\n\ngamma text 0\n", future)
    await kb.runs.refresh(["docs"])
    assert (await texts(kb))["f0.md"] == "gamma"


async def test_a_raised_limit_of_size_lets_files_in(docs: Path, store: Path, work: type[InProcess]) -> None:
    put(docs / "f0.md", "# Page 0\n\nalpha " + "text " * 1000)
    async with opened(store, {"files.max_file_bytes": 1024}) as kb:
        await kb.runs.crawl(str(docs), name="docs")
    async with opened(store) as kb:
        await kb.runs.refresh(["docs"])
        assert "f0.md" in await texts(kb)


async def test_F80_an_empty_tree_beside_a_wiki_deletes_nothing(store: Path, work: type[InProcess]) -> None:
    with GithubServer() as server:
        files = {f"d{each}.md": f"# D{each}\n\nalpha text {each}\n".encode() for each in range(8)}
        server.push(files)
        server.repository.pages = {"Home": "<p>Welcome to the wiki, which has some text to read.</p>"}
        async with opened(store, server.settings) as kb:
            await kb.runs.crawl("octo/docs", name="docs")
            server.push({**files, "n.md": b"# New"})
            server.bend = lambda kind, body: {**body, "tree": []} if kind == "tree" else body
            await kb.runs.refresh(["docs"])
            assert len(await kb.pages.of_source("docs")) >= 8


async def test_rules_that_leave_out_everything_are_obeyed_and_no_empty_folder(docs: Path, kb: KnowledgeBase) -> None:
    await kb.runs.crawl(str(docs), name="docs")
    (docs / ".gitignore").write_text("*.md\n")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, counts(report)) == ("completed", {"deleted": 4})
