"""Outages and refusals: nothing is lost, the state says so, and the next healthy run is whole."""

import random
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from tests.e2e.library import assert_sound, counts, found, index_of, opened
from tests.e2e.sites import lay, looks, star, word

from afresh.app import utc_now
from afresh.crawl.hosts import MOST_WAITS, TURN_SECONDS, HostLimiter
from afresh.events import Event, Notice
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Outcome
from afresh.testing import TinySite


def _all_500(site: TinySite) -> None:
    for path in site.paths:
        site.fail(path, 500)


def _root_404(site: TinySite) -> None:
    site.delete("/")


def _robots_500(site: TinySite) -> None:
    site.fail("/robots.txt", 500)


def _most_503(site: TinySite) -> None:
    for path in random.Random(7).sample([path for path in site.paths if path != "/"], 6):
        site.fail(path, 503)


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(lambda site: site.down(), id="F30-server-down"),
        pytest.param(_all_500, id="F32-all-500"),
        pytest.param(_most_503, id="F33-30-percent-503"),
        pytest.param(_root_404, id="F35-root-404"),
        pytest.param(_robots_500, id="F72-robots-500"),
    ],
)
async def test_P4_an_outage_never_shrinks_the_index(
    kb: KnowledgeBase, tiny: TinySite, store: Path, break_it: Callable[[TinySite], None]
) -> None:
    lay(tiny, star(19))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    break_it(tiny)
    for _ in range(4):  # also more often than missing_after
        (report,) = await kb.runs.refresh(["docs"])
        assert report.state == ("partial" if break_it is _most_503 else "failed")
        assert report.error
        assert (report.deleted, report.missing) == (0, 0)
        assert index_of(store) == before
        assert await found(kb, word("/p3")) == {tiny.at("/p3")}
    tiny.up()
    for path in (*star(19), "/robots.txt"):
        tiny.restore(path)
    (healthy,) = await kb.runs.refresh(["docs"])
    assert (healthy.state, counts(healthy)) == ("completed", {"not_modified": 20})
    assert_sound(store)


async def test_F72_a_robots_txt_that_comes_back_is_noticed_in_the_same_run(
    store: Path, tiny: TinySite, work: object
) -> None:
    lay(tiny, star(4))
    tiny.fail("/robots.txt", 503, times=1)
    retrying = {"policy.backoff_base_seconds": 1.1, "policy.backoff_max_seconds": 2}
    async with opened(store, retrying) as kb:
        events: list[Event] = []
        report = await kb.runs.crawl(tiny.url, name="docs", listener=events.append)
        assert (report.state, report.new) == ("completed", 5)
        assert tiny.requests.count("/robots.txt") == 2
    waits = [each.text for each in events if isinstance(each, Notice) and "for the next attempt" in each.text]
    assert waits
    assert all("next attempt (robots.txt unreachable (503" in each for each in waits)


async def test_F72_pages_behind_an_unreachable_robots_txt_are_due_again_soon(
    kb: KnowledgeBase, store: Path, tiny: TinySite
) -> None:
    """Their look failed; it was not refused for the whole interval."""
    lay(tiny, star(4))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.fail("/robots.txt", 503)
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.failed, report.refused) == ("failed", 5, 0)
    assert set(tiny.requests.paths()) == {"/robots.txt"}
    why = await kb.pages.explain(tiny.at("/p1"))
    assert "robots.txt unreachable (503 Service Unavailable)" in why.summary
    outcomes = [each.outcome for each in await kb.pages.history(tiny.at("/p1"))]
    assert outcomes.count(Outcome.BLOCKED_5XX) == 3
    tiny.restore("/robots.txt")
    async with opened(store, clock=lambda: utc_now() + timedelta(minutes=1)) as later:
        (report,) = await later.runs.refresh(["docs"], due=True)
    assert counts(report) == {"not_modified": 5}


