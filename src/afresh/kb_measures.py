"""The use case of those who watch over the server: numbers of the store, read as cheaply as they can be."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.core.model import RunState
from afresh.core.states import UNFINISHED
from afresh.engine.status import alive_workers
from afresh.engine.tools import Tools
from afresh.ports import Clock
from afresh.store.cached_stats import CachedStats
from afresh.store.store import Store

OUTCOMES = ("new", "changed", "unchanged", "not_modified", "deleted", "moved", "failed", "refused")
SUMS = ("bytes", "ai_calls", "ai_tokens", "chunks_embedded", "links_scored", "worked_ms")
MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Numbers at one moment."""

    totals: Mapping[str, int]  # of the store: sources, pages, chunks, pending, in_flight, doubtful
    outcomes: Mapping[str, int]  # of looks at pages, by what they showed
    sums: Mapping[str, int]
    runs: Mapping[str, int]  # by state
    copies: Mapping[tuple[str, str], int]  # by sink and state
    letters: Mapping[str, int]  # by state


@dataclass(slots=True)
class Sums:
    """What runs counted: those that are over are added up once."""

    over: Counter[str] = field(default_factory=Counter)
    through: int = 0  # every run up to this number is over
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def now(self, store: Store) -> Counter[str]:
        """The sums at this moment."""
        async with self.turn:
            found, after, closed = Counter[str](), self.through, True
            while rows := await store.stats.counts_of_runs(after, MOST):
                for number, state, counts in rows:
                    closed = closed and state not in (*UNFINISHED, RunState.NEEDS_CONFIRMATION)
                    if closed:
                        self.over.update(counts)
                        self.through = number
                    else:
                        found.update(counts)
                    after = number
            return self.over + found


class Measures:
    """What there is to watch."""

    _store: Store
    _tools: Tools
    _clock: Clock
    _sums: Sums

    def keep_numbers(self) -> None:
        """Count large sources less often than somebody asks; for a process that stays."""
        if not isinstance(self._store.stats, CachedStats):
            self._store.stats = CachedStats(self._store)

    async def figures(self) -> Figures:
        """The numbers of the store."""
        counts, totals = await self._sums.now(self._store), await self._store.stats.totals()
        alive = await alive_workers(self._store, *self._tools.identity(), self._clock())
        load = await self._store.stats.workload(alive.names)
        names = ("sources", "pages", "chunks", "doubtful")
        return Figures(
            totals={
                **{name: int(totals[name] or 0) for name in names},
                "pending": load.waiting,
                "in_flight": load.held,
            },
            outcomes={name: counts[name] for name in OUTCOMES},
            sums={name: counts[name] for name in SUMS},
            runs=await self._store.stats.runs_by_state(),
            copies=await self._store.stats.copies_by_state(),
            letters=await self._store.messages.count_letters(),
        )
