"""What watching files is about: its times, and what it tells."""

from collections.abc import Callable
from dataclasses import dataclass

from afresh.events import Notice
from afresh.model.reports import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimes:
    """How long what takes, in seconds."""

    debounce: float = 0.5
    rescan: float = 3_600.0
    again: float = 60.0  # after changes: when everything is listed to find what was not heard
    tick: float = 1.0  # how often the root is looked for


USUAL = WatchTimes()
Sight = RunReport | Notice
Sights = Callable[[Sight], None]


def ignore_sight(sight: Sight) -> None:
    """Nobody looks on."""
