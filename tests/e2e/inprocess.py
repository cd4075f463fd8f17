"""Extraction and chunking without processes of their own."""

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import ClassVar, ParamSpec, TypeVar

import afresh.crawl.factory
import afresh.search.model_provider
from afresh.errors import ExtractError
from afresh.extract.pool.pool import ParserPool
from afresh.search.embedding import EMBED

P = ParamSpec("P")
R = TypeVar("R")


class InProcess(ParserPool):
    """Does the work where it is asked for and counts it: a test need not wait for processes to start."""

    calls = 0  # without those that embed, which serve the pages of a batch
    of: ClassVar[Counter[str]] = Counter()  # calls by the name of the function

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a function, with the errors that the real one gives."""
        if function is not EMBED:
            type(self).calls += 1
            self.of[getattr(function, "name", "")] += 1
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise ExtractError(str(error)) from error


USERS: tuple[ModuleType, ...] = (afresh.crawl.factory, afresh.search.model_provider)


def parse_in_process() -> None:
    """Let this process parse pages itself, to the end of its life."""
    for module in USERS:
        assert vars(module)["ParserPool"], module
        vars(module)["ParserPool"] = InProcess
