"""Links scored on this machine: with the built-in model, without it, and many of them."""

import asyncio
import time

import pytest

from afresh.errors import EmbedderUnavailable
from afresh.links.score import LinkToScore
from afresh.models import offline_scorer
from afresh.models.fast import FastModel
from afresh.models.offline_scorer import OfflineLinkScorer, WordSimilarity

SITE = "https://www.elmford.example"
PLACES = "river museum plan street winter market garden office water school bridge theatre history parks"
WORDS = PLACES.split()


async def scores(scorer: OfflineLinkScorer, keyword: str, text: str) -> float:
    """The score of one keyword for a text."""
    verdicts = await scorer.score([LinkToScore(f"{SITE}/1", text)], [keyword])
    return verdicts[0].keywords[keyword] if verdicts else 0.0


async def test_C18_links_without_any_keyword_are_left_out_and_others_explained() -> None:
    scorer = OfflineLinkScorer()
    links = [LinkToScore(f"{SITE}/pool", "Pool"), LinkToScore(f"{SITE}/2026-budgets", "Spending of the council")]
    (verdict,) = await scorer.score(links, ["budget", "council"])
    assert (verdict.url, verdict.text) == links[1]
    assert list(verdict.keywords.items()) == [("budget", 1.0), ("council", 1.0)]
    assert verdict.comment == "budget: “budgets”; council: “council”"
    assert (scorer.calls, scorer.tokens) == (0, 0)
    assert await scorer.score([], ["budget"]) == []
    assert await scorer.score(links, []) == []


async def test_C18_a_meaning_counts_where_no_word_does_and_less_than_any_word() -> None:
    scorer = OfflineLinkScorer()
    assert 0.3 <= await scores(scorer, "bicycle", "Bikes") <= 0.5
    assert await scores(scorer, "bicycle", "Bicycles") == 1.0
    assert await scores(scorer, "bicycle", "Museum of clocks") == 0.0
    assert await scores(scorer, "court", "Courtyard café") == 0.0, "chance likeness"
    assert await scores(scorer, "court", "Courthouse") == 0.9
    assert await scores(scorer, "tax", "Taxi") == 0.0


async def test_without_the_embedded_model_letters_decide_and_the_recipe_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = OfflineLinkScorer().recipe

    def missing(model: str) -> None:
        raise EmbedderUnavailable("not installed")

    monkeypatch.setattr(offline_scorer, "check_installed", missing)
    monkeypatch.setattr(offline_scorer, "builtin", None)
    scorer = OfflineLinkScorer()
    assert scorer.recipe != usual
    assert await scores(scorer, "budget", "Budgets") == 1.0
    assert await scores(scorer, "job", "Vacancies") == 0.6
    assert await scores(scorer, "bicycle", "Bikes") == 0.0


async def test_a_score_depends_on_link_and_keyword_alone() -> None:
    links = [LinkToScore(f"{SITE}/{word}", f"{word} and voting") for word in WORDS]
    keywords = ["election", "garden", "theatre", "bicycle"]
    together = {each.url: each for each in await OfflineLinkScorer().score(links, keywords)}
    scorer = OfflineLinkScorer()
    for link in reversed(links):
        assert list(await scorer.score([link], keywords)) == [together[link.url]]


@pytest.mark.slow
async def test_many_links_are_scored_quickly_and_off_the_event_loop() -> None:
    scorer = OfflineLinkScorer()
    await scorer.score([LinkToScore(SITE, "Warm up")], ["budget"])
    links = [
        LinkToScore(f"{SITE}/{WORDS[at % 14]}/{WORDS[at % 11]}-{at}", f"{WORDS[at % 13]} {WORDS[at % 5]} {at % 97}")
        for at in range(5_000)
    ]
    keywords = ["budget", "contact", "minutes", "agenda", "permit", "job", "election", "tax", "library", "zoning"]
    beats, began = 0, time.process_time()
    work = asyncio.ensure_future(scorer.score(links, keywords))
    while not work.done():
        beats += 1
        await asyncio.wait({work}, timeout=0.01)
    assert time.process_time() - began < 20, "about a second where nothing else runs"
    assert beats > 5
    assert len(await work) < 2_500


def test_the_nearest_keyword_comes_with_its_word() -> None:
    likeness = WordSimilarity(FastModel())
    found = likeness.nearest([["physicians", "team"], [], ["taxi"]], ["doctor", "tax"])
    assert found[0] is not None
    keyword, match = found[0]
    assert (keyword, match.words) == ("doctor", "physicians")
    assert match.score > 0.35
    assert found[1] is None
    assert found[2] is not None
    assert found[2][1].score < 0.3, "letters that two words share prove nothing"