async def test_P4_deletions_found_during_an_outage_wait_for_a_healthy_run(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(19))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.delete("/p1")
    for number in range(2, 8):
        tiny.fail(f"/p{number}", 503)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("partial", 0)
    assert await found(kb, word("/p1")) == {tiny.at("/p1")}
    for number in range(2, 8):
        tiny.restore(f"/p{number}")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 1)
    assert await found(kb, word("/p1")) == set()


async def test_F33_a_few_failing_pages_make_a_run_partial_and_the_rest_is_updated(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    lay(tiny, star(19))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.fail("/p1", 503)
    tiny.edit("/p2", add_paragraph="it says heliotrope")
    tiny.delete("/p3")
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "partial"
    assert counts(report) == {"not_modified": 17, "changed": 1, "failed": 1, "deleted": 1}
    assert await found(kb, "heliotrope") == {tiny.at("/p2")}
    assert await found(kb, word("/p1")) == {tiny.at("/p1")}
    outcomes = [each.outcome for each in await kb.pages.history(tiny.at("/p1"))]
    assert outcomes.count(Outcome.BLOCKED_5XX) == 3  # G5: two retries, each a row of its own
    assert "503" in (await kb.pages.explain(tiny.at("/p1"))).summary


async def test_G2_a_partial_run_does_not_count_absence(kb: KnowledgeBase, tiny: TinySite) -> None:
    """The page that links to /deep fails, so nobody can tell whether it is still linked."""
    lay(tiny, {**star(19), "/p1": ["/deep"], "/deep": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.fail("/p1", 500)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.missing, report.deleted) == ("partial", 0, 0)
    assert await found(kb, word("/deep")) == {tiny.at("/deep")}


async def test_a_failure_that_passes_is_retried_in_the_same_run(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(4))
    tiny.fail("/p1", 503, times=2)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 5})
    assert looks(tiny)["/p1"] == 3


@pytest.mark.parametrize("status", [401, 403])
async def test_F41_a_refusal_keeps_everything_and_is_reported(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    lay(tiny, star(12))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    for path in star(12):
        if path != "/":
            tiny.fail(path, status)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.refused, report.deleted, report.missing) == (12, 0, 0)
    assert index_of(store) == before
    assert str(status) in (await kb.pages.explain(tiny.at("/p1"))).summary
    assert looks(tiny)["/p1"] == 5  # one look per run: a refusal is not retried


async def test_F73_robots_that_newly_disallow_the_site_stop_fetching_and_keep_everything(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(12))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    tiny.robots("User-agent: *\nDisallow: /\n")
    tiny.requests.clear()
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.deleted, report.missing) == ("failed", 0, 0)
        assert "robots.txt" in (report.error or "")
    assert set(tiny.requests.paths()) <= {"/robots.txt", "/sitemap.xml"}
    assert index_of(store) == before
    assert "robots.txt line 2" in (await kb.pages.explain(tiny.at("/p1"))).summary


async def test_F73_robots_that_disallow_a_part_keep_that_part(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a", "/no/b"], "/a": [], "/no/b": ["/no/c"], "/no/c": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.robots("User-agent: *\nDisallow: /no/\n")
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.refused, report.deleted, report.missing) == (2, 0, 0)
    assert await found(kb, word("/no/c")) == {tiny.at("/no/c")}


async def test_F75_429_with_retry_after_is_waited_for_and_the_run_completes(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(6))
    tiny.fail("/p1", 429, times=1, retry_after=1)
    notices: list[str] = []
    report = await kb.runs.crawl(
        tiny.url, name="docs", listener=lambda e: notices.append(e.text) if isinstance(e, Notice) else None
    )
    assert (report.state, counts(report)) == ("completed", {"new": 7})
    first, second = (each.at for each in tiny.requests if each.path == "/p1")
    assert second - first >= 1.0
    paused = [each.path for each in tiny.requests if first + 0.5 < each.at < first + 0.95]
    assert paused == []  # the whole host is left alone meanwhile


async def test_F30_a_host_that_stops_answering_is_not_asked_on_and_on(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(40))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    tiny.down()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("failed", 0)
    assert index_of(store) == before


