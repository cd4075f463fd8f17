"""What a search answers from: one hit for a page that several versions share, and a word on what it lacks."""

import asyncio
from pathlib import Path

from tests.e2e.library import opened, rows
from tests.e2e.sites import lay, star, word

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite


async def test_a_page_that_versions_share_is_one_hit_of_the_newest(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(2))
    for version in ("9", "10", "2"):
        await kb.runs.crawl(tiny.url, name="docs", version=version)
    hits = (await kb.search.search(word("/p1"), mode="text")).hits
    assert [(hit.url, hit.version) for hit in hits] == [(tiny.at("/p1"), "10")]
    assert (await kb.pages.open(tiny.at("/p1"))).version == "10"
    assert (await kb.pages.open(tiny.at("/p1"), within="docs@2")).version == "2"


async def test_meanings_that_nobody_made_are_message_to_be_missing(store: Path, tiny: TinySite) -> None:
    lay(tiny, star(2))
    async with opened(store, {"embedding.provider": "none"}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        answer = await kb.search.search(word("/p1"), mode="vector")
        assert answer.hits == ()
        assert "no embeddings to compare" in answer.notes[0]
        found = await kb.search.search(word("/p1"))
        assert ([hit.url for hit in found.hits], found.notes) == ([tiny.at("/p1")], ())


async def test_a_path_may_be_named_without_its_first_slash(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs")
    for path in ("p1", "/p1", "*p1"):
        hits = (await kb.search.search(f"{word('/p1')} {word('/p2')}", mode="text", path=path)).hits
        assert [hit.url for hit in hits] == [tiny.at("/p1")], path


async def test_wide_and_narrow_letters_are_the_same(kb: KnowledgeBase, tiny: TinySite) -> None:
    body = "プログラムが使うメモリを減らすには、設定を変えてから再起動してください。" * 4
    tiny.put("/", f'<html lang="ja"><body><main><h1>設定</h1><p>{body}</p></main></body></html>')
    await kb.runs.crawl(tiny.url, name="docs")
    for query in ("メモリ", "ﾒﾓﾘ"):
        assert [hit.url for hit in (await kb.search.search(query, mode="text")).hits] == [tiny.at("/")], query


async def test_G1_differences_of_text_are_forgotten_when_it_is_no_longer_kept(store: Path, tiny: TinySite) -> None:
    lay(tiny, star(2))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.edit("/p1", add_paragraph="Quiet zebras graze by the harbour.")
        await kb.runs.refresh(["docs"])
        assert rows(store, "select 1 from changes where diff like '%zebras%'")
        await kb.runs.crawl(tiny.url, name="docs", rules={"body": "none"})
    assert rows(store, "select 1 from changes where diff is not null") == []
    assert b"zebras graze" not in await asyncio.to_thread(store.read_bytes)
