"""How adapters ask the APIs that the settings name, in any method and form."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Answer(NamedTuple):
    """What an API answered, whatever its form."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    data: bytes


class Asker(Protocol):
    """Asks the APIs that the operator configured and no others; no answer is an ApiError."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, timeout: float
    ) -> Answer: ...

    async def close(self) -> None: ...
