"""Scores of links: asked for once per target and text, derived from what was said, gone with their texts."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.links.score import KeywordWeights, LinkToScore, ScoredLink
from afresh.model.fetch import Link, ReadDocument, Seen
from afresh.model.records import RunState
from afresh.model.reports import LinkView
from afresh.text.normalize import links_hash

RECIPE = "model/1"
WEIGHING = KeywordWeights(weights={"budget": 1.0, "contact": 0.5})
KEYWORDS = tuple(WEIGHING.weights)
SITE: dict[str, Seen] = {"": read("Root", "budget", "contact"), "budget": read("B", ""), "contact": read("C")}


def linking(text: str, **links: str) -> ReadDocument:
    """A page that links to paths by these texts."""
    page = read(text)
    found = tuple(Link(at(path), words) for path, words in links.items())
    return replace(page, document=replace(page.document, links=found, links_hash=links_hash(found)))


async def unasked(crawler: ManualCrawler, *keywords: str, recipe: str = RECIPE) -> dict[LinkToScore, tuple[str, ...]]:
    """What is to be asked."""
    found = await crawler.store.link_scores.unasked(crawler.source.id, recipe, keywords or KEYWORDS)
    count = await crawler.store.link_scores.count_unasked(crawler.source.id, recipe, keywords or KEYWORDS)
    assert count == len(found)
    return {each.link: each.keywords for each in found}


async def keep(
    crawler: ManualCrawler,
    scored: Mapping[LinkToScore, Mapping[str, float]],
    *,
    asked: tuple[str, ...] = KEYWORDS,
    recipe: str = RECIPE,
    comment: str = "",
    weighing: KeywordWeights = WEIGHING,
    **counts: int,
) -> None:
    """Write what a scorer said."""
    answers = [
        ScoredLink(link=link, recipe=recipe, asked=frozenset(asked), scores=scores, comment=comment)
        for link, scores in scored.items()
    ]
    await crawler.store.link_scores.keep(crawler.run, answers, weighing, counts, crawler.clock())


async def scored(crawler: ManualCrawler, **which: object) -> dict[str, LinkView]:
    """The links that are worth something."""
    views = await crawler.store.links.of_source(crawler.source.id, **which)  # type: ignore[arg-type]
    return {view.url: view for view in views if view.score is not None}


BUDGET, CONTACT, HOME = (
    LinkToScore(at("budget"), "to budget"),
    LinkToScore(at("contact"), "to contact"),
    LinkToScore(ROOT, "to the root"),
)


async def test_C17_C24_links_are_asked_about_once_per_target_and_text(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    assert await unasked(crawler) == {BUDGET: KEYWORDS, CONTACT: KEYWORDS, HOME: KEYWORDS}
    await keep(crawler, {BUDGET: {"budget": 1.0}, HOME: {}})
    assert await unasked(crawler) == {CONTACT: KEYWORDS}, "what fits nothing was asked about, too"
    assert await crawler.store.link_scores.count_asked(crawler.source.id) == 2
    among = await crawler.store.link_scores.unasked(crawler.source.id, RECIPE, KEYWORDS, [BUDGET, CONTACT])
    assert [each.link for each in among] == [CONTACT]
    other = LinkToScore(CONTACT.url, "another text")
    assert await crawler.store.link_scores.unasked(crawler.source.id, RECIPE, KEYWORDS, [other]) == []


async def test_C17_another_keyword_is_asked_for_alone_and_one_that_goes_asks_nothing(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await keep(crawler, {BUDGET: {"budget": 1.0}, CONTACT: {"contact": 1.0}, HOME: {}})
    assert await unasked(crawler, "budget") == {}
    assert set((await unasked(crawler, "budget", "contact", "minutes")).values()) == {("minutes",)}
    await keep(crawler, {BUDGET: {"minutes": 0.5}, CONTACT: {}, HOME: {}}, asked=("minutes",))
    assert await unasked(crawler, "budget", "contact", "minutes") == {}
    assert set((await unasked(crawler, recipe="another")).values()) == {KEYWORDS}


async def test_C5_C10_C19_C20_answers_become_score_keywords_and_comment(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    answers = {BUDGET: {"budget": 1.0, "contact": 0.4, "odd": 1.0}, CONTACT: {"contact": 1.0}, HOME: {}}
    await keep(crawler, answers, comment="it says so")
    views = await scored(crawler)
    assert set(views) == {BUDGET.url, CONTACT.url}
    best = views[BUDGET.url]
    assert best.score == pytest.approx(1.0 + 0.25 / 2 + 0.2 / 4)
    assert best.keywords == {"budget": 1.0, "odd": 1.0, "contact": 0.4}
    assert (best.comment, best.text, best.pages) == ("it says so", "to budget", (ROOT,))
    assert views[CONTACT.url].score == 0.5
    await keep(crawler, {BUDGET: {"budget": 0.1}}, recipe="another")
    assert (await scored(crawler))[BUDGET.url].keywords == {"budget": 0.1}, "one row, another answer"


async def test_C7_C16_links_are_listed_best_first_and_filtered(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await keep(crawler, {BUDGET: {"budget": 0.3}, CONTACT: {"contact": 1.0, "budget": 0.1}, HOME: {}})
    listed = await crawler.store.links.of_source(crawler.source.id)
    assert [view.url for view in listed] == [CONTACT.url, BUDGET.url, ROOT]
    assert list(await scored(crawler, keyword="budget")) == [CONTACT.url, BUDGET.url]
    assert list(await scored(crawler, keyword="contact")) == [CONTACT.url]
    assert await crawler.store.links.of_source(crawler.source.id, keyword="nothing") == []
    assert list(await scored(crawler, min_score=0.5)) == [CONTACT.url]
    assert list(await scored(crawler, min_score=0.3)) == [CONTACT.url, BUDGET.url]
    assert list(await scored(crawler, page=ROOT, keyword="budget", limit=1)) == [CONTACT.url]
    assert await scored(crawler, page=at("budget")) == {}
    assert await crawler.store.link_scores.of_source(crawler.source.id) == {CONTACT.url: 0.55, BUDGET.url: 0.3}


async def test_C19_other_weights_make_other_scores_of_the_same_answers(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await keep(crawler, {BUDGET: {"budget": 1.0}, CONTACT: {"contact": 1.0}, HOME: {}})
    await crawler.store.link_scores.weigh(crawler.source.id, KeywordWeights(weights={"contact": 1.0}), "seal")
    assert {url: view.score for url, view in (await scored(crawler)).items()} == {CONTACT.url: 1.0}
    await crawler.store.link_scores.weigh(crawler.source.id, WEIGHING, "seal")
    assert {url: view.score for url, view in (await scored(crawler)).items()} == {BUDGET.url: 1.0, CONTACT.url: 0.5}
    await crawler.store.link_scores.weigh(crawler.source.id, KeywordWeights(weights={}), None)
    assert await scored(crawler) == {}
    assert await crawler.store.link_scores.seal(crawler.source.id) is None


async def test_C10_C14_a_text_that_no_page_shows_any_more_counts_no_more(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": linking("Root", a="Budget of 2025"), "a": linking("A", a="more")})
    old, new = LinkToScore(at("a"), "Budget of 2025"), LinkToScore(at("a"), "A page")
    more = LinkToScore(at("a"), "more")
    await keep(crawler, {old: {"budget": 1.0}, more: {"contact": 0.2}})
    await crawler.crawl({"": linking("Root", a="A page"), "a": linking("A", a="more")})
    assert await unasked(crawler) == {new: KEYWORDS}
    await keep(crawler, {new: {"contact": 0.4}})
    await crawler.store.link_scores.weigh(crawler.source.id, WEIGHING, "seal")
    assert (await scored(crawler))[at("a")].keywords == {"contact": 0.4}
    assert await crawler.store.link_scores.count_asked(crawler.source.id) == 2


async def test_C9_a_seal_breaks_when_links_change_and_only_then(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    assert await crawler.store.link_scores.seal(crawler.source.id) is None
    await crawler.crawl({**SITE, "": read("Root", "budget")})
    assert await crawler.store.link_scores.seal(crawler.source.id) is None, "nobody scored them yet"
    await crawler.store.link_scores.weigh(crawler.source.id, WEIGHING, "seal")
    await crawler.crawl({**SITE, "": read("Root", "budget")})
    assert await crawler.store.link_scores.seal(crawler.source.id) == "seal"
    await crawler.crawl(SITE)
    assert await crawler.store.link_scores.seal(crawler.source.id) == ""


async def test_C14_answers_go_with_their_links_and_sources(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await keep(crawler, {BUDGET: {"budget": 1.0}, CONTACT: {"contact": 1.0}, HOME: {}})
    await crawler.crawl({"": read("Root", "budget"), "budget": read("B", ""), "contact": read("C")})
    assert set(await scored(crawler)) == {BUDGET.url}
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    again = await ManualCrawler.at(crawler.store, crawler.clock)
    await again.crawl(SITE)
    assert set(await unasked(again)) == {BUDGET, CONTACT, HOME}
    assert await crawler.store.link_scores.seal(again.source.id) is None


async def test_what_scoring_took_is_counted_and_summed_over_a_day(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.look(SITE)
    before = crawler.clock()
    await keep(crawler, {BUDGET: {"budget": 1.0}}, links_scored=1, ai_calls=2, ai_tokens=30)
    await keep(crawler, {CONTACT: {}}, links_scored=1, ai_calls=1)
    run = await crawler.store.runs.get(crawler.run.id)
    assert run is not None
    assert (run.counts["links_scored"], run.counts["ai_calls"], run.counts["ai_tokens"]) == (2, 3, 30)
    await crawler.finish(RunState.COMPLETED)
    assert await crawler.store.link_scores.calls_since(before.replace(year=before.year - 1)) == 3
    crawler.clock.advance(3600)
    assert await crawler.store.link_scores.calls_since(crawler.clock()) == 0


async def test_an_answer_about_a_link_that_is_gone_is_let_go(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await keep(crawler, {LinkToScore(at("nowhere"), "x"): {"budget": 1.0}, BUDGET: {"budget": 1.0}})
    assert set(await scored(crawler)) == {BUDGET.url}
    assert await crawler.store.link_scores.count_asked(crawler.source.id) == 1
