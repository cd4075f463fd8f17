"""Bad content with a 200: the old content stays searchable, the page is flagged, and the run says so."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import index_of, opened
from tests.e2e.sites import page, star, word
from tests.fakes.hostile import HostileSite, Script
from tests.fakes.lies import always_304, busy, emptied, in_turn, ok, shrunken, soft_404, status, to_login, wall

from afresh.errors import ParserCrashed, ParserTimeout, ParserUnavailable
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Body
from afresh.model.filters import PageFilter
from afresh.model.records import PageStatus
from afresh.testing import FrozenClock
from afresh.testing.script import Answer
from afresh.testing.site import RecordedRequest

P = ParamSpec("P")
R = TypeVar("R")
TEXTS = (
    "Harbours are where ships rest between two journeys and where goods change hands.",
    "Apples ripen slowly in the orchards that lie along the northern coast of the island.",
    "Engines need oil, patience and somebody who listens to the noise they make at night.",
    "Maps were drawn by monks who never left their valley and trusted sailors blindly.",
    "Bridges carry trains over rivers that nobody could cross before the war had ended.",
    "Bread is made of flour, water, salt and the time that a baker has in the morning.",
)
LONG = "Every harbour has a keeper who writes down which ship came and which one left. " * 60


@pytest.fixture
def site() -> Iterator[HostileSite]:
    """A site of six pages that can be told to misbehave."""
    with HostileSite() as site:
        for (path, links), text in zip(star(5).items(), TEXTS, strict=True):
            site.put(path, page(path, links, f"{text} This is {word(path)}."))
        yield site


@pytest.mark.parametrize(
    "script",
    [
        wall("login"),
        wall("challenge"),
        wall("consent"),
        to_login(302),
        to_login(301),
        emptied("none"),
        emptied("blanks"),
        emptied("shell"),
        soft_404(),
    ],
    ids=["login", "challenge", "consent", "302", "301", "none", "blanks", "shell", "soft 404"],
)
async def test_F40_F52_a_wall_for_every_address_loses_nothing_however_often_it_is_seen(
    kb: KnowledgeBase, site: HostileSite, store: Path, script: Script
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say_everywhere(script)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert report.state in ("failed", "needs_confirmation")
        assert (report.changed, report.deleted, report.moved) == (0, 0, 0)
    assert {url: held for url, held in index_of(store).items() if "login" not in url} == before
    assert (await kb.search.search(word("/p3"))).hits
    site.behave()
    reports = await kb.runs.refresh(["docs"]) + await kb.runs.refresh(["docs"])
    assert reports[-1].state == "completed"
    assert index_of(store) == before
    assert (await kb.sources.view("docs")).doubtful == 0


@pytest.mark.parametrize("message", ["Page not found", "503 Service temporarily unavailable", "Under maintenance"])
async def test_F39_an_error_message_at_one_address_keeps_text_and_links_until_it_is_trusted(
    kb: KnowledgeBase, site: HostileSite, store: Path, message: str
) -> None:
    """Pages that only the broken page links to are not missing."""
    site.put("/p1", page("/p1", ["/", "/deep"], TEXTS[1]))
    site.put("/deep", page("/deep", ["/"], TEXTS[5]))
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.put("/p1", page(message, text="Please try again later, or go to the start page."))
    for _ in range(4):  # a page is missing for three runs before it is deleted
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.changed, report.doubtful, report.deleted) == ("completed", 0, 1, 0)
        assert report.missing == 0
    assert index_of(store) == before
    assert "error message" in (await kb.pages.explain(site.at("/p1"))).summary
    (report,) = await kb.runs.refresh(["docs"], trust=True)
    assert (report.changed, report.doubtful) == (1, 0)
    assert message in index_of(store)[site.at("/p1")].title
    site.put("/p1", page(message, text="This is what we say now, with other words than before."))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.changed, report.doubtful) == (1, 0)


async def test_F39_an_error_message_on_the_first_crawl_is_not_stored(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    site.put("/p1", page("Internal Server Error", text="Please try again later."))
    report = await kb.runs.crawl(site.url, name="docs")
    assert (report.state, report.new, report.doubtful) == ("completed", 5, 1)
    assert site.at("/p1") not in index_of(store)
    site.put("/p1", page("/p1", ["/"], TEXTS[1]))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.new, report.doubtful) == (1, 0)


async def test_F40_a_wall_that_knows_its_pages_is_reported_by_its_neighbours(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    """Unknown addresses still say 404, and the wall says nothing that walls usually say."""
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    for path in [*star(5)["/"], "/"]:
        site.put(path, page("Maintenance", text="The harbour master is having lunch and will be back."))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.changed, report.doubtful) == ("failed", 0, 6)
    assert index_of(store) == before
    why = await kb.pages.explain(site.at("/p1"))
    assert "other URLs show the same content" in why.summary
    assert why.page.doubt is not None
    assert [view.url for view in await kb.pages.of_source("docs", PageFilter(doubtful=True))][:1] == [site.url]


async def test_F40_pages_that_were_alike_before_may_change_together(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    """One page under several addresses is written anew: no wall, because they were one before."""
    for path in ("/p1", "/p2", "/p3", "/p4"):
        site.put(path, page("Tabs", ["/"], TEXTS[1]))
    await kb.runs.crawl(site.url, name="docs")
    for path in ("/p1", "/p2", "/p3", "/p4"):
        site.put(path, page("Tabs", ["/"], TEXTS[2]))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.changed, report.doubtful) == ("completed", 4, 0)


async def test_F39_a_start_page_that_stands_in_for_missing_ones_may_be_written_again(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    """Sites of one script and many hosts answer every unknown address with their start page."""
    site.say_unknown(lambda asked, own: site.find("/", site.url))
    await kb.runs.crawl(site.url, name="docs")
    site.put("/", page("/", star(5)["/"], "Cranes, sheds and rails: all that belongs to a quay, told from the sea."))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.changed, report.doubtful) == ("completed", 1, 0)


async def test_F40_pages_of_numbers_are_not_lost_to_a_wall(kb: KnowledgeBase, site: HostileSite, store: Path) -> None:
    for number, path in enumerate(star(5)["/"]):
        site.put(path, page("2", (), f"{number} 17 23 42 1.5 99 {number}{number}"))
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say_everywhere(wall("login"), but=["/"])
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.changed, report.doubtful) == (0, 5)
    site.behave()
    (healed,) = await kb.runs.refresh(["docs"])
    assert healed.state == "completed"
    assert index_of(store) == before


async def test_P4_F41_many_pages_that_want_a_login_stop_all_deletions(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    for path in ("/p0", "/p1", "/p2"):
        site.say(path, status(403))
    site.delete("/p4")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted, report.refused) == ("partial", 0, 3)
    assert "3 of 6 known pages now answer 401 or 403" in (report.error or "")
    assert len(index_of(store)) == 6


async def test_P4_F52_links_survive_a_move_that_was_held_and_an_outage_after_it(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    """All pages move to the login, then the root is gone, then all is well: nothing is lost for good."""
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say_everywhere(to_login(301))
    await kb.runs.refresh(["docs"])
    site.say_everywhere(status(404))
    await kb.runs.refresh(["docs"])
    site.behave()
    reports = [each for _ in range(4) for each in await kb.runs.refresh(["docs"])]
    assert reports[-1].state == "completed"
    assert index_of(store) == before


async def test_F40_nothing_is_judged_while_the_rest_of_the_site_rests(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    """Two pages show a wall, the others ask to come back later and show it then."""
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)

    def lunch(asked: RecordedRequest, own: Answer) -> Answer:
        return ok("Lunch", "<p>The harbour master is having lunch and will be back some day.</p>")

    for path in ("/p0", "/p1"):
        site.say(path, lunch)
    for path in ("/p2", "/p3", "/p4"):
        site.say(path, in_turn(lunch, busy(429, "1")))  # the crawl was the first visit
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.changed, report.doubtful) == (0, 5)
    assert index_of(store) == before


async def test_F40_a_wall_that_creeps_from_page_to_page_over_many_runs_is_stopped(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    """Two pages are believed to be written anew; the third that says the same is not."""
    await kb.runs.crawl(site.url, name="docs")
    changed = []
    for number, path in enumerate(star(5)["/"]):
        message = f"The harbour master is having lunch and will be back some day; request {number}a for {path}."
        site.put(path, page("Lunch", text=message))
        changed += [report.changed for report in await kb.runs.refresh(["docs"])]
    assert changed == [1, 1, 0, 0, 0]
    assert sum("Lunch" in held.title for held in index_of(store).values()) == 2


async def test_trust_takes_what_is_there(kb: KnowledgeBase, site: HostileSite, store: Path) -> None:
    await kb.runs.crawl(site.url, name="docs")
    for path in star(5)["/"]:
        site.put(path, page("Closed", text="This part of the documentation is closed for good, thank you."))
    (held,) = await kb.runs.refresh(["docs"])
    assert (held.changed, held.doubtful) == (0, 5)
    assert any("--trust" in note for note in held.notes)
    (taken,) = await kb.runs.refresh(["docs"], trust=True)
    assert (taken.state, taken.changed, taken.doubtful) == ("completed", 5, 0)
    assert (await kb.status.get()).doubtful == 0
    assert "closed for good" in (index_of(store)[site.at("/p1")].markdown or "")


async def test_F40_one_page_that_is_written_again_is_asked_for_once_and_believed(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    site.requests.clear()
    site.put("/p1", page("Ferries", text="Boats that carry people and cars over short distances of water."))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.changed, report.doubtful) == ("completed", 1, 0)
    assert "Boats that carry" in (index_of(store)[site.at("/p1")].markdown or "")
    assert site.requests.count("/p1") == 1
    assert (await kb.pages.explain(site.at("/p1"))).page.doubt is None


async def test_F39_soft_404_is_found_by_one_probe_and_kept_out_of_a_first_crawl(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    site.say_unknown(soft_404())
    site.put("/p0", page("/p0", ["/nowhere", "/neither"]))
    report = await kb.runs.crawl(site.url, name="docs")
    assert (report.state, report.new, report.doubtful) == ("completed", 6, 2)
    assert len(site.requests.probes) == 1
    assert not [url for url in index_of(store) if "nowhere" in url]
    why = await kb.pages.explain(site.at("/nowhere"))
    assert why.status is PageStatus.ERROR
    assert "do not exist" in why.summary


async def test_F39_a_page_that_turns_into_the_soft_404_keeps_its_content(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    site.say_unknown(soft_404())
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.delete("/p2")
    for _ in range(3):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.changed, report.doubtful, report.deleted) == (0, 1, 0)
    assert index_of(store) == before


async def test_F39_a_refresh_in_which_nothing_is_read_asks_no_probe(kb: KnowledgeBase, site: HostileSite) -> None:
    await kb.runs.crawl(site.url, name="docs")
    site.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.not_modified, len(site.requests.probes)) == (6, 0)


async def test_the_probe_can_be_switched_off(store: Path, site: HostileSite, work: type[InProcess]) -> None:
    async with opened(store, {"crawl.probe": False}) as kb:
        await kb.runs.crawl(site.url, name="docs")
    assert not site.requests.probes


@pytest.mark.parametrize("kind", ["none", "blanks", "shell"])
async def test_F42_one_emptied_page_is_kept_then_believed_and_flagged_in_the_second_run(
    kb: KnowledgeBase, site: HostileSite, store: Path, kind: str
) -> None:
    await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.say("/p1", emptied(kind))  # type: ignore[arg-type]
    (first,) = await kb.runs.refresh(["docs"])
    assert (first.state, first.changed, first.doubtful) == ("completed", 0, 1)
    assert index_of(store) == before
    assert "empty" in (await kb.pages.explain(site.at("/p1"))).summary
    (second,) = await kb.runs.refresh(["docs"])
    assert (second.state, second.changed, second.flagged) == ("completed", 1, 1)
    assert index_of(store)[site.at("/p1")].markdown == ""
    site.restore("/p1")
    await kb.runs.refresh(["docs"])
    assert index_of(store) == before


async def test_F43_a_page_that_shrinks_is_taken_and_flagged_and_its_text_is_kept(
    kb: KnowledgeBase, site: HostileSite, store: Path
) -> None:
    site.put("/p1", page("/p1", text=LONG))
    await kb.runs.crawl(site.url, name="docs")
    site.say("/p1", shrunken(0.02))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.changed, report.flagged) == ("completed", 1, 1)
    why = await kb.pages.explain(site.at("/p1"))
    assert "shrank from" in (why.page.doubt or "")
    assert "writes down which ship" in (why.former or "")
    assert any("lost nearly all" in note for note in report.notes)
    await kb.runs.refresh(["docs"])
    after = await kb.pages.explain(site.at("/p1"))
    assert (after.page.doubt, after.former) == (why.page.doubt, why.former)


async def test_F45_a_304_for_ever_is_seen_through_after_a_month(
    store: Path, site: HostileSite, work: type[InProcess]
) -> None:
    clock = FrozenClock(datetime(2026, 3, 1, tzinfo=UTC))
    site.say("/p1", always_304())
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(site.url, name="docs")
        site.put("/p1", page("/p1", ["/"], f"{TEXTS[1]} And of something new."))
        (early,) = await kb.runs.refresh(["docs"])
        assert (early.changed, early.not_modified) == (0, 6)
        clock.advance(days=40)
        (late,) = await kb.runs.refresh(["docs"])
        assert (late.state, late.changed) == ("completed", 1)
    assert "something new" in (index_of(store)[site.at("/p1")].markdown or "")


class Fragile(InProcess):
    """A parser that one page crashes."""

    crashes = 0

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result, unless the page is the poisoned one."""
        if any(isinstance(each, Body) and b"poison" in each.data for each in args):
            type(self).crashes += 1
            raise ParserCrashed("the parser crashed on this page")
        return await super().call(function, *args, **kwargs)


