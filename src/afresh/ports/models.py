"""What writes summaries, and what asks the APIs that models stand behind."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Summarizer(Protocol):
    """Says in a few plain lines what a document is; made anew for every run, as its budget is for one.

    Trouble is a SummaryError that names the fix, a SummarizerDown where none can be made any more.
    """

    @property
    def recipe(self) -> str:
        """A fingerprint of model and prompt."""
        ...

    async def summarise(self, title: str, text: str) -> str:
        """The summary of a Markdown text: never empty, without a blank line."""
        ...

    async def close(self) -> None: ...


class Reply(NamedTuple):
    """What an API answered."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    json: Any  # None where the body is no JSON


class Caller(Protocol):
    """Asks the APIs that the operator configured and no others; no answer is an ApiError."""

    async def post_json(
        self, url: str, headers: Mapping[str, str], body: object, timeout: float
    ) -> Reply: ...

    async def close(self) -> None: ...
