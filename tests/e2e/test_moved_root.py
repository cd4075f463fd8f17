"""A root that moved: the source goes on where its site went, and keeps its pages and their history."""

import socket
from pathlib import Path

import pytest
from tests.e2e.library import EVERY_STORE, assert_sound, counts, found, index_of, opened, rows
from tests.e2e.sites import lay, looks, page, word

from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES
from afresh.model.records import ChangeKind, PageStatus
from afresh.testing import FrozenClock, TinySite

OLD, NEW = "/v1.0/guide", "/v2.0/guide"
LOGIN = page("Sign in", text="Please log in with your name and password.")


def lay_guide(site: TinySite, pages: int = 4, root: str = OLD) -> list[str]:
    """A guide whose root links to some pages below it."""
    site.put(root, page("Guide", [f"guide/p{number}" for number in range(pages)]))
    for number in range(pages):
        site.put(f"{root}/p{number}", page(f"/p{number}", ["../guide"]))
    return [f"{root}/p{number}" for number in range(pages)]


def move_guide(site: TinySite, pages: int = 4, old: str = OLD, new: str = NEW) -> None:
    """Move the guide as a release does: each page is permanently redirected, its text stays."""
    lay_guide(site, pages, new)
    for end in ("", *(f"/p{number}" for number in range(pages))):
        site.redirect(old + end, new + end, status=301)


async def ids(kb: KnowledgeBase) -> dict[str, int]:
    """The numbers of pages with content, by the end of their address."""
    return {view.url.partition("/guide")[2]: view.id for view in await kb.pages.of_source("docs")}


async def root_of(kb: KnowledgeBase) -> str:
    """The root of the source."""
    (source,) = await kb.sources.views()
    return source.url


@EVERY_STORE
async def test_R1_A17_a_root_that_moved_for_good_moves_the_source_and_all_its_pages(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay_guide(tiny)
    await kb.runs.crawl(tiny.at(OLD), name="docs")
    before, text = await ids(kb), index_of(store)
    born = rows(store, "select id, created_at from pages where content_hash is not null order by id")
    move_guide(tiny)
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, counts(report), report.chunks_embedded) == ("completed", {"moved": 5}, 0)
    assert max(looks(tiny).values()) == 1
    assert any(tiny.at(NEW) in note and "moved" in note for note in report.notes)
    assert await root_of(kb) == tiny.at(NEW)
    assert await ids(kb) == before
    assert rows(store, "select id, created_at from pages where content_hash is not null order by id") == born
    assert set(index_of(store)) == {url.replace(OLD, NEW) for url in text}
    views = {view.url: view for view in await kb.pages.of_source("docs", ALL_PAGES)}
    old = views[tiny.at(f"{OLD}/p1")]
    assert (old.status, old.moved_to) == (PageStatus.REDIRECT, tiny.at(f"{NEW}/p1"))
    reported = {(each.kind, each.url, each.moved_to) for each in await kb.pages.changes("docs", run=report.run)}
    assert reported == {(ChangeKind.MOVED, url, url.replace(OLD, NEW)) for url in text}
    assert await found(kb, word("/p1")) == {tiny.at(f"{NEW}/p1")}
    assert_sound(store)
    for _ in range(4):
        (again,) = await kb.runs.refresh(["docs"])
        assert (again.state, counts(again)) == ("completed", {"not_modified": 5})
    assert "301" in (await kb.pages.explain(tiny.at(OLD))).summary


@EVERY_STORE
async def test_R1_G12_the_history_of_a_page_goes_along(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/old"], "/old": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.move("/old", "/new")
    await kb.runs.refresh(["docs"])
    attempts = await kb.pages.history(tiny.at("/new"), within="docs")
    assert [(each.url, each.outcome) for each in attempts if each.outcome] == [
        (tiny.at("/new"), "success"),
        (tiny.at("/old"), "success"),
    ]
    left = await kb.pages.history(tiny.at("/old"), within="docs")
    assert next(each.outcome for each in left if each.outcome) == "moved"
    assert_sound(store)


async def test_R1_a_page_that_was_there_before_keeps_its_own_identity(kb: KnowledgeBase, tiny: TinySite) -> None:
    """Two pages become one: the target has a history of its own."""
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    numbers = {view.url: view.id for view in await kb.pages.of_source("docs")}
    tiny.redirect("/a", "/b", status=301)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.moved, report.new) == (1, 0)
    views = {view.url: view.id for view in await kb.pages.of_source("docs", ALL_PAGES)}
    assert views == numbers


