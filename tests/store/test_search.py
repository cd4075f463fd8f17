"""Search: any text is a query, filters hold, and a page is one hit."""

from random import Random

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.access.permissions import Permissions
from afresh.model.fetch import Seen
from afresh.search.records import SearchFilter, SearchMode, SearchRequest
from afresh.search.search import answer
from afresh.store.scoped import ScopedStore
from afresh.store.store import Store

SITE: dict[str, Seen] = {
    "": read("Welcome to the harbour", "retries", "quellen", "brasil", "retries2", title="Start", language="en"),
    "retries": read(
        "Retries wait longer each time\n\nA retry budget limits retries\n\nSnails sleep",
        title="Retries",
        language="en-GB",
    ),
    "retries2": read("Jobs may ask for retries", title="Jobs", language="en"),
    "quellen": read("Quellen und Speicher", title="Quellen", language="de"),
    "brasil": read("Fontes e armazenamento", title="Fontes", language="pt-BR"),
}


@pytest.fixture
async def filled(crawler: ManualCrawler) -> ManualCrawler:
    await crawler.crawl(SITE)
    return crawler


async def _urls(store: Store, query: str, **filters: object) -> list[str]:
    return [hit.url for hit in await search(store, query, **filters)]  # type: ignore[arg-type]


async def test_a_hit_has_its_source_and_how_fresh_it_is(filled: ManualCrawler) -> None:
    [hit] = await search(filled.store, "speicher")
    assert (hit.url, hit.title, hit.source, hit.version, hit.language) == (at("quellen"), "Quellen", "docs", None, "de")
    assert (hit.path, hit.checked_at, hit.changed_at) == (("Quellen",), filled.clock(), filled.clock())
    assert hit.score >= 0


async def test_a_page_is_one_hit_unless_every_chunk_is_wanted(filled: ManualCrawler) -> None:
    assert sorted(await _urls(filled.store, "retries")) == [at("retries"), at("retries2")]
    every = await _urls(filled.store, "retries", every_chunk=True)
    assert every.count(at("retries")) > 1


async def test_F68_one_content_under_two_addresses_is_one_hit_that_names_both(crawler: ManualCrawler) -> None:
    """index.html and its folder: neither is lost, and search does not repeat itself."""
    same = read("Quinces grow here")
    await crawler.crawl(
        {"": read("The root", "q/", "q/index.html", "r"), "q/": same, "q/index.html": same, "r": read("Quinces, too")}
    )
    hits = await search(crawler.store, "quinces")
    assert {hit.url: hit.also_at for hit in hits} == {at("q/"): (at("q/index.html"),), at("r"): ()}
    assert len(await search(crawler.store, "quinces", every_chunk=True)) == 3


async def test_matched_words_are_marked(filled: ManualCrawler) -> None:
    [hit] = await search(filled.store, "snails")
    assert hit.text == "\x02Snails\x03 sleep"


async def test_all_words_come_before_any(filled: ManualCrawler) -> None:
    hits = await search(filled.store, "jobs retries")
    assert hits[0].url == at("retries2")
    assert at("retries") in [hit.url for hit in hits]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True), "the order is that of the scores"


async def test_the_title_is_searched(filled: ManualCrawler) -> None:
    assert await _urls(filled.store, "start harbour") == [at("")]


async def test_the_limit_holds(filled: ManualCrawler) -> None:
    assert len(await _urls(filled.store, "retries", limit=1)) == 1


@pytest.mark.parametrize(
    ("language", "found"),
    [
        ("en", ["", "retries", "retries2"]),
        ("en-GB", ["retries"]),
        ("de", ["quellen"]),
        ("pt", ["brasil"]),
        ("e", []),
        ("fr", []),
    ],
)
async def test_B10_the_language_filters(filled: ManualCrawler, language: str, found: list[str]) -> None:
    """A language stands for all its regions."""
    words = "harbour retries quellen fontes"
    assert sorted(await _urls(filled.store, words, language=language)) == [at(path) for path in found]


