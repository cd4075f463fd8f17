"""Summarisers made ready for tests: a model on loopback, asked without real sleep."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes.chat_server import ChatServer
from tests.models.embedders import KEY, Slept

from afresh.config import AiSettings
from afresh.errors import SummaryError
from afresh.models.completions import CompletionClient
from afresh.models.endpoint import ApiService
from afresh.models.summarizer import SUMMARIES, ChatSummarizer
from afresh.ports import Summarizer
from afresh.sources.web.api_client import ApiClient

PROMPT = "Say in {max_chars} characters what it is."


def chat_client(
    service: ApiService, server: ChatServer, caller: ApiClient, slept: Slept | None, **settings: Any
) -> CompletionClient:
    """Return a client that asks `server` and never really sleeps."""
    budget, clock = settings.pop("budget", None), settings.pop("clock", None)
    given = {"provider": "openai", "model": "small", "base_url": server.base_url, "api_key": KEY}
    client = CompletionClient(service, AiSettings(**(given | settings)), caller, budget)
    client.endpoint.sleep = Slept() if slept is None else slept
    client.endpoint.clock = clock or client.endpoint.clock
    return client


@asynccontextmanager
async def chatting(server: ChatServer, slept: Slept | None = None, **settings: Any) -> AsyncIterator[ChatSummarizer]:
    """Yield a summariser that asks `server` and never really sleeps."""
    caller = ApiClient([server.base_url])
    try:
        yield ChatSummarizer(PROMPT, chat_client(SUMMARIES, server, caller, slept, **settings))
    finally:
        await caller.close()


async def error_of(summarizer: Summarizer, text: str = "Some text.") -> SummaryError:
    """Return the error that a summariser raises for a text."""
    with pytest.raises(SummaryError) as caught:
        await summarizer.summarise("A title", text)
    return caught.value