async def test_F27_a_poison_page_is_quarantined_after_three_crashes_and_the_rest_goes_on(
    store: Path, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    Fragile.crashes = 0
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", Fragile)
    async with opened(store) as kb:
        await kb.runs.crawl(site.url, name="docs")
        before = index_of(store)
        site.put("/p1", page("/p1", text="poison"))
        site.put("/new", page("/new", text="poison"))
        site.put("/p0", page("/p0", ["/", "/new"]))
        (report,) = await kb.runs.refresh(["docs"])
        assert (Fragile.crashes, report.changed, report.doubtful) == (6, 1, 2)
        assert index_of(store)[site.at("/p1")] == before[site.at("/p1")]
        for path, status in (("/p1", PageStatus.ACTIVE), ("/new", PageStatus.ERROR)):
            why = await kb.pages.explain(site.at(path))
            assert (why.status, why.page.doubt) == (status, "parsing it crashed 3 times")
        await kb.runs.refresh(["docs"])
        assert Fragile.crashes == 6
        assert "not read again" in (await kb.pages.explain(site.at("/p1"))).summary
        site.put("/p1", page("/p1", text="a cure"))
        (cured,) = await kb.runs.refresh(["docs"])
        assert (cured.state, cured.changed) == ("completed", 1)
        assert (await kb.pages.explain(site.at("/p1"))).page.doubt is None


class Endless(InProcess):
    """A parser that one page keeps until it is killed."""

    kills = 0

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result, unless the page is the endless one."""
        if any(isinstance(each, Body) and b"endless" in each.data for each in args):
            type(self).kills += 1
            raise ParserTimeout("parsing the page took longer than 30 s")
        return await super().call(function, *args, **kwargs)


async def test_F27_F63_a_page_that_takes_too_long_costs_one_deadline_a_run(
    store: Path, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Endless, "kills", 0)
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", Endless)
    async with opened(store) as kb:
        await kb.runs.crawl(site.url, name="docs")
        site.put("/p1", page("/p1", text="endless"))
        for kills in (1, 2, 3, 3):
            await kb.runs.refresh(["docs"])
            assert Endless.kills == kills
        assert (await kb.pages.explain(site.at("/p1"))).page.doubt == "parsing it crashed 3 times"


async def test_a_parser_that_cannot_start_is_a_failure_and_no_refusal(
    store: Path, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process, no descriptor left: the pages are tried again, and the run is not complete."""

    class Unstarted(InProcess):
        async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
            raise ParserUnavailable("the parser process does not start: too many open files")

    async with opened(store) as kb:
        await kb.runs.crawl(site.url, name="docs")
    before = index_of(store)
    site.put("/p1", page("/p1", text="other words"))
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", Unstarted)
    async with opened(store) as kb:
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.failed, report.refused) == ("partial", 1, 0)
    assert index_of(store) == before
