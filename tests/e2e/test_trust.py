"""Text is not lost without a trace: walls are never believed, emptied pages stay flagged."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, index_of, opened
from tests.e2e.sites import page, star, word
from tests.fakes.hostile import HostileSite, Script
from tests.fakes.lies import emptied, shrunken

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.model.filters import PageFilter
from afresh.testing import FrozenClock
from afresh.testing.script import Answer
from afresh.testing.site import RecordedRequest

LONG = "Every harbour has a keeper who writes down which ship came and which one left. " * 60


@pytest.fixture
def site() -> Iterator[HostileSite]:
    """A site of four pages that can be told to misbehave."""
    with HostileSite() as site:
        for path, links in star(3).items():
            site.put(path, page(path, links, f"{LONG} This is {word(path)}."))
        yield site


def short_login(asked: RecordedRequest, own: Answer) -> Answer:
    """A login of one password field and no text."""
    body = b"<!doctype html><html><body><form method=post><input type=password></form></body></html>"
    return Answer(status=200, headers={"Content-Type": "text/html"}, body=body)


LEGAL = "Use of this system is monitored and subject to the rules of the harbour office. " * 11
JAPANESE = "このサイトを利用するには認証が必要です。" * 8
FORM = "<form method=post><input name=user><input type=password name=pw><button>{}</button></form>"
LOGINS = {
    "legal": f"<h1>Sign in</h1>{FORM.format('Sign in')}<p>{LEGAL}</p>",
    "Japanese": f"<h1>ログイン</h1>{FORM.format('ログイン')}<p>{JAPANESE}</p>",
}
LOGIN_AMONG_LINKS = f"<nav><a href=/p2>Guide</a></nav><main>{LOGINS['legal']}</main>"


def show(body: str) -> Script:
    """Answer with a page of this body."""
    html = f"<!doctype html><html><head><title>Docs</title></head><body>{body}</body></html>".encode()
    return lambda asked, own: Answer(status=200, headers={"Content-Type": "text/html"}, body=html)


async def _suspicion_notes(kb: KnowledgeBase) -> dict[str, str | None]:
    return {view.url: view.doubt for view in await kb.pages.of_source("docs", PageFilter(doubtful=True))}


async def test_U1_F122_a_short_login_form_never_costs_a_text(kb: KnowledgeBase, site: HostileSite, store: Path) -> None:
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say("/p1", short_login)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.changed, report.doubtful) == (0, 1)
    assert index_of(store) == before
    assert "login" in (await _suspicion_notes(kb))[site.at("/p1")]  # type: ignore[operator]
    assert (await kb.search.search(word("/p1"))).hits
    with pytest.raises(UsageError, match="still has its text: its last check showed doubtful content"):
        await kb.pages.restore(site.at("/p1"))


@pytest.mark.parametrize("body", LOGINS.values(), ids=LOGINS)
async def test_F183_a_login_page_with_text_never_costs_a_text(
    kb: KnowledgeBase, site: HostileSite, store: Path, body: str
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say("/p1", show(body))
    for _ in range(2):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.changed, report.doubtful) == (0, 1)
    assert index_of(store) == before
    assert "login" in (await _suspicion_notes(kb))[site.at("/p1")]  # type: ignore[operator]


async def test_F183_another_page_with_a_login_form_is_flagged_and_its_former_text_is_kept(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say("/p1", show(LOGIN_AMONG_LINKS))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.changed, report.flagged) == (1, 1)
    assert any("became a login" in note for note in report.notes)
    assert "login" in (await _suspicion_notes(kb))[site.at("/p1")]  # type: ignore[operator]
    await kb.pages.restore(site.at("/p1"))
    assert index_of(store) == before


@EVERY_STORE
@pytest.mark.parametrize("lie", [show(LOGINS["legal"]), emptied("shell"), short_login])
async def test_F184_trusted_pages_can_still_restore_the_former_text(
    store: Path, site: HostileSite, work: type[InProcess], lie: Script
) -> None:
    async with opened(store) as kb:
        await kb.runs.crawl(site.url, name="docs")
        before = index_of(store)
        site.say("/p1", lie)
        for _ in range(2):  # the second time it takes the place of a text that was restored
            (report,) = await kb.runs.refresh(["docs"], trust=True)
            assert (report.changed, await _suspicion_notes(kb)) == (1, {})
            assert word("/p1") not in (await kb.pages.open(site.at("/p1"))).markdown
            await kb.runs.refresh(["docs"], trust=True)
            await kb.pages.restore(site.at("/p1"))
            assert index_of(store) == before
        with pytest.raises(UsageError, match=r"retention\.former_texts"):
            await kb.pages.restore(site.at("/p1"))
    assert_sound(store)


async def test_U1_F123_an_emptied_page_stays_flagged_until_its_text_is_back(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say("/p1", emptied("shell"))
    reports = [each for _ in range(5) for each in await kb.runs.refresh(["docs"])]
    assert [report.changed for report in reports] == [0, 1, 0, 0, 0]
    assert any("lost nearly all text" in note for note in reports[1].notes)
    assert list(await _suspicion_notes(kb)) == [site.at("/p1")]
    assert LONG.strip()[:200] in ((await kb.pages.explain(site.at("/p1"))).former or "")
    site.restore("/p1")
    await kb.runs.refresh(["docs"])
    assert (await _suspicion_notes(kb), index_of(store)) == ({}, before)
    assert (await kb.pages.explain(site.at("/p1"))).former is None


async def test_U1_F43_an_edit_of_what_is_left_of_a_page_keeps_flag_and_former_text(
    kb: KnowledgeBase, site: HostileSite
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    site.say("/p1", shrunken(0.01))
    await kb.runs.refresh(["docs"])
    site.say("/p1", shrunken(0.012))
    await kb.runs.refresh(["docs"])
    assert list(await _suspicion_notes(kb)) == [site.at("/p1")]
    assert word("/p1") in ((await kb.pages.explain(site.at("/p1"))).former or "")


async def test_U1_F123_trusting_takes_the_flag_off(kb: KnowledgeBase, site: HostileSite) -> None:
    await kb.runs.crawl(site.url, name="docs")
    site.say("/p1", emptied("shell"))
    for _ in range(2):
        await kb.runs.refresh(["docs"])
    await kb.runs.refresh(["docs"], trust=True)
    assert await _suspicion_notes(kb) == {}
    site.say("/p1", show("<main><p>Soon.</p></main>"))
    await kb.runs.refresh(["docs"], trust=True)
    assert word("/p1") in (await kb.pages.restore(site.at("/p1"))).markdown


async def test_U4_F124_a_page_that_is_empty_on_its_first_crawl_is_reported(
    kb: KnowledgeBase, site: HostileSite
) -> None:
    site.say("/p1", emptied("shell"))
    site.say("/p2", short_login)
    report = await kb.runs.crawl(site.url, name="docs")
    assert (report.state, report.new, report.flagged) == ("completed", 4, 2)
    assert any(note.startswith("2 new pages have no text") for note in report.notes)
    assert await _suspicion_notes(kb) == {
        site.at("/p1"): "it has no text",
        site.at("/p2"): "it has no text, only a login form",
    }
    await kb.runs.refresh(["docs"])
    assert len(await _suspicion_notes(kb)) == 2
    site.behave()
    await kb.runs.refresh(["docs"])
    assert await _suspicion_notes(kb) == {}


@EVERY_STORE
async def test_U1_F123_the_former_text_is_restored_and_stays_until_the_page_changes(
    store: Path, site: HostileSite, work: type[InProcess]
) -> None:
    async with opened(store) as kb:
        await kb.runs.crawl(site.url, name="docs")
        before = index_of(store)
        site.say("/p1", emptied("shell"))
        for _ in range(2):
            await kb.runs.refresh(["docs"])
        assert site.at("/p1") not in {hit.url for hit in (await kb.search.search(word("/p1"))).hits}
        site.requests.clear()
        restored = await kb.pages.restore(site.at("/p1"))
        assert word("/p1") in restored.markdown
        assert site.requests.paths() == []
        assert site.at("/p1") in {hit.url for hit in (await kb.search.search(word("/p1"))).hits}
        assert index_of(store) == before
        assert_sound(store)
        for _ in range(3):
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.state, report.changed, report.doubtful) == ("completed", 0, 0)
        assert index_of(store) == before
        assert "restored" in (await _suspicion_notes(kb))[site.at("/p1")]  # type: ignore[operator]
        with pytest.raises(UsageError, match="no former text"):
            await kb.pages.restore(site.at("/p1"))
        site.behave()
        site.put("/p1", page("/p1", ["/"], f"{LONG} Another {word('/p1')}."))
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.changed, await _suspicion_notes(kb)) == (1, {})
    assert_sound(store)


@EVERY_STORE
async def test_U1_F123_former_texts_go_after_a_month(store: Path, site: HostileSite, work: type[InProcess]) -> None:
    clock = FrozenClock(datetime(2026, 3, 1, tzinfo=UTC))
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(site.url, name="docs")
        site.say("/p1", shrunken(0.01))
        await kb.runs.refresh(["docs"])
        clock.advance(days=29)
        await kb.runs.refresh(["docs"])
        assert (await kb.pages.explain(site.at("/p1"))).former is not None
        clock.advance(days=2)
        assert (await kb.status.prune(dry_run=True)).former_texts == 1
        assert (await kb.status.prune()).former_texts == 1
        assert (await kb.pages.explain(site.at("/p1"))).former is None


@pytest.mark.parametrize("lie", [short_login, emptied("shell"), shrunken(0.01)], ids=["login", "empty", "short"])
async def test_U1_F122_F123_a_listed_link_never_loses_its_text_silently(
    kb: KnowledgeBase, site: HostileSite, tmp_path: Path, lie: Script
) -> None:
    links = tmp_path / "links.txt"
    links.write_text("".join(f"{site.at(path)}\n" for path in ("/p1", "/p2")), "utf-8")
    await kb.runs.crawl(str(links), name="docs")
    site.say("/p1", lie)
    for _ in range(3):
        await kb.runs.refresh(["docs"])
    assert list(await _suspicion_notes(kb)) == [site.at("/p1")]
    kept = (await kb.pages.explain(site.at("/p1"))).former or (await kb.pages.open(site.at("/p1"))).markdown
    assert word("/p1") in kept
