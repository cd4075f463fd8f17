"""Sources whose settings contradict those of this machine: they are told of, and the others go on."""

from collections.abc import Callable
from typing import TypeVar

from afresh.crawl.factory import Tools
from afresh.errors import ConfigError
from afresh.model.records import Source

T = TypeVar("T")


def if_settled(ask: Callable[[Source], T], source: Source) -> T | None:
    """What the settings of a source say; None where they cannot be meant together."""
    try:
        return ask(source)
    except ConfigError:
        return None


def trouble_with(tools: Tools, source: Source) -> str | None:
    """Why the settings of a source cannot be used, or None."""
    try:
        tools.bounds(source)
    except ConfigError as wrong:
        return str(wrong)
    return None


def max_age_of(tools: Tools, source: Source) -> float | None:
    """The age at which pages of a source are due in any case."""
    bounds = if_settled(tools.bounds, source)
    return bounds[1].max_age_seconds if bounds else None
