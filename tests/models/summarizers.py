"""Summarisers made ready for tests: a model on loopback, asked without real sleep."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes.chat_server import ChatServer
from tests.models.embedders import KEY, Slept

from afresh.errors import SummaryError
from afresh.models.completions import CompletionClient
from afresh.models.summarizer import SUMMARIES, ChatSummarizer
from afresh.ports import Summarizer
from afresh.sources.web.api_client import ApiClient

PROMPT = "Say in {max_chars} characters what it is."


@asynccontextmanager
async def chatting(
    server: ChatServer, slept: Slept | None = None, **settings: Any
) -> AsyncIterator[ChatSummarizer]:
    """A summariser that asks `server` and never really sleeps."""
    caller = ApiClient([server.base_url])
    given = {"base_url": server.base_url, "api_key": KEY, "sleep": Slept() if slept is None else slept}
    try:
        sizes = {name: settings.pop(name) for name in ("most_chars", "most_input") if name in settings}
        yield ChatSummarizer(
            "small", PROMPT, CompletionClient(SUMMARIES, caller, **(given | settings)), **sizes
        )
    finally:
        await caller.close()


async def trouble(summarizer: Summarizer, text: str = "Some text.") -> SummaryError:
    """What a summariser raises for a text; it must."""
    with pytest.raises(SummaryError) as caught:
        await summarizer.summarise("A title", text)
    return caught.value
