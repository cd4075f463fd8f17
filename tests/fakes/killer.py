"""A killer that works by chance: the same seed draws the same moments."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from afresh.ops.failpoints import POINTS

LIKELY = ("sql", "page.claimed", "page.fetched", "page.prepared", "fetch.body", "sql.done")


class Victim(Protocol):
    """A process that runs a crawl."""

    def kill(self) -> None: ...

    def join(self, timeout: float | None = None) -> None: ...

    @property
    def exitcode(self) -> int | None: ...


Start = Callable[[str], Victim]  # gets what to put into AFRESH_FAILPOINTS


@dataclass(slots=True)
class Killer:
    """Starts lives and ends them at a drawn moment: behind a failpoint, or after some time at the latest."""

    seed: int
    seconds: float  # the longest time that a life lasts
    hits: int  # the latest hit of a failpoint at which it kills
    max_wait_seconds: float = 600.0  # seconds until a life that should end is taken for hung
    kills: int = 0
    survived: int = 0  # lives that came to their end before the moment did
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def strike(self, start: Start) -> bool:
        """One life; whether it was cut short."""
        by_point = self._chance.random() < 0.5
        seconds = self.seconds if by_point else self._chance.uniform(0, self.seconds)
        victim = start(self._failpoint() if by_point else "")
        victim.join(seconds)
        if victim.exitcode is None:
            victim.kill()
        victim.join(self.max_wait_seconds)
        killed = victim.exitcode == -9
        if not killed and victim.exitcode != 0:
            raise AssertionError(f"{self}: a life ended with {victim.exitcode}")
        self.kills += killed
        self.survived += not killed
        return killed

    def _failpoint(self) -> str:
        name = self._chance.choice((*LIKELY, self._chance.choice(list(POINTS))))
        return f"{name}=kill@{self._chance.randint(1, self.hits)}"

    def __str__(self) -> str:
        return f"killer with seed {self.seed} after {self.kills} kills"