async def test_a_root_that_cannot_be_read_at_first_says_so(kb: KnowledgeBase, tiny: TinySite) -> None:
    """F35: nothing at the root of a new source."""
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert report.state == "failed"
    assert "start page" in (report.error or "")
    assert "404" in (report.error or "")


async def test_F75_a_long_pause_ends_the_run_and_costs_no_page(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    """Retry-After of an hour: what is known stays, the rest waits, and nobody is asked meanwhile."""
    lay(tiny, star(12))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    for number in range(12):
        tiny.fail(f"/p{number}", 429, retry_after=3000)
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state in ("partial", "failed")
    assert any("asks for a pause until" in note for note in report.notes)
    assert index_of(store) == before
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state in ("partial", "failed")
    assert not [each for each in tiny.requests if each.path not in ("/robots.txt", "/sitemap.xml")]
    assert_sound(store)


async def test_F75_a_first_crawl_that_has_to_wait_is_partial(kb: KnowledgeBase, tiny: TinySite) -> None:
    """Nothing was known before, so nothing known failed: what was read is there, the rest waits."""
    lay(tiny, star(12))
    tiny.fail("/p0", 429, retry_after=3000)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert report.state == "partial"
    assert report.new > 0
    assert any("asks for a pause until" in note for note in report.notes)


async def test_F75_a_server_that_names_its_time_is_asked_more_often_than_one_that_fails(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    """Four times "come back later" are no strike; three times 503 without a word would be the end."""
    lay(tiny, star(2))
    tiny.fail("/p0", 429, times=4, retry_after=0)
    tiny.fail("/p1", 503, times=4, retry_after=0)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 3})
    assert looks(tiny)["/p0"] == looks(tiny)["/p1"] == 5


async def test_F75_P13_a_server_that_puts_us_off_for_ever_does_not_keep_a_run_alive(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    lay(tiny, star(2))
    tiny.fail("/p0", 429, retry_after=0)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, report.failed) == ("partial", 1)
    assert looks(tiny)["/p0"] == MOST_WAITS + 3


async def test_F74_a_crawl_delay_that_is_read_late_is_obeyed(store: Path, tiny: TinySite, work: object) -> None:
    """robots.txt is out of order at first; its pause counts from the first page on."""
    lay(tiny, star(3))
    tiny.robots("User-agent: *\nCrawl-delay: 0.2\n")
    tiny.fail("/robots.txt", 503, times=1)
    retrying = {"policy.backoff_base_seconds": 1.1, "policy.backoff_max_seconds": 2, "crawl.sitemaps": False}
    async with opened(store, retrying) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, report.new) == ("completed", 4)
    at = [each.at for each in tiny.requests if each.path != "/robots.txt"]
    assert len(at) == 4
    assert all(later - earlier >= 0.19 for earlier, later in pairwise(at))


async def test_F73_closed_pages_stay_even_when_no_link_leads_to_them_any_more(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    """Nobody may look whether they are still there."""
    lay(tiny, {"/": ["/a", "/no/b"], "/a": [], "/no/b": ["/no/c"], "/no/c": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.robots("User-agent: *\nDisallow: /no/\n")
    lay(tiny, {"/": ["/a"]})
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.refused, report.missing, report.deleted) == ("completed", 2, 0, 0)
    assert await found(kb, word("/no/c")) == {tiny.at("/no/c")}
    assert "robots.txt line 2" in (await kb.pages.explain(tiny.at("/no/c"))).summary


async def test_F75_pages_of_a_host_that_rests_are_not_claimed_over_and_over(
    kb: KnowledgeBase, tiny: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was asked to wait, the queue knows it."""
    claims: list[int] = []

    class Resting(HostLimiter):
        async def enter(self, domain: str, timeout: float = TURN_SECONDS) -> bool:
            claims.append(1)
            if len(claims) == 1:
                self.pause(domain, 1.5)
            return await super().enter(domain, timeout)

    monkeypatch.setattr("afresh.crawl.factory.HostLimiter", Resting)
    lay(tiny, star(4))
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, report.new) == ("completed", 5)
    assert len(claims) <= 8  # five pages, the root twice, a probe
