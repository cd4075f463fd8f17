"""Links scored by keywords, from outside: what is asked, what it costs, and what is told."""

import asyncio
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, found, opened, rows
from tests.e2e.sites import looks, word
from tests.fakes.link_scorer import FakeLinkScorer

from afresh.errors import ScoreError, ScorerUnavailable
from afresh.kb import KnowledgeBase
from afresh.links.score import LinkJudgement, LinkToScore
from afresh.links.scoring import LinkScoring
from afresh.model.records import SourceId
from afresh.model.reports import LinkView, RunReport
from afresh.models import link_scorer
from afresh.testing import FrozenClock, TinySite

KEYWORDS = {"budget": 1.0, "contact": 0.5}
NAV = {"/": "Home", "/contact": "Contact us", "/news": "News"}
CITY: dict[str, dict[str, str]] = {
    "/": {"/budget-2026": "The budget of 2026", "/parks": "Parks"},
    "/contact": {"https://elsewhere.example/contacts": "Other contacts"},
    "/news": {"/budget-2026": "Read more"},
    "/parks": {},
    "/budget-2026": {"/files/plan.pdf": "Budget plan, with contact"},
}


@pytest.fixture
def scorer(monkeypatch: pytest.MonkeyPatch, work: type[InProcess]) -> FakeLinkScorer:
    """A model that is asked instead of any other, and remembers what; its counts go on from run to run."""
    scorer = FakeLinkScorer()
    monkeypatch.setattr(link_scorer, "link_scorer_for", lambda *settings: scorer)
    return scorer


def lay(site: TinySite, pages: Mapping[str, Mapping[str, str]], nav: Mapping[str, str] = NAV) -> None:
    """Pages with links of their own below links that all of them have."""
    for path, links in pages.items():
        site.put(path, _page(path, {**nav, **links}))


def _page(path: str, links: Mapping[str, str]) -> str:
    items = "".join(f'<li><a href="{url}">{escape(text)}</a></li>' for url, text in links.items())
    words = f"This page speaks of {word(path)} and of little else."
    return f"<title>{path}</title><main><h1>{path}</h1><p>{words}</p><ul>{items}</ul></main>"


async def crawl(kb: KnowledgeBase, site: TinySite, **own: object) -> RunReport:
    """Crawl with keywords, unless others are given."""
    return await kb.runs.crawl(site.url, name="city", policy={"keywords": KEYWORDS, **own})


async def scored(kb: KnowledgeBase, **which: object) -> dict[str, LinkView]:
    """The links that are worth something, by the end of their address."""
    views = await kb.links.of_source("city", **which)  # type: ignore[arg-type]
    return {view.url.rpartition("/")[2]: view for view in views if view.score is not None}


def asked_links(scorer: FakeLinkScorer) -> list[LinkToScore]:
    return [link for links, _ in scorer.asked for link in links]