async def test_R1_of_two_pages_that_moved_to_one_place_one_lives_on(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    paths = [f"/p{number}" for number in range(30)]
    lay(tiny, {"/": paths, **{path: [] for path in paths}})
    await kb.runs.crawl(tiny.url, name="docs")
    numbers = {view.url: view.id for view in await kb.pages.of_source("docs")}
    tiny.put("/both", page("/p2", []), listed=False)
    tiny.redirect("/p1", "/both", status=301)
    tiny.redirect("/p2", "/both", status=301)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.moved, report.new) == ("completed", 2, 0)
    (view,) = [view for view in await kb.pages.of_source("docs") if view.url == tiny.at("/both")]
    assert view.id == numbers[tiny.at("/p2")]  # the one whose text it is
    assert_sound(store)


async def test_R1_a_source_that_moved_twice_and_back_stays_one(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay_guide(tiny)
    await kb.runs.crawl(tiny.at(OLD), name="docs")
    before = await ids(kb)
    move_guide(tiny)
    await kb.runs.refresh(["docs"])
    move_guide(tiny, old=NEW, new="/v3.0/guide")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.moved, report.new) == ("completed", 5, 0)
    assert (await root_of(kb), await ids(kb)) == (tiny.at("/v3.0/guide"), before)
    for end in ("", *(f"/p{number}" for number in range(4))):
        tiny.restore(OLD + end)
        tiny.redirect("/v3.0/guide" + end, OLD + end, status=301)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 0)
    assert await root_of(kb) == tiny.at(OLD)
    assert {url.partition("/guide")[2] for url in index_of(store)} == set(before)
    assert_sound(store)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_R1_a_first_crawl_reads_from_where_the_root_leads(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    tiny.redirect("/start", "/en/start", status=status)
    lay(tiny, {"/en/start": ["/en/start/a", "/en/start"], "/en/start/a": [], "/other": []})
    report = await kb.runs.crawl(tiny.at("/start"), name="docs")
    assert (report.state, report.new) == ("completed", 2)
    permanent = status in (301, 308)
    root = tiny.at("/en/start" if permanent else "/start")
    assert await root_of(kb) == root
    assert set(index_of(store)) == {root, tiny.at("/en/start/a")}
    for _ in range(4):
        (again,) = await kb.runs.refresh(["docs"])
        assert (again.state, counts(again)) == ("completed", {"not_modified": 2})
    again = await kb.runs.crawl(tiny.at("/start"))  # typed again, it is the same source
    assert (again.source, again.state, again.new) == ("docs", "completed", 0)
    assert len(await kb.sources.views()) == 1


@pytest.mark.parametrize("statuses", [(301, 302), (302, 301)])
async def test_R1_a_chain_is_permanent_only_if_every_hop_is(
    kb: KnowledgeBase, tiny: TinySite, store: Path, statuses: tuple[int, int]
) -> None:
    tiny.redirect("/start", "/mid", status=statuses[0])
    tiny.redirect("/mid", "/en/", status=statuses[1])
    lay(tiny, {"/en/": ["/en/a"], "/en/a": []})
    report = await kb.runs.crawl(tiny.at("/start"), name="docs")
    assert (report.state, report.new) == ("completed", 2)
    assert await root_of(kb) == tiny.at("/start")
    assert set(index_of(store)) == {tiny.at("/start"), tiny.at("/en/a")}
    (again,) = await kb.runs.refresh(["docs"])
    assert (again.state, again.new, again.deleted, again.missing) == ("completed", 0, 0, 0)


async def test_R1_a_chain_of_permanent_moves_ends_at_its_last(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    tiny.redirect("/start", "/mid", status=301)
    tiny.redirect("/mid", "/en/", status=308)
    lay(tiny, {"/en/": ["/en/a"], "/en/a": []})
    report = await kb.runs.crawl(tiny.at("/start"), name="docs")
    assert (report.state, set(index_of(store))) == ("completed", {tiny.at("/en/"), tiny.at("/en/a")})
    assert await root_of(kb) == tiny.at("/en/")


@pytest.mark.parametrize("status", [301, 302])
async def test_F136_a_root_that_leads_to_a_login_moves_nothing(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    paths = lay_guide(tiny, 12)
    await kb.runs.crawl(tiny.at(OLD), name="docs")
    before = index_of(store)
    tiny.put("/login", LOGIN, listed=False)
    for path in (OLD, *paths):
        tiny.redirect(path, "/login", status=status)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.moved, report.deleted) == ("failed", 0, 0)
        assert "login" in (report.error or "")
    assert (index_of(store), await root_of(kb)) == (before, tiny.at(OLD))
    for path in (OLD, *paths):
        tiny.restore(path)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.new, report.deleted) == ("completed", 0, 0)


async def test_F136_a_first_crawl_that_leads_to_a_login_reads_nothing(kb: KnowledgeBase, tiny: TinySite) -> None:
    tiny.redirect("/docs/", "/login", status=302)
    tiny.put("/login", LOGIN)
    report = await kb.runs.crawl(tiny.at("/docs/"), name="docs")
    assert (report.state, report.new) == ("failed", 0)
    assert "login" in (report.error or "")


async def test_F136_a_moved_root_whose_pages_are_gone_is_held_by_the_brake(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    paths = lay_guide(tiny, 20)
    await kb.runs.crawl(tiny.at(OLD), name="docs")
    before = set(index_of(store))
    tiny.put(NEW, page("Guide", []))
    tiny.redirect(OLD, NEW, status=301)
    for path in paths:
        tiny.delete(path)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("needs_confirmation", 0)
    assert before <= set(index_of(store))
    assert await root_of(kb) == tiny.at(OLD)  # with its pages it waits for a confirmation
    await kb.runs.confirm(report.run)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, await root_of(kb)) == ("completed", tiny.at(NEW))
    assert set(index_of(store)) == {tiny.at(NEW)}


async def test_R1_a_target_that_fails_moves_nothing(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay_guide(tiny)
    await kb.runs.crawl(tiny.at(OLD), name="docs")
    before = index_of(store)
    move_guide(tiny)
    tiny.fail(NEW, 503)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("failed", 0)
    assert (index_of(store), await root_of(kb)) == (before, tiny.at(OLD))
    tiny.restore(NEW)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.moved, report.new) == ("completed", 5, 0)


async def test_R1_pages_that_failed_while_the_root_moved_follow_later(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay_guide(tiny, 20)
    await kb.runs.crawl(tiny.at(OLD), name="docs")
    before = await ids(kb)
    move_guide(tiny, 20)
    tiny.put(NEW, page("Guide", [f"guide/p{number}" for number in range(20) if number != 3]))
    tiny.fail(f"{OLD}/p3", 503)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.moved, report.failed) == ("partial", 20, 1)
    tiny.redirect(f"{OLD}/p3", f"{NEW}/p3", status=301)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.moved) == ("completed", 1)
    assert await ids(kb) == before
    assert_sound(store)


