"""Doubt on record: flags, the text before a flagged change, and who is flagged."""

from dataclasses import replace

from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.model.fetch import ContentSignals, Gone, ReadDocument, Seen
from afresh.model.filters import PageFilter
from afresh.model.records import PageStatus, RunMode

LONG = "Apples grow on trees and are eaten by whoever climbs first. " * 30
SITE: dict[str, Seen] = {"": read("The root", "a", "b"), "a": read(LONG), "b": read("Pears grow here")}


def odd(seen: ReadDocument, **signs: object) -> ReadDocument:
    """What was seen, with what stands around it."""
    return replace(seen, signs=ContentSignals(**signs))  # type: ignore[arg-type]


def drawn(seen: ReadDocument, sketch: str) -> ReadDocument:
    """What was seen, with this sketch."""
    return replace(seen, document=replace(seen.document, sketch=sketch))


async def refresh(crawler: ManualCrawler, **changed: Seen) -> list[str]:
    """A run over the site with some of its pages changed; the signs belong to the run."""
    return await crawler.crawl({**SITE, **changed}, RunMode.REFRESH)


async def test_F40_what_is_held_is_flagged_listed_and_counted_and_the_index_stays(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await refresh(crawler, a=odd(read("Sign in, please"), like_missing=True, likeness=0.0, run=2))
    page = await crawler.page("a")
    assert (page.status, page.content_hash) == (PageStatus.ACTIVE, SITE["a"].document.content_hash)  # type: ignore[union-attr]
    assert page.doubt is not None
    assert (page.doubt_run, page.doubt_hash) == (2, read("Sign in, please").document.content_hash)
    assert await search(crawler.store, "apples")
    assert not await search(crawler.store, "sign")
    [listed] = await crawler.store.pages.of_source(crawler.source.id, PageFilter(doubtful=True))
    assert (listed.url, listed.doubt) == (page.url, page.doubt)
    assert (await crawler.store.stats.source_view(crawler.source)).doubtful == 1
    assert (await crawler.store.stats.totals())["doubtful"] == 1
    assert (await crawler.reload()).counts["doubtful"] == 1


async def test_a_good_look_a_304_and_a_404_take_the_flag_off(crawler: ManualCrawler) -> None:
    held = odd(read("Sign in, please"), like_missing=True, likeness=0.0)
    for cure in (SITE["a"], Gone()):
        await crawler.crawl(SITE)
        await refresh(crawler, a=held)
        assert (await crawler.page("a")).doubt is not None
        await refresh(crawler, a=cure)
        assert (await crawler.page("a")).doubt is None
    assert await crawler.store.pages.of_source(crawler.source.id, PageFilter(doubtful=True)) == []


async def test_F43_U1_the_text_before_a_flagged_change_is_kept_whatever_comes_next(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    short = odd(read("Gone fishing"), likeness=0.5, length=len(LONG))
    await refresh(crawler, a=short)
    page = await crawler.page("a")
    held = await crawler.store.pages.content(page.id)
    assert (held.markdown, held.former, held.length) == ("Gone fishing", LONG, 12)
    assert page.doubt is not None
    assert (await crawler.reload()).counts["flagged"] == 1
    assert held.former_at == crawler.clock()
    for later in (short, odd(read("Still fishing"), length=len(LONG)), odd(read("Fish and chips")), read("")):
        await refresh(crawler, a=later)
        held = await crawler.store.pages.content(page.id)
        assert (held.former, held.former_at is not None) == (LONG, True)
    await refresh(crawler, a=SITE["a"])
    held = await crawler.store.pages.content(page.id)
    assert (held.markdown, held.former) == (LONG, None), "it is the text on record again"
    await refresh(crawler, a=odd(read("Out for lunch"), length=len(LONG)))
    other = "Pears fall from trees. " * 60
    await refresh(crawler, a=read(other))
    assert (await crawler.store.pages.content(page.id)).former == LONG
    await refresh(crawler, a=odd(read("Out again"), length=len(other)))
    assert (await crawler.store.pages.content(page.id)).former == other


async def test_F40_pages_that_hold_or_were_doubted_for_the_same_are_counted(crawler: ManualCrawler) -> None:
    wall = drawn(read("Lunch break"), "0000000a0000000b0000000c0000000d0000000e")
    near = drawn(read("Lunch break 2"), "0000000a0000000b0000000c0000000d0000000f")
    far = drawn(read("Dinner"), "0000000a000000ff")
    await crawler.crawl({"": read("The root", "a", "b", "c"), "a": wall, "b": far, "c": read("Pears")})
    page = await crawler.page("c")
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    run = crawler.run.id
    assert await crawler.store.pages.count_alike(page, near.document, run) == 0, "two of three is not the same"
    same = replace(near.document, sketch=wall.document.sketch)
    assert await crawler.store.pages.count_alike(page, same, run) == 1
    assert await crawler.store.pages.count_alike(await crawler.page("a"), same, run) == 0, "a page is not its own twin"
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    claims = {claim.page.url: claim for claim in await crawler.claim()}
    held = odd(read("Lunch break 2"), like_missing=True, likeness=0.0)
    await crawler.commit(crawler.visit(claims[at("b")], held))
    assert await crawler.store.pages.count_alike(page, same, run) == 2
    await crawler.commit(crawler.visit(claims[at("a")], drawn(read("Lunch again"), wall.document.sketch)))
    assert await crawler.store.pages.count_alike(page, same, run) == 1, (
        "who changed in this run is for the crowd to count"
    )


async def test_the_sketch_of_a_page_is_kept_with_it(crawler: ManualCrawler) -> None:
    seen = read("Apples")
    seen = replace(seen, document=replace(seen.document, sketch="0000000a"))
    await crawler.crawl({"": seen})
    assert (await crawler.store.pages.content((await crawler.page("")).id)).sketch == "0000000a"
