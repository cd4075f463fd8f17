"""Chunks keep their rows while their text stays; with `storage.body: none` no body is kept anywhere."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.model.records import RunMode
from afresh.store.store import Store

SENTENCE = "The quokka of Rottnest keeps seventeen umbrellas in a lighthouse"


async def _counts(crawler: ManualCrawler) -> tuple[int, int]:
    counts = (await crawler.reload()).counts
    return counts.get("chunks_kept", 0), counts.get("chunks_made", 0)


async def test_P7_only_chunks_with_new_text_are_made(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("One\n\nTwo\n\nThree")})
    assert await _counts(crawler) == (0, 3)
    await crawler.crawl({"": read("Zero\n\nOne\n\nThree\n\nTwo")})
    assert await _counts(crawler) == (3, 1)
    assert (await crawler.store.stats.source_view(crawler.source)).chunks == 4
    assert [hit.url for hit in await search(crawler.store, "zero")] == [at("")]


async def test_a_chunk_with_another_link_target_is_replaced_and_keeps_its_vector(crawler: ManualCrawler) -> None:
    """What a text says has a vector; where its links lead is only shown."""
    await crawler.crawl({"": read("See [this](https://docs.test/old)\n\nTwo")})
    before = {chunk.text_hash for chunk in (await crawler.store.vectors.unembedded("any")).values()}
    await crawler.crawl({"": read("See [this](https://docs.test/new)\n\nTwo")})
    assert await _counts(crawler) == (1, 1)
    assert {chunk.text_hash for chunk in (await crawler.store.vectors.unembedded("any")).values()} == before
    [hit] = await search(crawler.store, "see this")
    assert "https://docs.test/new" in hit.text.replace("\x02", "").replace("\x03", "")


async def test_the_same_text_twice_on_a_page_is_two_chunks(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Same\n\nSame\n\nOther")})
    await crawler.crawl({"": read("Same\n\nSame\n\nSame\n\nAnother")})
    assert await _counts(crawler) == (2, 2)
    assert (await crawler.store.stats.source_view(crawler.source)).chunks == 4


async def test_a_new_title_is_searched_at_once(crawler: ManualCrawler) -> None:
    """The title stands in every chunk, so chunks of another title are made anew."""
    await crawler.crawl({"": read("Text", title="Cranes")})
    await crawler.crawl({"": read("Text\n\nMore", title="Herons")})
    assert await search(crawler.store, "cranes") == []
    assert len(await search(crawler.store, "herons")) == 1


async def test_a_page_whose_title_alone_changed_is_found_by_its_new_one(crawler: ManualCrawler) -> None:
    """The body is the same, so nothing is made anew."""
    await crawler.crawl({"": read("Text", "a", title="Cranes"), "a": read("Text", title="Storks")})
    await crawler.crawl({"": read("Text", "a", title="Herons"), "a": read("Text", title="Storks")})
    assert (await crawler.page("")).title == "Herons"
    assert [hit.title for hit in await search(crawler.store, "herons")] == ["Herons"]
    assert [hit.title for hit in await search(crawler.store, "storks")] == ["Storks"]
    assert (await crawler.reload()).counts["unchanged"] == 2


async def test_a_new_recipe_replaces_content_without_a_change(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Text")})
    crawler.policy = replace(crawler.policy, recipe="r2")
    await crawler.crawl({"": read("Text")}, RunMode.REFRESH)
    assert (await crawler.page("")).recipe == "r2"
    assert await crawler.changes(run=crawler.run.id) == []
    assert (await crawler.reload()).counts["unchanged"] == 1


async def test_A10_chunks_go_with_their_page(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a"), "a": read("Quokka")})
    await crawler.crawl({"": read("Root", "a")})
    assert await search(crawler.store, "quokka") == []
    assert (await crawler.store.stats.source_view(crawler.source)).chunks == 1


async def test_B10_the_language_sticks(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Text", language="de")})
    await crawler.crawl({"": read("Texte", language="fr")})
    assert (await crawler.page("")).language == "de"


async def test_G10_a_language_is_detected_again_on_request(crawler: ManualCrawler) -> None:
    """The text is the same, but it is read by other rules: its chunks are made anew, and nothing changed."""
    await crawler.crawl({"": read("Die Straßen", language="fr")})
    assert await search(crawler.store, "Strasse") == []
    crawler.policy = replace(crawler.policy, redetect=True)
    await crawler.crawl({"": read("Die Straßen", language="de")})
    assert (await crawler.page("")).language == "de"
    assert [hit.language for hit in await search(crawler.store, "Strasse", language="de")] == ["de"]
    assert await crawler.changes(run=crawler.run.id) == []
    await crawler.crawl({"": read("Die Straßen", language=None)})
    assert (await crawler.page("")).language == "de", "a page that tells nothing keeps what was found"


# ---- storage.body: none


async def test_B17_without_a_body_a_page_is_found_but_has_no_text(crawler: ManualCrawler) -> None:
    crawler.keep_body = False
    await crawler.crawl({"": read(SENTENCE, title="Animals")})
    page = await crawler.page("")
    assert page.content_hash is not None
    assert (await crawler.store.pages.content(page.id)).markdown is None
    [hit] = await search(crawler.store, "quokka umbrellas")
    assert (hit.url, hit.title, hit.text) == (at(""), "Animals", "")


async def test_B17_no_sentence_of_a_page_is_in_the_file(
    sqlite_store: Store, sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    sqlite_crawler.keep_body = False
    await sqlite_crawler.crawl({"": read(f"Intro\n\n{SENTENCE}", "a", title="Animals"), "a": read(SENTENCE)})
    await sqlite_crawler.crawl({"": read(f"Other\n\n{SENTENCE}", "a", title="Animals"), "a": read(SENTENCE)})
    assert len(await search(sqlite_store, "quokka")) == 2
    kept = b"".join(file.read_bytes() for file in sqlite_file.parent.glob("afresh.db*"))
    assert b"Animals" in kept
    assert b"umbrellas" in kept, "its words are what is searched"
    for part in (SENTENCE, SENTENCE.lower(), "seventeen umbrellas", "keeps seventeen", "in a lighthouse"):
        assert part.encode() not in kept


async def test_B17_a_body_kept_before_goes_with_the_next_change(crawler: ManualCrawler) -> None:
    """A page that is stored anew under `none` keeps no chunk with its text, changed or not."""
    await crawler.crawl({"": read(f"{SENTENCE}\n\nOld end")})
    crawler.keep_body = False
    await crawler.crawl({"": read(f"{SENTENCE}\n\nNew end")})
    page = await crawler.page("")
    assert (await crawler.store.pages.content(page.id)).markdown is None
    assert await _counts(crawler) == (0, 2)
    [hit] = await search(crawler.store, "quokka")
    assert hit.text == ""


async def test_G1_a_body_stored_again_is_whole(crawler: ManualCrawler) -> None:
    crawler.keep_body = False
    await crawler.crawl({"": read(f"{SENTENCE}\n\nOld end")})
    crawler.keep_body = True
    await crawler.crawl({"": read(f"{SENTENCE}\n\nNew end")})
    [hit] = await search(crawler.store, "quokka")
    assert hit.text.replace("\x02", "").replace("\x03", "") == SENTENCE


@pytest.mark.parametrize("keep_body", [True, False])
async def test_B17_a_diff_is_body_too(crawler: ManualCrawler, keep_body: bool) -> None:
    await crawler.crawl({"": read("Old")})
    await crawler.begin()
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    visit = crawler.visit(claim, read("New"))
    visit = replace(visit, content=replace(visit.content, diff="-Old\n+New"))
    await crawler.commit(visit, keep_body=keep_body)
    [change, _] = await crawler.changes()
    assert change.diff == ("-Old\n+New" if keep_body else None)
    assert await crawler.store.history.changes_of_run(crawler.run.id, [change.kind], limit=9) == [
        replace(change, diff=None)
    ]
