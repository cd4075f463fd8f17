"""Extraction and chunking without processes of their own."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from afresh.errors import ExtractError
from afresh.extract.pool.pool import Offload

P = ParamSpec("P")
R = TypeVar("R")


class InProcess(Offload):
    """Does the work where it is asked for and counts it: a test need not wait for processes to start."""

    calls = 0

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a function, with the errors that the real one gives."""
        type(self).calls += 1
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise ExtractError(str(error)) from error
