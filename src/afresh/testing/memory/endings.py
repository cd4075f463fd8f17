"""The end of a run in memory: missing counts, drops and the closed run come together or not at all."""

from dataclasses import replace
from datetime import datetime

from afresh.core.ending import Ending
from afresh.core.errors import RunBusy
from afresh.core.model import Run, RunId, RunMode, RunState
from afresh.core.states import UNFINISHED
from afresh.testing.memory.listings import MemoryListings
from afresh.testing.memory.outbox import MemoryOutbox
from afresh.testing.memory.sweep import MemorySweeps


class MemoryEndings(MemorySweeps, MemoryListings, MemoryOutbox):
    """Closing runs, for those who still own them."""

    async def finish_run(self, run: Run, ending: Ending, now: datetime) -> Run:
        """End a run as decided; RunBusy if it is no longer the caller's or no longer in that state."""
        current = self.tables.runs.get(run.id)
        if current is None or (current.worker, current.state) != (run.worker, run.state):
            raise RunBusy(f"run {run.id} was taken over or ended by another process in the meantime")
        with self.tables.transaction():
            self.tables.runs[run.id] = replace(
                current,
                state=ending.state,
                finished_at=now,
                counts=dict(ending.counts),
                notes=tuple(ending.notes),
                error=ending.error,
            )
            if ending.missing is not None:
                self.record_missing(run.source_id, ending.missing, now)
            for page in ending.dropped:
                if self.tables.pages[page.id].page.doomed_by is not None:
                    self.drop(run.source_id, run.id, page, now, ending.heirs.get(page.id))
            if ending.state not in UNFINISHED:
                self._free_rows(run.id, now)
            if ending.root is not None:
                row = self.tables.sources[run.source_id]
                moved = replace(row.source, url=ending.root, mark=None, updated_at=now)
                self.tables.sources[run.source_id] = replace(row, source=moved)
            if ending.mark is not None:
                self.set_mark(run.source_id, ending.mark)
            self._settle_marks(self.tables.runs[run.id], forgives=ending.forgives)
            self.post(run, ending.letters, now)
        return self.tables.runs[run.id]

    def _free_rows(self, run: RunId, now: datetime) -> None:
        """What a closed run did not get to is a next look like any other."""
        for row in self.tables.waiting():
            if row.run_id == run and row.locked_at is None:
                self.tables.change_attempt(row.id, now, run_id=None)

    def _settle_marks(self, run: Run, *, forgives: bool) -> None:
        if run.state in UNFINISHED:
            return
        failed = run.state is RunState.FAILED or forgives
        if run.mode is RunMode.CHECK and not failed:
            return
        for row in self.tables.pages_of(run.source_id):
            own = row.page.doomed_by == run.id
            if row.page.doomed_by is not None and own == failed:
                self.tables.change_page(row.page.id, doomed_by=None)
        if not failed:
            self._supersede_waiting(run)

    def _supersede_waiting(self, later: Run) -> None:
        for run in list(self.tables.runs.values()):
            same = run.source_id == later.source_id and run.id != later.id
            if same and run.state is RunState.NEEDS_CONFIRMATION:
                over = replace(run, state=RunState.PARTIAL, error="a later run looked again")
                self.tables.runs[run.id] = over
