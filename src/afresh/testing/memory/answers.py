"""Answers that are given again, in memory."""

from dataclasses import replace
from datetime import datetime

from afresh.core.answers import GIVEN_UP, KEPT, KeptAnswer
from afresh.testing.memory.tables import Tables


class MemoryAnswers:
    """Who asks the same again is given the same answer."""

    tables: Tables

    async def begin_answer(self, caller: str, name: str, asked: str, now: datetime) -> KeptAnswer | None:
        """What is known of a request; None: it is the caller's to answer."""
        kept = self.tables.kept = {k: each for k, each in self.tables.kept.items() if each[1] >= now - KEPT}
        if (caller, name) in kept:
            found, since = kept[caller, name]
            if (found.asked, found.status) != (asked, None) or since >= now - GIVEN_UP:
                return found
        kept[caller, name] = KeptAnswer(asked), now
        return None

    async def renew_answer(self, caller: str, name: str, began: datetime, now: datetime) -> bool:
        """Say that what began then goes on; False if others began anew."""
        found, since = self.tables.kept.get((caller, name), (None, None))
        if found is None or found.status is not None or since not in (began, now):
            return False
        self.tables.kept[caller, name] = found, now
        return True

    async def keep_answer(self, caller: str, name: str, began: datetime, answer: KeptAnswer) -> None:
        """Remember the answer to what began then."""
        before, since = self.tables.kept.get((caller, name), (None, None))
        if before is not None and since == began:
            self.tables.kept[caller, name] = replace(answer, asked=before.asked), began

    async def forget_answer(self, caller: str, name: str, began: datetime) -> None:
        """Let the request be made again: what began then came to nothing."""
        if self.tables.kept.get((caller, name), (None, None))[1] == began:
            del self.tables.kept[caller, name]