async def test_R1_what_is_due_follows_a_root_that_moved(tiny: TinySite, store: Path) -> None:
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        lay_guide(tiny)
        await kb.runs.crawl(tiny.at(OLD), name="docs")
        before = await ids(kb)
        move_guide(tiny)
        clock.advance(days=2)
        (report,) = await kb.runs.refresh(["docs"], due=True)
        assert (report.state, report.moved, report.new) == ("completed", 5, 0)
        assert (await root_of(kb), await ids(kb)) == (tiny.at(NEW), before)


@pytest.mark.parametrize("status", [301, 302])
async def test_F137_another_site_is_not_read_unless_that_is_asked_for(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    with TinySite() as other:
        lay(other, {"/guide": ["/guide/a"], "/guide/a": []})
        lay(tiny, {"/guide": ["/guide/a"], "/guide/a": []})
        await kb.runs.crawl(tiny.at("/guide"), name="docs")
        before = index_of(store)
        tiny.redirect("/guide", other.at("/guide"), status=status)
        tiny.redirect("/guide/a", other.at("/guide/a"), status=status)
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.deleted, len(other.requests)) == ("failed", 0, 0)
        assert "`afresh refresh NAME --follow-move`" in (report.error or "")
        assert "PATCH /api/v1/sources" in (report.error or "")  # for those who have no command line
        assert other.at("/guide") in (report.error or "")
        assert index_of(store) == before
        (report,) = await kb.runs.refresh(["docs"], follow_move=True)
        assert report.state == "completed"
        permanent = status == 301
        assert await root_of(kb) == (other if permanent else tiny).at("/guide")
        assert report.moved == (2 if permanent else 0)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names below `example.test` that mean this machine."""
    ask = socket.getaddrinfo

    def here(host: str | bytes | None, *rest: object, **more: object) -> object:
        local = isinstance(host, str) and host.endswith("example.test")
        return ask("127.0.0.1" if local else host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", here)


async def test_R1_a_site_that_moved_below_www_is_the_same_site(
    kb: KnowledgeBase, tiny: TinySite, store: Path, named: None
) -> None:
    port = tiny.url.rpartition(":")[2].strip("/")
    plain, www = f"http://example.test:{port}/", f"http://www.example.test:{port}/"
    lay(tiny, {"/": ["/a"], "/a": []})
    tiny.redirect("/", f"{www}home/", status=301)
    lay(tiny, {"/home/": ["/home/a"], "/home/a": []})
    report = await kb.runs.crawl(plain, name="docs")
    assert (report.state, set(index_of(store))) == ("completed", {f"{www}home/", f"{www}home/a"})
    assert await root_of(kb) == f"{www}home/"