@EVERY_STORE
async def test_C5_C16_C18_C19_C20_C24_links_are_scored_and_reported_best_first_with_their_pages(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    report = await crawl(kb, tiny)
    assert report.state == "completed"
    listed = await kb.links.of_source("city")
    assert [view.score for view in listed] == [1.25, 1.0, 0.5, 0.5, None, None, None]
    views = await scored(kb)
    assert list(views) == ["plan.pdf", "budget-2026", "contact", "contacts"]
    assert views["plan.pdf"].keywords == {"budget": 1.0, "contact": 1.0}
    assert views["plan.pdf"].comment == "says Budget plan, with contact"
    assert views["budget-2026"].pages == (tiny.url, tiny.at("/news")), "one link, all pages it stands on"
    assert len(views["contact"].pages) == 5
    assert {view.crawl_time for view in listed} == {(await kb.sources.view("city")).crawl_time}


async def test_C7_C16_links_are_filtered_by_keyword_score_and_page(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    await crawl(kb, tiny)
    assert list(await scored(kb, keyword=" Contact ")) == ["plan.pdf", "contact", "contacts"]
    assert list(await scored(kb, min_score=1)) == ["plan.pdf", "budget-2026"]
    assert list(await scored(kb, page=tiny.at("/news"))) == ["budget-2026", "contact"]
    assert await kb.links.of_source("city", keyword="sewage") == []


async def test_C17_only_addresses_and_texts_are_sent_and_each_pair_once(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    report = await crawl(kb, tiny)
    asked = asked_links(scorer)
    assert len(asked) == len(set(asked)) == 8, "the links of the navigation, and five of single pages"
    assert {link.text for link in asked if link.url == tiny.at("/budget-2026")} == {"The budget of 2026", "Read more"}
    assert (scorer.calls, scorer.asked[0][1]) == (1, ("budget", "contact"))
    reported = (report.links_scored, report.links_unscored, report.link_calls, report.ai_calls, report.ai_tokens)
    assert reported == (8, 0, 1, 1, 80)


@EVERY_STORE
async def test_C8_C9_a_second_crawl_right_after_the_first_asks_nothing(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    await crawl(kb, tiny)
    before = await kb.links.of_source("city")
    report = await crawl(kb, tiny)
    assert (scorer.calls, report.ai_calls, report.links_scored) == (1, 0, 0)
    assert (report.links_saved, report.link_calls_saved) == (8, 1)
    assert [(view.url, view.score) for view in await kb.links.of_source("city")] == [
        (view.url, view.score) for view in before
    ]
    tiny.put("/parks", _page("/parks", NAV).replace("little else", "much else"))
    [report] = await kb.runs.refresh(["city"])
    assert (report.changed, scorer.calls) == (1, 1), "other words, the same links"


async def test_C10_C17_a_changed_navigation_is_asked_about_once_not_once_per_page(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    await crawl(kb, tiny)
    lay(tiny, CITY, {**NAV, "/contact": "Write to us", "/minutes": "Minutes"})
    tiny.put("/minutes", _page("/minutes", {}))
    [report] = await kb.runs.refresh(["city"])
    assert report.changed == 5
    assert [len(links) for links, _ in scorer.asked] == [8, 2]
    assert {link.text for link in scorer.asked[1][0]} == {"Write to us", "Minutes"}
    assert (await scored(kb))["contact"].score == 0.5, "its address says it"


async def test_C11_pages_are_stored_and_links_followed_whatever_becomes_of_scores(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    scorer.always = ScorerUnavailable("the model is not there")
    report = await crawl(kb, tiny)
    assert (report.new, report.state) == (5, "completed")
    assert await found(kb, word("/parks"), within="city") == {tiny.at("/parks")}
    assert (report.links_scored, report.links_unscored, scorer.calls) == (0, 8, 1)
    assert any("8 links are not scored" in note and "not there" in note for note in report.notes)
    scorer.always = None
    [report] = await kb.runs.refresh(["city"])
    assert (report.not_modified, report.links_scored, report.links_unscored) == (5, 8, 0)
    assert list(await scored(kb)) == ["plan.pdf", "budget-2026", "contact", "contacts"]


async def test_C11_one_batch_in_vain_leaves_its_links_for_the_next_run(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    scorer.batch, scorer.troubles = 3, {2: ScoreError("it said nothing of use")}
    report = await crawl(kb, tiny)
    assert (report.links_scored, report.links_unscored, scorer.calls) == (5, 3, 3)
    [report] = await kb.runs.refresh(["city"])
    assert (report.links_scored, report.links_unscored, scorer.calls) == (3, 0, 4)
    [report] = await kb.runs.refresh(["city"])
    assert (report.links_scored, scorer.calls) == (0, 4)


async def test_F90_what_a_batch_in_vain_did_say_is_kept_and_only_the_rest_asked_again(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    problems = ScoreError("it breaks off")
    problems.found = [LinkJudgement(tiny.at("/contact"), "Contact us", {"contact": 1.0})]
    scorer.troubles = {1: problems}
    report = await crawl(kb, tiny)
    assert (report.links_scored, report.links_unscored) == (1, 7)
    assert list(await scored(kb)) == ["contact"]
    [report] = await kb.runs.refresh(["city"])
    assert (report.links_scored, report.links_unscored, report.links_saved) == (7, 0, 1)
    again, _ = scorer.asked[1]
    assert len(again) == 7
    assert problems.found[0].url not in {link.url for link in again}


async def test_C19_other_weights_ask_nothing_and_another_keyword_asks_for_itself(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    await crawl(kb, tiny)
    report = await crawl(kb, tiny, keywords={"budget": 0.1, "contact": 1.0})
    assert (scorer.calls, report.links_scored) == (1, 0)
    assert (await scored(kb))["budget-2026"].score == 0.1
    await crawl(kb, tiny, keywords={"budget": 0.1, "contact": 1.0, "park": 1.0})
    assert [keywords for _, keywords in scorer.asked] == [("budget", "contact"), ("park",)]
    assert (await scored(kb))["parks"].keywords == {"park": 1.0}
    await crawl(kb, tiny, keywords={"contact": 1.0})
    assert scorer.calls == 2
    assert set(await scored(kb)) == {"contact", "contacts", "plan.pdf"}
    report = await crawl(kb, tiny, keywords={})
    assert (scorer.calls, report.links_scored, await scored(kb)) == (2, 0, {})


async def test_C19_a_keyword_that_nobody_asked_for_counts_a_quarter_or_as_the_settings_say(
    store: Path, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    scorer.volunteers = lambda link: {"Green": 1.0} if "Parks" in link.text else {}
    async with opened(store) as kb:
        await crawl(kb, tiny)
        view = (await scored(kb))["parks"]
        assert (view.keywords, view.score) == ({"green": 1.0}, 0.25)
    async with opened(store, {"links.unknown_keyword_weight": 0.5}) as kb:
        await kb.runs.refresh(["city"])
        assert ((await scored(kb))["parks"].score, scorer.calls) == (0.5, 1)


async def test_nothing_is_asked_where_no_keywords_are_set(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    report = await kb.runs.crawl(tiny.url, name="city")
    assert (scorer.calls, report.links_scored, report.links_saved) == (0, 0, 0)
    assert {view.score for view in await kb.links.of_source("city")} == {None}


async def test_C17_batches_are_asked_while_the_crawl_goes_on(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    """The last page waits for the first answer: if scoring waited for the crawl, neither would end."""
    lay(tiny, CITY)
    scorer.batch = 3
    tiny.hold("/parks")
    task = asyncio.create_task(crawl(kb, tiny))
    await scorer.answered.wait()
    tiny.release("/parks")
    report = await task
    assert (report.links_scored, scorer.calls) == (8, 3)
    assert {len(links) for links, _ in scorer.asked} == {3, 2}


async def test_G9_a_stop_waits_for_no_answer_and_the_next_run_asks_again(
    store: Path, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, CITY)
    scorer.batch, scorer.hangs_at = 3, 2
    async with opened(store) as kb:
        task = asyncio.create_task(crawl(kb, tiny))
        await scorer.hanging.wait()
        kb.stop()
        report = await task
    assert report.links_scored == 3
    assert "not scored" in "".join(report.notes)
    assert_sound(store)
    async with opened(store) as kb:
        assert (await crawl(kb, tiny)).links_unscored == 0
        assert len(await scored(kb)) == 4
    assert len(set(asked_links(scorer))) == 8


async def test_F91_a_budget_per_day_counts_the_calls_of_all_runs(
    store: Path, tiny: TinySite, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls a day: the second run may make one, the third none until the first is a day old."""
    lay(tiny, CITY)
    clock = FrozenClock()
    scorers: list[FakeLinkScorer] = []

    def made(links: object, ai: object, caller: object, allowance: object) -> FakeLinkScorer:
        scorers.append(Obedient(allowance))
        return scorers[-1]

    monkeypatch.setattr(link_scorer, "link_scorer_for", made)
    reports = []
    async with opened(store, {"ai.budget_per_day": 2}, clock=clock) as kb:
        for hours in (0, 1, 1, 23):
            clock.advance(hours * 3600)
            reports.append(await crawl(kb, tiny))
    assert [report.ai_calls for report in reports] == [2, 0, 0, 2]
    assert [report.links_unscored for report in reports] == [4, 4, 4, 0]
    assert "ai.budget_per_day (2) is used up" in reports[1].notes[-1]


class Obedient(FakeLinkScorer):
    """A scorer that keeps to what a run may spend."""

    def __init__(self, allowance: object) -> None:
        super().__init__(batch=2)
        self.allowance = allowance

    async def score(self, links: Sequence[LinkToScore], keywords: Sequence[str]):  # type: ignore[no-untyped-def]
        """The verdicts, if one more call may be made."""
        if refusal := self.allowance.refusal:  # type: ignore[attr-defined]
            raise ScorerUnavailable(refusal)
        self.allowance.spend()  # type: ignore[attr-defined]
        return await super().score(links, keywords)


BRANCHES = {f"/b{number}": f"Branch {number}" for number in range(12)}
DEEP: dict[str, dict[str, str]] = {
    "/": {**BRANCHES, "/way": "To the budget office"},
    **{path: {f"{path}/leaf": "A leaf"} for path in BRANCHES},
    **{f"{path}/leaf": {} for path in BRANCHES},
    "/way": {"/vault": "Budget vault"},
    "/vault": {"/gold": "Contact and budget"},
    "/gold": {},
}


@pytest.mark.parametrize("sitemap", [False, True])
async def test_the_best_links_are_followed_first_where_not_all_can_be(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer, sitemap: bool
) -> None:
    lay(tiny, DEEP, {})
    if sitemap:
        tiny.sitemap(True)
    scorer.is_free = True
    own = {"max_pages": 12, "order": "score", "probe": False}
    report = await kb.runs.crawl(tiny.url, name="city", rules=own, policy={"keywords": KEYWORDS})
    assert report.new == 12
    assert {"/", "/way", "/vault", "/gold"} <= set(looks(tiny)), "three steps away, and none a branch"
    assert any("max_pages 12" in note for note in report.notes)
    await kb.runs.crawl(tiny.url, name="all", rules={"order": "score", "probe": False}, policy={"keywords": KEYWORDS})
    assert len(await kb.pages.of_source("all")) == len(DEEP), "without a limit nothing is left out"


async def test_without_the_order_by_score_the_nearest_pages_come_first(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, DEEP, {})
    await kb.runs.crawl(tiny.url, name="city", rules={"max_pages": 12, "probe": False}, policy={"keywords": KEYWORDS})
    assert not {"/vault", "/gold"} & set(looks(tiny))


async def test_a_model_is_asked_in_full_batches_also_where_the_best_come_first(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer
) -> None:
    lay(tiny, DEEP, {})
    scorer.batch = 10
    own = {"max_pages": 20, "order": "score", "probe": False}
    report = await kb.runs.crawl(tiny.url, name="city", rules=own, policy={"keywords": KEYWORDS})
    assert {"/way", "/vault"} <= set(looks(tiny))
    assert report.links_unscored == 0
    assert scorer.calls <= -(-report.links_scored // 10) + 1


@pytest.mark.parametrize("spent", [False, True])
async def test_F91_links_that_a_model_was_not_asked_about_are_ranked_by_their_words_meanwhile(
    kb: KnowledgeBase, tiny: TinySite, scorer: FakeLinkScorer, spent: bool
) -> None:
    lay(tiny, DEEP, {})
    scorer.batch = 1 if spent else 1000
    scorer.always = ScorerUnavailable("ai.budget_per_run (0) is spent") if spent else None
    own = {"max_pages": 12, "order": "score", "probe": False}
    report = await kb.runs.crawl(tiny.url, name="city", rules=own, policy={"keywords": KEYWORDS})
    assert {"/", "/way", "/vault", "/gold"} <= set(looks(tiny)), "three steps away, and none a branch"
    assert scorer.calls == 1, "in the end, or in vain"
    assert (report.links_scored == 0, report.links_unscored > 10) == (spent, spent)


async def test_F91_links_do_not_pile_up_once_the_budget_is_spent(
    kb: KnowledgeBase, store: Path, tiny: TinySite, scorer: FakeLinkScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring: list[LinkScoring] = []
    settle = LinkScoring.settle

    async def watched(self: LinkScoring, source: SourceId) -> None:
        scoring.append(self)
        await settle(self, source)

    monkeypatch.setattr(LinkScoring, "settle", watched)
    lay(tiny, DEEP, {})
    scorer.batch = 5
    scorer.troubles = {2: ScorerUnavailable("ai.budget_per_run (1) is spent")}
    report = await crawl(kb, tiny)
    [(pairs,)] = rows(store, "select count(distinct link_id || text) from page_links")
    assert (report.links_scored, report.links_unscored) == (5, pairs - 5)
    assert not scoring[0]._new
    assert not scoring[0]._left
    assert not any(scoring[0]._ready.values())


def test_answers_of_a_scorer_are_kept_with_its_recipe(store: Path) -> None:
    """The schema: one row per target and text, and what follows from them."""
    import sqlite3

    async def made() -> None:
        async with opened(store):
            pass

    asyncio.run(made())
    with sqlite3.connect(store) as db:
        columns = [row[1] for row in db.execute("pragma table_info(link_asked)")]
    assert columns == ["link_id", "text", "recipe", "keywords", "answer", "comment", "asked_at"]
    assert rows(store, "select count(*) from link_keywords") == [(0,)]
