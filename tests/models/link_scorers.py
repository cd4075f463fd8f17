"""Scorers of links made ready for tests: a model on loopback, asked without real sleep."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes.chat_server import ChatServer
from tests.models.embedders import Slept
from tests.models.summarizers import chat_client

from afresh.errors import ScoreError
from afresh.links.score import LinkJudgement, LinkToScore
from afresh.models.link_scorer import SCORES, ChatLinkScorer
from afresh.ports import LinkScorer
from afresh.sources.web.api_client import ApiClient

PROMPT = "Score these."
KEYWORDS = ("budget", "contact")
SITE = "https://www.elmford.example"
LINKS = [
    LinkToScore(f"{SITE}/finance/budget", "Money"),
    LinkToScore(f"{SITE}/museum", "Museum"),
    LinkToScore(f"{SITE}/contact", "Contact us about the budget"),
]
EXPECTED = {f"{SITE}/finance/budget": {"budget": 1.0}, f"{SITE}/contact": {"budget": 1.0, "contact": 1.0}}


@asynccontextmanager
async def scoring(server: ChatServer, slept: Slept | None = None, **settings: Any) -> AsyncIterator[ChatLinkScorer]:
    """A scorer that asks `server` and never really sleeps."""
    caller = ApiClient([server.base_url])
    client = chat_client(SCORES, server, caller, slept, **settings)
    try:
        yield ChatLinkScorer(PROMPT, client)
    finally:
        await caller.close()


def by_url(verdicts: Sequence[LinkJudgement]) -> dict[str, dict[str, float]]:
    """The scores of each link."""
    return {verdict.url: dict(verdict.keywords) for verdict in verdicts}


async def error_of(scorer: LinkScorer, links: Sequence[LinkToScore] = LINKS) -> ScoreError:
    """Return the error that a scorer raises for links."""
    with pytest.raises(ScoreError) as caught:
        await scorer.score(links, KEYWORDS)
    return caught.value
