"""Sending messages: each target by itself, tried again for a day."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from afresh.crawl.report import report_of
from afresh.notify.outbox import (
    DROPPED,
    MOST_CHANGES,
    PAGES,
    Letter,
    LetterState,
    Target,
    kinds_told,
    next_try,
    pages_told,
    run_told,
)
from afresh.notify.transports import Carrier
from afresh.ports import Clock
from afresh.store.store import Store

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=120)  # after which another takes up what someone was sending


@dataclass(slots=True, kw_only=True)
class Postman:
    """Sends what is due."""

    store: Store
    carriers: Mapping[str, Carrier]
    clock: Clock

    async def deliver(self) -> int:
        """Try every message whose time has come, side by side for each target; how many were sent."""
        due = sorted(await self.store.messages.letters_due(self.clock()), key=lambda letter: letter.target)
        rounds = [list(group) for _, group in groupby(due, key=lambda letter: letter.target)]
        done = await asyncio.gather(*map(self._round, rounds), return_exceptions=True)  # each to its end
        for each in done:
            if isinstance(each, BaseException):
                raise each
        return sum(each for each in done if isinstance(each, int))

    async def _round(self, letters: list[Letter]) -> int:
        """The messages of one target, oldest first, until one does not get there."""
        sent = 0
        for letter in letters:
            if not await self.store.messages.take_letter(letter, self.clock() + LEASE):
                continue
            carrier = self.carriers.get(letter.target)
            told = await self._told(letter, carrier.target) if carrier is not None else None
            if carrier is None or told is None:
                gone = f"{_setting(letter)} is not set any more" if carrier is None else "its run is gone"
                await self._settle(letter, gone, final=True)
                continue
            try:
                reason, final = await carrier.carry(letter, told, self.clock())
            except asyncio.CancelledError:  # whoever sends next need not wait until the lease ends
                now = self.clock()
                await self.store.messages.settle_letter(
                    letter, LetterState.WAITING, now, again=now, error=None
                )
                raise
            await self._settle(letter, reason, final=final)
            if reason is not None:
                break
            sent += 1
        return sent

    async def _settle(self, letter: Letter, reason: str | None, *, final: bool) -> None:
        now = self.clock()
        again = None if final else next_try(letter, now)
        state = LetterState.SENT if reason is None else LetterState.WAITING if again else LetterState.DEAD
        if state is LetterState.DEAD:
            told = {"target": letter.target, "event": letter.event, "why": reason}
            log.warning("a message was given up", extra={"data": told})
        await self.store.messages.settle_letter(letter, state, now, again=again, error=reason)

    async def _told(self, letter: Letter, target: Target) -> dict[str, Any] | None:
        run = await self.store.runs.get(letter.run_id)
        source = await self.store.sources.get(run.source_id) if run else None
        if run is None or source is None:
            return None
        report = report_of(run, source)
        if letter.event in (PAGES, DROPPED):
            kinds = kinds_told(letter, target)
            changes = await self.store.history.changes_of_run(run.id, kinds, limit=MOST_CHANGES + 1)
            return pages_told(letter, report, changes)
        return run_told(letter, report)


def _setting(letter: Letter) -> str:
    return letter.target if "." in letter.target else f"webhooks.{letter.target}"
