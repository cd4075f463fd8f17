"""What people are told: reports, evidence and status that are true."""

import asyncio
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import found, opened, rows
from tests.e2e.program import Program
from tests.e2e.sites import lay, page, star, word

from afresh.errors import SourceError, StoreDamaged, StoreError, UsageError
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Outcome
from afresh.model.records import PageStatus
from afresh.store.content import VisitRepository
from afresh.store.pages import PageRepository
from afresh.testing import TinySite


async def test_A16_a_page_that_left_by_absence_says_so(kb: KnowledgeBase, tiny: TinySite) -> None:
    """Neither a negative count nor the 304 of its last look."""
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", []))
    reports = [each for _ in range(3) for each in await kb.runs.refresh(["docs"])]
    assert [(each.missing, each.deleted) for each in reports] == [(1, 0), (1, 0), (0, 1)]
    assert not [note for each in reports for note in each.notes]
    why = await kb.pages.explain(tiny.at("/a"))
    assert why.status is PageStatus.DELETED
    assert why.summary.startswith("no link led here in 3 complete runs")


async def test_a_dead_link_is_reported_in_a_note(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/nowhere"]})
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert report.notes == (f"1 broken link (404 or 410): `afresh attempts {report.run} --outcome gone` lists it",)
    attempts = await kb.runs.attempts(report.run, outcome=Outcome.GONE, limit=9)
    assert [each.url for each in attempts] == [tiny.at("/nowhere")]


async def test_the_reasons_of_refusals_are_counted(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/closed/a", "/closed/b", "/barred", "/legal", "/picture"]})
    tiny.put("/robots.txt", "User-agent: *\nDisallow: /closed/\n")
    tiny.put("/noindex", page("/noindex", head='<meta name="robots" content="noindex">'))
    tiny.put("/", page("/", ["/closed/a", "/closed/b", "/barred", "/legal", "/noindex"]))
    tiny.fail("/barred", 403)
    tiny.fail("/legal", 451)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert report.refused == 5
    assert report.refusals == {"robots.txt": 2, "401/403": 1, "451": 1, "noindex": 1}
    assert (await kb.runs.get(report.run)).refusals == report.refusals


async def test_P5_a_run_that_waits_is_over_when_a_later_one_looked_again(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(30))
    await kb.runs.crawl(tiny.url, name="docs")
    for number in range(20):
        tiny.fail(f"/p{number}", 404)
    (held,) = await kb.runs.refresh(["docs"])
    assert held.state == "needs_confirmation"
    for number in range(20):
        tiny.restore(f"/p{number}")
    await kb.runs.refresh(["docs"])
    assert not (await kb.status.get()).runs
    with pytest.raises(UsageError, match="does not need confirmation"):
        await kb.runs.confirm(held.run)


async def test_P3_a_run_whose_process_is_gone_is_displayed_as_interrupted(tmp_path: Path, tiny: TinySite) -> None:
    lay(tiny, star(5))
    store = tmp_path / "afresh.db"
    program = Program(store, in_process=True)
    assert program.run("crawl", tiny.url, "--name", "docs", failpoints="commit.stamp=kill").code != 0
    async with opened(store) as kb:
        status = await kb.status.get()
        assert status.workers == ()
        [run] = status.runs
        assert run.state == "cancelled"
        assert "`afresh refresh docs` continues it" in run.notes[-1]
        assert (await kb.runs.get(run.run)).state == "queued", "who waits for its end is not told that it ended"
        assert [each.last_state for each in await kb.sources.views()] == ["cancelled"]
        assert (await kb.sources.view("docs")).last_state == "cancelled"


async def test_a_source_removed_while_it_is_read_ends_its_run_in_one_sentence(
    tmp_path: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(5))
    store = tmp_path / "afresh.db"
    gate = tiny.hold("/p1")
    async with opened(store) as kb, opened(store) as other:
        crawl = asyncio.create_task(kb.runs.crawl(tiny.url, name="docs"))
        await gate.arrived()
        await other.sources.remove("docs")
        gate.release()
        with pytest.raises(SourceError, match="docs was removed while it was being read"):
            await crawl
    assert rows(store, "select count(*) from pages") == [(0,)]


async def test_what_breaks_inside_a_run_is_one_error(
    kb: KnowledgeBase, tiny: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People see the sentence, not a tree of exceptions."""
    lay(tiny, star(3))

    async def stumble(*visits: object, **more: object) -> list[object]:
        raise StoreError("the store broke")

    with monkeypatch.context() as broken:
        broken.setattr(VisitRepository, "commit", stumble)
        with pytest.raises(StoreError, match="the store broke"):
            await kb.runs.crawl(tiny.url, name="docs")
    assert (await kb.runs.crawl(tiny.url, name="docs")).state == "completed"


async def test_F17_damage_that_is_met_in_a_run_ends_it_and_blames_no_page(
    kb: KnowledgeBase, tiny: TinySite, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tiny, star(3))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/p1", page("/p1", ["/"], "other words"))

    async def damaged(*of: object) -> object:
        raise StoreDamaged("the store is damaged; restore it from a backup")

    with monkeypatch.context() as broken:
        broken.setattr(PageRepository, "content", damaged)
        with pytest.raises(StoreDamaged, match="restore it"):
            await kb.runs.refresh(["docs"])
    assert rows(store, "select count(*) from page_crawls where outcome = 'failed'") == [(0,)]
    (healed,) = await kb.runs.refresh(["docs"])
    assert (healed.state, healed.changed) == ("completed", 1)


async def test_headings_inside_a_chunk_weigh_more_than_its_text(kb: KnowledgeBase, tiny: TinySite) -> None:
    """Short sections share a chunk; each of their headings counts as one."""
    asks = "<h2>Why the name</h2><p>Because.</p><h2>Who pays</h2><p>Nobody.</p>"
    other = "<p>" + "They asked who pays, and why the name, and who pays again. " * 3 + "</p>"
    tiny.put("/", page("/", ["/faq", "/other"]))
    tiny.put("/faq", f"<html><body><main><h1>Questions</h1>{asks}</main></body></html>")
    tiny.put("/other", f"<html><body><main><h1>Other</h1>{other}</main></body></html>")
    await kb.runs.crawl(tiny.url, name="docs")
    assert (await kb.search.search("who pays", mode="text")).hits[0].url == tiny.at("/faq")


@pytest.mark.parametrize("typed", ["{host}", "http://{host}/", "{host}/"])
async def test_an_address_without_a_scheme_is_understood(kb: KnowledgeBase, tiny: TinySite, typed: str) -> None:
    lay(tiny, {"/": []})
    host = tiny.url.split("/")[2]
    assert (await kb.runs.crawl(typed.format(host=host), name="docs")).new == 1
    assert await found(kb, word("/"))


async def test_a_password_in_an_address_is_named(kb: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="password"):
        await kb.runs.crawl("https://me:secret@docs.example.org/")


async def test_why_says_of_links_that_were_left_out(kb: KnowledgeBase, tiny: TinySite) -> None:
    shy = '<a rel="nofollow" href="/shy">shy</a><a href="/in">in</a><a href="/out/x">out</a>'
    tiny.put("/", f"<html><body><main><h1>Root</h1>{shy}</main></body></html>")
    lay(tiny, {"/in": ["/deep"], "/deep": []})
    await kb.runs.crawl(tiny.url, name="docs", rules={"exclude": ["/out/*"], "max_depth": 1})
    for path, reason in (("/out/x", "excluded"), ("/deep", "max_depth"), ("/shy", "nofollow")):
        with pytest.raises(UsageError, match=f"left out: .*{reason}"):
            await kb.pages.explain(tiny.at(path))
    with pytest.raises(UsageError, match="not indexed"):
        await kb.pages.explain(tiny.at("/nobody"))


async def test_a_version_that_cannot_be_typed_is_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="cannot be a version"):
        await kb.runs.crawl("https://docs.example.org/", version="1 2")


async def test_a_listener_that_fails_costs_no_page(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(3))

    def broken(event: object) -> None:
        raise RuntimeError("the screen is gone")

    report = await kb.runs.crawl(tiny.url, name="docs", listener=broken)
    assert (report.state, report.new, report.failed) == ("completed", 4, 0)
