"""Doubt on record: flags, the text before a flagged change, and who is flagged."""

from dataclasses import replace

from tests.contract.desk import Desk, read

from afresh.core.looks import Gone, Read, Seen, Signs
from afresh.core.model import PageStatus, RunMode

LONG = "Apples grow on trees and are eaten by whoever climbs first. " * 30
SITE: dict[str, Seen] = {"": read("The root", "a", "b"), "a": read(LONG), "b": read("Pears grow here")}


def odd(seen: Read, **signs: object) -> Read:
    """What was seen, with what stands around it."""
    return replace(seen, signs=Signs(**signs))  # type: ignore[arg-type]


async def refresh(desk: Desk, **changed: Seen) -> list[str]:
    """A run over the site with some of its pages changed; the signs belong to the run."""
    return await desk.crawl({**SITE, **changed}, RunMode.REFRESH)


async def test_F40_what_is_held_is_flagged_listed_and_counted_and_the_index_stays(desk: Desk) -> None:
    await desk.crawl(SITE)
    await refresh(desk, a=odd(read("Sign in, please"), like_missing=True, likeness=0.0, run=2))
    page = await desk.page("a")
    assert (page.status, page.content_hash) == (PageStatus.ACTIVE, SITE["a"].document.content_hash)  # type: ignore[union-attr]
    assert page.doubt is not None
    assert (page.doubt_run, page.doubt_hash) == (2, read("Sign in, please").document.content_hash)
    assert await desk.store.search("apples")
    assert not await desk.store.search("sign")
    [listed] = await desk.store.pages(desk.source.id, doubtful=True)
    assert (listed.url, listed.doubt) == (page.url, page.doubt)
    assert (await desk.store.source_view(desk.source)).doubtful == 1
    assert (await desk.store.totals())["doubtful"] == 1
    assert (await desk.reload()).counts["doubtful"] == 1


async def test_a_good_look_a_304_and_a_404_take_the_flag_off(desk: Desk) -> None:
    held = odd(read("Sign in, please"), like_missing=True, likeness=0.0)
    for cure in (SITE["a"], Gone()):
        await desk.crawl(SITE)
        await refresh(desk, a=held)
        assert (await desk.page("a")).doubt is not None
        await refresh(desk, a=cure)
        assert (await desk.page("a")).doubt is None
    assert await desk.store.pages(desk.source.id, doubtful=True) == []


async def test_F43_the_text_before_a_flagged_change_is_kept_until_the_next_look(desk: Desk) -> None:
    await desk.crawl(SITE)
    short = odd(read("Gone fishing"), likeness=0.5, length=len(LONG))
    await refresh(desk, a=short)
    page = await desk.page("a")
    held = await desk.store.held(page.id)
    assert (held.markdown, held.former, held.length) == ("Gone fishing", LONG, 12)
    assert page.doubt is not None
    assert (await desk.reload()).counts["flagged"] == 1
    await refresh(desk, a=short)
    assert (await desk.store.held(page.id)).former is None
    assert (await desk.page("a")).doubt is None


async def test_pages_with_one_content_are_counted_by_source(desk: Desk) -> None:
    same = read("Pears grow here")
    await desk.crawl({**SITE, "": read("The root", "a", "b", "c"), "c": same})
    assert await desk.store.pages_with(desk.source.id, same.document.content_hash) == 2
    assert await desk.store.pages_with(desk.source.id, "nothing") == 0


async def test_the_sketch_of_a_page_is_kept_with_it(desk: Desk) -> None:
    seen = read("Apples")
    seen = replace(seen, document=replace(seen.document, sketch="0000000a"))
    await desk.crawl({"": seen})
    assert (await desk.store.held((await desk.page("")).id)).sketch == "0000000a"
