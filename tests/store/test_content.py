"""Chunks keep their rows while their text stays; with `storage.body: none` no body is kept anywhere."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.asking import search
from tests.store.desk import Desk, at, read

from afresh.model.records import RunMode
from afresh.store.store import Store

SENTENCE = "The quokka of Rottnest keeps seventeen umbrellas in a lighthouse"


async def _counts(desk: Desk) -> tuple[int, int]:
    counts = (await desk.reload()).counts
    return counts.get("chunks_kept", 0), counts.get("chunks_made", 0)


async def test_P7_only_chunks_with_new_text_are_made(desk: Desk) -> None:
    await desk.crawl({"": read("One\n\nTwo\n\nThree")})
    assert await _counts(desk) == (0, 3)
    await desk.crawl({"": read("Zero\n\nOne\n\nThree\n\nTwo")})
    assert await _counts(desk) == (3, 1)
    assert (await desk.store.stats.source_view(desk.source)).chunks == 4
    assert [hit.url for hit in await search(desk.store, "zero")] == [at("")]


async def test_a_chunk_whose_link_leads_elsewhere_is_made_anew_and_keeps_its_vector(desk: Desk) -> None:
    """What a text says has a vector; where its links lead is only shown."""
    await desk.crawl({"": read("See [this](https://docs.test/old)\n\nTwo")})
    before = {wanting.text_hash for wanting in await desk.store.vectors.unembedded("any")}
    await desk.crawl({"": read("See [this](https://docs.test/new)\n\nTwo")})
    assert await _counts(desk) == (1, 1)
    assert {wanting.text_hash for wanting in await desk.store.vectors.unembedded("any")} == before
    [hit] = await search(desk.store, "see this")
    assert "https://docs.test/new" in hit.text.replace("\x02", "").replace("\x03", "")


async def test_the_same_text_twice_on_a_page_is_two_chunks(desk: Desk) -> None:
    await desk.crawl({"": read("Same\n\nSame\n\nOther")})
    await desk.crawl({"": read("Same\n\nSame\n\nSame\n\nAnother")})
    assert await _counts(desk) == (2, 2)
    assert (await desk.store.stats.source_view(desk.source)).chunks == 4


async def test_a_new_title_is_searched_at_once(desk: Desk) -> None:
    """The title stands in every chunk, so chunks of another title are made anew."""
    await desk.crawl({"": read("Text", title="Cranes")})
    await desk.crawl({"": read("Text\n\nMore", title="Herons")})
    assert await search(desk.store, "cranes") == []
    assert len(await search(desk.store, "herons")) == 1


async def test_a_page_whose_title_alone_changed_is_found_by_its_new_one(desk: Desk) -> None:
    """The body is the same, so nothing is made anew."""
    await desk.crawl({"": read("Text", "a", title="Cranes"), "a": read("Text", title="Storks")})
    await desk.crawl({"": read("Text", "a", title="Herons"), "a": read("Text", title="Storks")})
    assert (await desk.page("")).title == "Herons"
    assert [hit.title for hit in await search(desk.store, "herons")] == ["Herons"]
    assert [hit.title for hit in await search(desk.store, "storks")] == ["Storks"]
    assert (await desk.reload()).counts["unchanged"] == 2


async def test_a_new_recipe_replaces_content_without_telling_of_a_change(desk: Desk) -> None:
    await desk.crawl({"": read("Text")})
    desk.policy = replace(desk.policy, recipe="r2")
    await desk.crawl({"": read("Text")}, RunMode.REFRESH)
    assert (await desk.page("")).recipe == "r2"
    assert await desk.changes(run=desk.run.id) == []
    assert (await desk.reload()).counts["unchanged"] == 1


async def test_A10_chunks_go_with_their_page(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a"), "a": read("Quokka")})
    await desk.crawl({"": read("Root", "a")})
    assert await search(desk.store, "quokka") == []
    assert (await desk.store.stats.source_view(desk.source)).chunks == 1


async def test_B10_the_language_sticks(desk: Desk) -> None:
    await desk.crawl({"": read("Text", language="de")})
    await desk.crawl({"": read("Texte", language="fr")})
    assert (await desk.page("")).language == "de"


async def test_G10_a_language_is_set_anew_when_asked_for(desk: Desk) -> None:
    """The text is the same, but it is read by other rules: its chunks are made anew, and nothing changed."""
    await desk.crawl({"": read("Die Straßen", language="fr")})
    assert await search(desk.store, "Strasse") == []
    desk.policy = replace(desk.policy, redetect=True)
    await desk.crawl({"": read("Die Straßen", language="de")})
    assert (await desk.page("")).language == "de"
    assert [hit.language for hit in await search(desk.store, "Strasse", language="de")] == ["de"]
    assert await desk.changes(run=desk.run.id) == []
    await desk.crawl({"": read("Die Straßen", language=None)})
    assert (await desk.page("")).language == "de", "a page that tells nothing keeps what was found"


# ---- storage.body: none


async def test_B17_without_a_body_a_page_is_found_but_not_shown(desk: Desk) -> None:
    desk.keep_body = False
    await desk.crawl({"": read(SENTENCE, title="Animals")})
    page = await desk.page("")
    assert page.content_hash is not None
    assert (await desk.store.pages.content(page.id)).markdown is None
    [hit] = await search(desk.store, "quokka umbrellas")
    assert (hit.url, hit.title, hit.text) == (at(""), "Animals", "")


async def test_B17_no_sentence_of_a_page_is_in_the_file(
    sqlite_store: Store, sqlite_desk: Desk, sqlite_file: Path
) -> None:
    sqlite_desk.keep_body = False
    await sqlite_desk.crawl({"": read(f"Intro\n\n{SENTENCE}", "a", title="Animals"), "a": read(SENTENCE)})
    await sqlite_desk.crawl({"": read(f"Other\n\n{SENTENCE}", "a", title="Animals"), "a": read(SENTENCE)})
    assert len(await search(sqlite_store, "quokka")) == 2
    kept = b"".join(file.read_bytes() for file in sqlite_file.parent.glob("afresh.db*"))
    assert b"Animals" in kept
    assert b"umbrellas" in kept, "its words are what is searched"
    for part in (SENTENCE, SENTENCE.lower(), "seventeen umbrellas", "keeps seventeen", "in a lighthouse"):
        assert part.encode() not in kept


async def test_B17_a_body_kept_before_goes_with_the_next_change(desk: Desk) -> None:
    """A page that is stored anew under `none` keeps no chunk with its text, changed or not."""
    await desk.crawl({"": read(f"{SENTENCE}\n\nOld end")})
    desk.keep_body = False
    await desk.crawl({"": read(f"{SENTENCE}\n\nNew end")})
    page = await desk.page("")
    assert (await desk.store.pages.content(page.id)).markdown is None
    assert await _counts(desk) == (0, 2)
    [hit] = await search(desk.store, "quokka")
    assert hit.text == ""


async def test_G1_a_body_kept_again_is_shown_whole(desk: Desk) -> None:
    desk.keep_body = False
    await desk.crawl({"": read(f"{SENTENCE}\n\nOld end")})
    desk.keep_body = True
    await desk.crawl({"": read(f"{SENTENCE}\n\nNew end")})
    [hit] = await search(desk.store, "quokka")
    assert hit.text.replace("\x02", "").replace("\x03", "") == SENTENCE


@pytest.mark.parametrize("keep_body", [True, False])
async def test_B17_a_diff_is_body_too(desk: Desk, keep_body: bool) -> None:
    await desk.crawl({"": read("Old")})
    await desk.begin()
    await desk.enqueue("")
    [claim] = await desk.claim()
    visit = desk.visit(claim, read("New"))
    visit = replace(visit, harvest=replace(visit.harvest, diff="-Old\n+New"))
    await desk.commit(visit, keep_body=keep_body)
    [change, _] = await desk.changes()
    assert change.diff == ("-Old\n+New" if keep_body else None)
    assert await desk.store.history.changes_of_run(desk.run.id, [change.kind], limit=9) == [
        replace(change, diff=None)
    ]
