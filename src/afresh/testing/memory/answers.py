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

    async def keep_answer(self, caller: str, name: str, answer: KeptAnswer) -> None:
        """Remember the answer."""
        if (caller, name) in self.tables.kept:
            before, since = self.tables.kept[caller, name]
            self.tables.kept[caller, name] = replace(answer, asked=before.asked), since

    async def forget_answer(self, caller: str, name: str) -> None:
        """Let the request be made again: it came to nothing."""
        self.tables.kept.pop((caller, name), None)
