"""Records by their numbers: lists in parts, changes by hand, and answers that are given again."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.access.idempotency import RequestClaim, StoredResponse, begin
from afresh.errors import AlreadyExists, RunBusy
from afresh.model.fetch import WORST_FIRST, Failed, Gone, Outcome, Seen
from afresh.model.filters import ALL_PAGES, AttemptCursor, LinkCursor, LinkFilter, PageFilter
from afresh.model.records import ChangeKind, ListedUrl, PageId, PageStatus, RunId, RunMode, RunState, SourceId
from afresh.store.store import Store
from afresh.testing import FrozenClock

SITE: dict[str, Seen] = {
    "": read("Root", "b", "a", "c"),
    "a": read("Page a", "c", "b"),
    "b": read("Page b", "a"),
    "c": read("Page c"),
}


async def test_lists_go_on_where_they_ended_whatever_is_written_meanwhile(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    here, store = [crawler.source.id], crawler.store
    first = await store.pages.records(here, limit=3)
    assert await store.pages.drop(first[0].id, crawler.clock()) is True
    rest = await store.pages.records(here, after=first[-1].id, limit=3)
    assert len({page.url for page in (*first, *rest)}) == 4
    assert [page.id for page in (*first, *rest)] == sorted(page.id for page in (*first, *rest))
    assert await store.pages.records([SourceId(999_999_999)], limit=3) == []
    assert len(await store.pages.records(None, ALL_PAGES, limit=10)) == 4
    deleted = await store.pages.records(None, PageFilter(status=PageStatus.DELETED), limit=10)
    assert [page.id for page in deleted] == [first[0].id]

    named = {".ORG/A": at("a"), "/B": at("b"), "100%": None, "_": None}  # any case, and no jokers
    for text, url in named.items():
        found = [page.url for page in await store.pages.records(here, PageFilter(text=text), limit=10)]
        assert found == ([url] if url else []), text
    assert {page.depth for page in await store.pages.records(here, PageFilter(depth=1), limit=10)} == {1}
    assert await store.pages.records(here, PageFilter(language="tlh"), limit=10) == []

    assert [each.url for each in await store.history.changes(here, url=at("a"), limit=10)] == [at("a")]
    changes = await store.history.changes(None, limit=2)
    older = await store.history.changes(here, below=changes[-1].id, limit=10)
    assert [change.id for change in (*changes, *older)] == sorted(
        (change.id for change in (*changes, *older)), reverse=True
    )
    assert (changes[0].kind, changes[0].run) == (ChangeKind.DELETED, None)
    assert await store.history.changes(here, run=999_999_999, limit=10) == []

    [run] = await store.runs.records(here, limit=10)
    assert await store.runs.records(here, state=RunState.QUEUED, limit=10) == []
    assert await store.runs.records(None, below=run.id, limit=10) == []
    attempts = await store.history.attempts(first[1].id, limit=10)
    assert [a.id for a in attempts] == sorted((a.id for a in attempts), reverse=True)
    assert await store.history.attempts(first[1].id, below=attempts[-1].id, limit=10) == []


async def test_attempts_of_a_run_come_by_outcome_and_changes_by_kind(crawler: ManualCrawler) -> None:
    assert sorted(WORST_FIRST) == sorted(Outcome), "none is left out"
    store = crawler.store
    late = Failed(outcome=Outcome.TIMEOUT, reason="too slow", hopeless=True)
    down = Failed(outcome=Outcome.FAILED, reason="down", hopeless=True)
    await crawler.crawl({**SITE, "": read("Root", "b", "a", "c", "d"), "b": late, "c": Gone(), "d": down})
    run = (await store.runs.records([crawler.source.id], limit=1))[0].id
    attempts = list(await store.history.attempts_of_run(run, limit=100))
    places = [AttemptCursor(each.outcome, each.id) for each in attempts if each.outcome]
    order = (Outcome.TIMEOUT, Outcome.FAILED, Outcome.GONE, Outcome.SUCCESS)
    assert list(dict.fromkeys(place.outcome for place in places)) == list(order), "what went wrong first"
    assert places == sorted(places, key=lambda place: (order.index(place.outcome), place.id))
    for number, place in enumerate(places, 1):  # in parts as at once
        assert list(await store.history.attempts_of_run(run, after=place, limit=2)) == attempts[number : number + 2]
        for outcome in Outcome:
            behind = [each for each in attempts[number:] if each.outcome is outcome]
            assert list(await store.history.attempts_of_run(run, outcome=outcome, after=place, limit=9)) == behind
    for outcome in Outcome:
        rows = [each for each in attempts if each.outcome is outcome]
        assert list(await store.history.attempts_of_run(run, outcome=outcome, limit=9)) == rows
    assert list(await store.history.attempts_of_run(RunId(999_999_999), limit=9)) == []

    await crawler.store.pages.drop((await store.pages.records([crawler.source.id], limit=1))[0].id, crawler.clock())
    changes = list(await store.history.changes(None, limit=100))
    assert {change.kind for change in changes} == {ChangeKind.NEW, ChangeKind.DELETED}
    for kind in ChangeKind:
        expected = [each for each in changes if each.kind is kind]
        for sources in (None, [crawler.source.id], [crawler.source.id, SourceId(999_999_999)]):
            assert list(await store.history.changes(sources, kind=kind, limit=100)) == expected
            below = expected[0].id if expected else 1
            assert list(await store.history.changes(sources, kind=kind, below=below, limit=100)) == expected[1:]
            assert list(await store.history.changes(sources, kind=kind, limit=1)) == expected[:1]
        assert list(await store.history.changes([SourceId(999_999_999)], kind=kind, limit=100)) == []

    for run_id, url, kind in product((None, run, 999_999_999), (None, at("a"), at("none")), (None, *ChangeKind)):
        asked: dict[str, Any] = {"run": run_id, "url": url, "kind": kind}
        expected = [
            each
            for each in changes
            if run_id in (None, each.run) and url in (None, each.url) and kind in (None, each.kind)
        ]
        for sources in (None, [crawler.source.id], [crawler.source.id, SourceId(999_999_999)]):
            assert list(await store.history.changes(sources, **asked, limit=100)) == expected, asked
            below = expected[0].id if expected else 1
            assert list(await store.history.changes(sources, **asked, below=below, limit=1)) == expected[1:2]
        assert list(await store.history.changes([SourceId(999_999_999)], **asked, limit=100)) == []


WHICH = [
    PageFilter(status=status, everything=everything, doubtful=doubtful, language=language, depth=depth, text=text)
    for status in (None, PageStatus.ACTIVE, PageStatus.DELETED)
    for everything in (False, True)
    for doubtful in (False, True)
    for language in (None, "en", "tlh")
    for depth in (None, 0, 1)
    for text in (None, "", "PAGE", "/b", "_")
]
CASES = (
    "École",
    "ÉCOLE",
    "école",
    "éCoLE",
    "ecole",
    "Äpfel und öl",
    "ÄPFEL UND ÖL",
    "äPFEL",
    "Σοφός",
    "ΣΟΦΌΣ",
    "дом",
    "ДОМ",
    "straße",
    "[é",
    "É*",
    "É?",
    "100%",
    "100!",
    "%",
    "!",
    "*",
    "?",
    "[",
    "]",
    "^",
    "\\",
    "日本",
)


async def test_every_store_finds_the_pages_that_a_filter_fits(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    here, store = [crawler.source.id], crawler.store
    await store.pages.drop((await store.pages.records(here, limit=1))[0].id, crawler.clock())
    pages = await store.pages.records(here, ALL_PAGES, limit=10)
    nearest = await store.pages.of_source(crawler.source.id, ALL_PAGES)
    assert len(pages) == len(nearest) == len(SITE)
    for which in WHICH:
        assert await store.pages.records(here, which, limit=10) == [each for each in pages if which.fits(each)]
        assert await store.pages.of_source(crawler.source.id, which) == [each for each in nearest if which.fits(each)]


async def test_every_store_finds_pages_in_any_case_of_any_script(crawler: ManualCrawler) -> None:
    titles = {
        "": "Root",
        "a": "École [École] 100% *",
        "b": "ÉCOLE? Über Äpfel und Öl!",
        "c": "Σοφός ΣΟΦΌΣ Дом Straße 日本",
    }
    await crawler.crawl({path: read(path, "a", "b", "c", title=title) for path, title in titles.items()})
    here, store = [crawler.source.id], crawler.store
    pages = await store.pages.records(here, limit=10)
    assert {each.title for each in pages} == set(titles.values())
    for text in CASES:
        which = PageFilter(text=text)
        fits = [each.id for each in pages if which.fits(each)]
        assert [each.id for each in await store.pages.records(here, which, limit=10)] == fits, text
        assert sorted(each.id for each in await store.pages.of_source(crawler.source.id, which)) == fits, text
        status = replace(which, status=PageStatus.READY_FOR_INDEXING)
        copied = await store.copies.pages_by_state(["out"], here, status, after=0, limit=10)
        assert [each.id for each in copied] == fits, text
    assert {text for text in CASES if not any(PageFilter(text=text).fits(each) for each in pages)} == {
        "ecole",
        "É*",
        "É?",
        "100!",
        "^",
        "\\",
    }


async def test_links_come_with_their_pages_and_best_first(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    store, here = crawler.store, [crawler.source.id]
    links = {link.url: link for link in await store.links.records(here, limit=10)}
    assert {url: [page.url for page in link.pages] for url, link in links.items()} == {
        at("a"): [ROOT, at("b")],
        at("b"): [ROOT, at("a")],
        at("c"): [ROOT, at("a")],
    }
    assert await store.links.set_worth(links[at("c")].id, 0.75, "by hand") is True
    [best] = await store.links.records(here, limit=1)
    assert (best.url, best.score, best.comment, best.page_count) == (at("c"), 0.75, "by hand", 2)
    behind = LinkCursor(best.score or 0.0, best.url, best.id)
    assert [link.url for link in await store.links.records(None, after=behind, limit=10)] == [at("a"), at("b")]
    page_b = next(page for page in await store.pages.records(here, limit=10) if page.url == at("b"))
    for which, urls in {
        LinkFilter(page=page_b.id): [at("a")],
        LinkFilter(url=at("c")): [at("c")],
        LinkFilter(min_score=0.7): [at("c")],
        LinkFilter(min_score=0.8): [],
    }.items():
        assert [link.url for link in await store.links.records(None, which, limit=10)] == urls
    assert await store.links.get(best.id) == best

    added = await store.links.add(page_b.id, "https://other.example/", "Other")
    assert added is not None
    found = await store.links.get(added)
    assert found is not None
    assert [(page.id, page.text) for page in found.pages] == [(page_b.id, "Other")]
    assert await store.links.remove(added) is True
    assert await store.links.get(added) is None
    assert await store.links.remove(added) is False
    assert await store.links.add(PageId(999_999_999), "https://other.example/", "") is None
    assert await store.links.set_worth(999_999_999, None, None) is False


async def test_a_page_is_added_put_off_and_let_go_by_hand(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    store, now = crawler.store, crawler.clock()
    added = await store.pages.add(crawler.source.id, at("new"), 1, now)
    assert await store.pages.add(crawler.source.id, at("new"), 1, now) == added
    later = now + timedelta(days=3)
    assert await store.pages.check_at(added, later, now) is True
    assert {each.url: each.next_at for each in await store.due.waiting(crawler.source.id)}[at("new")] == later
    assert await store.pages.check_at(PageId(999_999_999), later, now) is False
    page = await store.pages.get(added)
    assert page is not None
    assert (page.status, page.source_id) == (PageStatus.PENDING, crawler.source.id)
    assert await store.pages.drop(added, now) is True
    assert await store.pages.drop(added, now) is False
    assert await store.pages.drop(PageId(999_999_999), now) is False
    assert await store.pages.get(PageId(999_999_999)) is None


async def test_R6_keywords_of_a_link_are_replaced_whole(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    store = crawler.store
    link = (await store.links.records([crawler.source.id], limit=1))[0].id
    for keywords, score, kept in (
        ({"b": 0.5, "a": 0.5, "c": 1.0}, 1.25, {"c": 1.0, "a": 0.5, "b": 0.5}),
        (None, 0.75, {"c": 1.0, "a": 0.5, "b": 0.5}),
        ({"a": 0.25}, 0.5, {"a": 0.25}),
        ({}, None, {}),
    ):
        assert await store.links.set_worth(link, score, "by hand", keywords) is True
        found = await store.links.get(link)
        assert found is not None
        assert (found.score, list(found.keywords.items())) == (score, list(kept.items()))


async def test_R6_a_source_gets_another_name_or_root(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    store, source, now = crawler.store, crawler.source, crawler.clock()
    for version in (None, "2"):
        await store.sources.add(
            name="other", version=version, kind="web", url="https://o.example/", rules={}, policy={}, now=now
        )
    same: Any = {"url": source.url, "operator_url": source.operator_url, "now": now}
    for version in (None, "2"):
        with pytest.raises(AlreadyExists, match="other"):
            await store.sources.change(source.id, name="other", version=version, **same)
    renamed = await store.sources.change(source.id, name="other", version="3", **same)
    assert renamed is not None
    assert (renamed.label, renamed.url, renamed.crawl_time is None) == ("other@3", source.url, False)
    assert await store.sources.find("other", "3") == await store.sources.get(source.id) == renamed
    assert await store.sources.find(source.name, source.version) is None
    run, _ = await store.runs.start(source.id, RunMode.REFRESH, full=False, worker=None, now=now)
    await store.queue.enqueue(run, [ListedUrl(source.url, 0)], crawler.limits, now)
    moved = await store.sources.change(source.id, name="other", version="3", url=at("b"), operator_url="", now=now)
    assert moved is not None
    assert (moved.url, moved.operator_url, moved.mark) == (at("b"), "", None)
    over = await store.runs.get(run.id)
    assert over is not None
    assert (over.state, "URL" in (over.error or "")) == (RunState.FAILED, True)
    assert not (await store.queue.backlog(run.id)).open
    assert await store.sources.change(SourceId(999_999_999), name="x", version=None, **same) is None


async def test_rules_are_replaced_whole(crawler: ManualCrawler) -> None:
    changed = await crawler.store.sources.replace_rules(crawler.source.id, {"max_pages": 5}, {}, crawler.clock())
    assert changed is not None
    assert (changed.rules, changed.policy) == ({"max_pages": 5}, {})
    assert await crawler.store.sources.replace_rules(SourceId(999_999_999), {}, {}, crawler.clock()) is None


async def test_an_answer_is_given_again_for_a_day(store: Store, clock: FrozenClock) -> None:
    begin = store.access.begin_answer
    assert await begin("me", "key", "asked", clock()) is None
    assert await begin("me", "key", "asked", clock()) == StoredResponse("asked")
    assert await begin("you", "key", "asked", clock()) is None
    answer = StoredResponse("asked", 201, "/x", "{}")
    first = clock()
    await store.access.keep_answer("me", "key", first, answer)
    clock.advance(seconds=50)
    renewed = clock()
    assert await store.access.renew_answer("you", "key", first, renewed)
    assert await store.access.renew_answer("you", "key", first, renewed), "as when the answer of the store was lost"
    clock.advance(seconds=50)
    assert await begin("you", "key", "asked", clock()) == StoredResponse("asked"), "it goes on"
    clock.advance(hours=23)
    assert await begin("me", "key", "other", clock()) == answer
    second = clock()
    assert await begin("you", "key", "asked", second) is None, "who began and never ended is dead"
    clock.advance(seconds=1)
    await store.access.keep_answer("you", "key", renewed, answer)
    await store.access.forget_answer("you", "key", renewed)
    assert not await store.access.renew_answer("you", "key", renewed, clock())
    assert await begin("you", "key", "asked", clock()) == StoredResponse("asked"), "another one's now"
    await store.access.forget_answer("you", "key", second)
    assert await begin("you", "key", "asked", second) is None
    await store.access.keep_answer("you", "key", second, answer)
    assert not await store.access.renew_answer("you", "key", second, clock()), "it ended"
    clock.advance(hours=2)
    assert await begin("me", "key", "asked", clock()) is None


async def test_an_answer_that_takes_long_stays_its_own(store: Store, clock: FrozenClock) -> None:
    async def asked_again() -> StoredResponse | RequestClaim:
        clock.advance(seconds=50)
        return await begin(store, clock, "me", "key", "asked")

    answer = StoredResponse("asked", 200, None, "{}")
    first = await asked_again()
    assert isinstance(first, RequestClaim)
    assert await asked_again() == StoredResponse("asked")
    assert await first.renew()
    assert await asked_again() == StoredResponse("asked")
    second = await asked_again()
    assert isinstance(second, RequestClaim), "the first was not heard of for more than a minute"
    clock.advance(seconds=1)
    assert not await first.renew()
    with pytest.raises(RunBusy):
        async with first:
            raise RunBusy("late")
    async with second:
        await second.keep(answer)
    assert await asked_again() == answer
