"""What an API wants to be sent and how it answers: the part that differs between providers."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Form(Protocol):
    """How one provider is asked for vectors."""

    url: str
    headers: Mapping[str, str]
    most: int  # texts in one request

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        """The request for these texts."""
        ...

    def rows(self, answer: Any) -> list[Any]:
        """The vectors of an answer in the order of the texts; raises TypeError, KeyError or ValueError."""
        ...