async def test_the_source_filters(filled: ManualCrawler) -> None:
    other = await ManualCrawler.at(filled.store, filled.clock, "other", "2")
    await other.crawl({"": read("Retries elsewhere")})
    assert len(await _urls(filled.store, "retries")) == 3
    [hit] = await search(filled.store, "retries", source=other.source.id)
    assert (hit.source, hit.version) == ("other", "2")
    assert len(await _urls(filled.store, "retries", source=filled.source.id)) == 2


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', '"""', "'", "-", "*", "^", "NOT", "AND OR", "a AND", "(", "NEAR(", "title:x", "a:b", "{x}",
     "retries*", '"retries', "+x -y", "\\", "\x00", ";--", "%", "_", "\ud800", "😀", "e\u0301", "a" * 5000,
     "x " * 500],
)  # fmt: skip
async def test_no_query_is_an_error(filled: ManualCrawler, query: str) -> None:
    assert isinstance(await search(filled.store, query), list)


async def test_no_jumble_is_an_error(filled: ManualCrawler) -> None:
    dice, pieces = (
        Random(7),
        ['"', "'", "*", "^", "(", ")", "-", ":", "AND", "NEAR", "retries", "Ä", "\x00", " ", "“"],
    )
    for _ in range(150):
        query = "".join(dice.choices(pieces, k=dice.randint(1, 9)))
        assert isinstance(await search(filled.store, query), list), query


async def test_operators_are_words(filled: ManualCrawler) -> None:
    assert await _urls(filled.store, '"retry budget"') == [at("retries")]
    assert at("retries") in await _urls(filled.store, "retries NOT retries")


async def test_nothing_is_found_where_nothing_is(store: Store) -> None:
    assert await search(store, "anything") == []


async def test_words_in_quotes_are_a_must(filled: ManualCrawler) -> None:
    assert await _urls(filled.store, '"budget limits" jobs') == [at("retries")]
    note = "no exact match for the quoted phrase"
    for mode, urls, message in (
        (SearchMode.TEXT, set(), note),
        (SearchMode.HYBRID, {at("retries"), at("retries2")}, f"{note}; showing other results"),
    ):
        found = await answer(filled.store, SearchRequest(query='"limits budget" jobs', mode=mode))
        assert {hit.url for hit in found.hits} == urls
        assert found.notes == (message,)


async def test_a_search_is_narrowed_by_path_and_by_age(filled: ManualCrawler) -> None:
    async def urls(**within: object) -> list[str]:
        asked = SearchRequest(query="retries", within=SearchFilter(**within))  # type: ignore[arg-type]
        return sorted(hit.url for hit in (await answer(filled.store, asked)).hits)

    first = filled.clock()
    assert await urls(path="*retries2") == [at("retries2")]
    assert await urls(path="/nowhere/*") == []
    filled.clock.advance(seconds=60)
    changed = read("Jobs may ask for more retries", title="Jobs", language="en")
    await filled.crawl({**SITE, "retries2": changed})
    assert await urls(changed_after=filled.clock()) == [at("retries2")]
    assert await urls(checked_after=filled.clock()) == [at("retries"), at("retries2")]
    assert await urls(changed_after=first, language="en-GB") == [at("retries")]


@pytest.mark.parametrize("mode", [SearchMode.HYBRID, SearchMode.TEXT])
async def test_an_answer_without_a_good_match_is_weak(filled: ManualCrawler, mode: SearchMode) -> None:
    good = await answer(filled.store, SearchRequest(query="RETRY budgets", mode=mode))
    assert not good.weak
    assert good.hits[0].relevance == 1
    assert all(0 < hit.relevance <= 1 for hit in good.hits)
    nonsense = await answer(filled.store, SearchRequest(query="xyzzyqwv", mode=mode))
    assert nonsense.weak
    assert not nonsense.hits
    hardly = await answer(filled.store, SearchRequest(query="xyzzyqwv blorptang vontifex retries", mode=mode))
    assert hardly.weak
    assert all(hit.weak and 0 < hit.relevance < 0.32 for hit in hardly.hits)
    assert hardly.hits


async def test_exact_matches_of_a_phrase_are_good(filled: ManualCrawler) -> None:
    found = await answer(filled.store, SearchRequest(query='"retry budget" xyzzyqwv'))
    assert [hit.relevance for hit in found.hits] == [1.0]
    assert not found.weak
    missing = await answer(filled.store, SearchRequest(query='"budget retry"', mode=SearchMode.HYBRID))
    assert missing.notes == ("no exact match for the quoted phrase; showing other results",)
    assert not missing.weak


async def test_a_token_for_some_sources_learns_no_counts_of_words(filled: ManualCrawler) -> None:
    counted = await filled.store.search.word_counts("retries xyzzyqwv")
    assert (counted.counts["retries"] > 1, counted.counts["xyzzyqwv"]) == (True, 0)
    bound = ScopedStore(filled.store, Permissions(caller="token", sources=frozenset({"docs"})))
    assert (await bound.search.word_counts("retries xyzzyqwv")).counts == {"retries": 1, "xyzzyqwv": 1}
