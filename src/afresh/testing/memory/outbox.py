"""Messages that are to be sent, in memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.model import Run
from afresh.core.outbox import Letter, LetterState
from afresh.testing.memory.tables import Tables


class MemoryOutbox:
    """Messages, what became of them, and who sends which."""

    tables: Tables

    async def letters(self, *, state: LetterState | None = None, limit: int = 100) -> list[Letter]:
        """Messages, newest first."""
        found = [each for each in self._kept() if state in (None, each.state)]
        return found[::-1][:limit]

    async def letters_due(self, now: datetime, limit: int = 100) -> list[Letter]:
        """Messages whose time has come, oldest first, so many of each target."""
        waiting = (each for each in self._kept() if each.state is LetterState.WAITING)
        places: Counter[str] = Counter()
        found = []
        for each in waiting:
            if each.next_try_at and each.next_try_at <= now and places[each.target] < limit:
                places[each.target] += 1
                found.append(each)
        return found

    async def take_letter(self, letter: Letter, until: datetime) -> bool:
        """Be the one who sends it; False if another is, or it has gone."""
        found = self.tables.letters.get(letter.id)
        if found is None or (found.state, found.attempts) != (LetterState.WAITING, letter.attempts):
            return False
        self.tables.letters[letter.id] = replace(found, attempts=found.attempts + 1, next_try_at=until)
        return True

    async def settle_letter(
        self, letter: Letter, state: LetterState, now: datetime, *, again: datetime | None, error: str | None
    ) -> None:
        """Note how a try went, unless another has begun since."""
        found = self.tables.letters.get(letter.id)
        if found and (found.state, found.attempts) == (LetterState.WAITING, letter.attempts + 1):
            ended = None if state is LetterState.WAITING else now
            done = replace(found, state=state, next_try_at=again, error=error, ended_at=ended)
            self.tables.letters[letter.id] = done

    async def count_letters(self) -> dict[str, int]:
        """How many there are, by state."""
        return dict(Counter(str(each.state) for each in self._kept()))

    def post(self, run: Run, letters: Sequence[tuple[str, str]], now: datetime) -> None:
        """Write messages with what makes them true."""
        for target, event in letters:
            number = next(self.tables.numbers)
            self.tables.letters[number] = Letter(
                id=number,
                target=target,
                event=event,
                run_id=run.id,
                state=LetterState.WAITING,
                attempts=0,
                created_at=now,
                next_try_at=now,
            )

    def _kept(self) -> list[Letter]:
        return [each for _, each in sorted(self.tables.letters.items()) if each.run_id in self.tables.runs]
