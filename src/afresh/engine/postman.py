"""Sending messages: signed, each target by itself, tried again for a day."""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Protocol

from afresh.core.errors import ApiError
from afresh.core.hooks import sign
from afresh.core.masking import NOT_ALLOWED, mask_secrets, one_line
from afresh.core.outbox import DROPPED, PAGES, Letter, LetterState, Target, next_try, pages_told, run_told
from afresh.engine.report import report_of
from afresh.ports import Clock, Library
from afresh.ports.calls import Answer

log = logging.getLogger(__name__)

TIMEOUT = 15.0  # seconds for one message
LEASE = timedelta(seconds=120)  # after which another takes up what someone was sending
MOST_READ = 20_000  # changes of one run
LONGEST = 300  # characters of a reason


class Asker(Protocol):
    """The guarded client."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, timeout: float
    ) -> Answer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a target is, and what its messages are signed with."""

    target: Target
    url: str
    secret: str


@dataclass(slots=True, kw_only=True)
class Postman:
    """Sends what is due."""

    store: Library
    client: Asker
    addresses: Mapping[str, Address]
    clock: Clock

    async def deliver(self) -> int:
        """Try every message whose time has come, side by side for each target; how many were sent."""
        due = sorted(await self.store.letters_due(self.clock()), key=lambda letter: letter.target)
        rounds = [list(group) for _, group in groupby(due, key=lambda letter: letter.target)]
        return sum(await asyncio.gather(*map(self._round, rounds)))

    async def _round(self, letters: list[Letter]) -> int:
        """The messages of one target, oldest first, until one does not get there."""
        for number, letter in enumerate(letters):
            if await self.store.take_letter(letter, self.clock() + LEASE) and not await self._sent(letter):
                return number
        return len(letters)

    async def _sent(self, letter: Letter) -> bool:
        address, body = self.addresses.get(letter.target), None
        if address is not None:
            body = await self._body(letter, address.target)
        if address is None or body is None:
            gone = f"webhooks.{letter.target} is not set any more" if address is None else "its run is gone"
            await self._settle(letter, gone, final=True)
            return True
        reason, final = await self._tried(letter, address, body)
        await self._settle(letter, reason, final=final)
        return reason is None

    async def _tried(self, letter: Letter, address: Address, body: bytes) -> tuple[str | None, bool]:
        """Why it did not get there, or None; and whether that is the last word."""
        at = int(self.clock().timestamp())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": letter.message,
            "webhook-timestamp": str(at),
            "webhook-signature": sign(address.secret, letter.message, at, body),
        }
        try:
            answer = await self.client.ask("POST", address.url, headers, body, TIMEOUT)
        except ApiError as error:
            return one_line(mask_secrets(str(error)))[:LONGEST], NOT_ALLOWED in str(error)
        if 200 <= answer.status < 300:
            return None, True
        if 300 <= answer.status < 400:
            return f"it answered {answer.status}: redirects are not followed, set the address itself", False
        return f"it answered {answer.status}", answer.status == 410

    async def _settle(self, letter: Letter, reason: str | None, *, final: bool) -> None:
        now = self.clock()
        again = None if final else next_try(replace(letter, attempts=letter.attempts), now)
        state = LetterState.SENT if reason is None else LetterState.WAITING if again else LetterState.DEAD
        if state is LetterState.DEAD:
            told = {"target": letter.target, "event": letter.event, "why": reason}
            log.warning("a webhook was given up", extra={"data": told})
        await self.store.settle_letter(letter, state, now, again=again, error=reason)

    async def _body(self, letter: Letter, target: Target) -> bytes | None:
        run = await self.store.run_by_id(letter.run_id)
        source = await self.store.source_by_id(run.source_id) if run else None
        if run is None or source is None:
            return None
        report = report_of(run, source)
        if letter.event in (PAGES, DROPPED):
            changes = await self.store.changes(source.id, run=run.id, limit=MOST_READ)
            return json.dumps(pages_told(letter, target, report, changes)).encode()
        return json.dumps(run_told(letter, report)).encode()
