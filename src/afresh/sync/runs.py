"""The runs of one sync: one for each source, made when there is something to tell of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from afresh.model.records import Run, RunState, SourceId
from afresh.ports import Clock
from afresh.store.store import Store
from afresh.sync.copy import Copy
from afresh.sync.reports import DOCUMENTS, DocumentNote, DocumentOutcome


@dataclass(slots=True, kw_only=True)
class SyncRuns:
    """Writes down what a sync does, document by document."""

    store: Store
    worker: str
    clock: Clock
    sources: frozenset[SourceId]  # that there are: documents of others belong to no run
    _runs: dict[SourceId, Run] = field(default_factory=dict)
    _errors: dict[SourceId, str] = field(default_factory=dict)

    async def open(self, sources: Iterable[SourceId]) -> None:
        """Make the runs of some sources."""
        for source in sources:
            if source not in self._runs and source in self.sources:
                self._runs[source] = await self.store.copies.start_run(source, self.worker, self.clock())

    async def note(self, documents: Sequence[tuple[Copy, DocumentOutcome]]) -> None:
        """Write down what was done about some copies."""
        ours = [(copy, outcome) for copy, outcome in documents if copy.source_id in self.sources]
        await self.open(dict.fromkeys(copy.source_id for copy, _ in ours))
        notes = [
            DocumentNote(run=self._runs[copy.source_id].id, copy=copy, outcome=outcome)
            for copy, outcome in ours
        ]
        await self.store.copies.record_documents(notes, self.clock())

    def fail(self, sources: Iterable[SourceId], error: str) -> None:
        """Remember why documents of some sources were left; the first reason is the one reported."""
        for source in sources:
            self._errors.setdefault(source, error)

    def numbers(self, sources: Iterable[SourceId]) -> tuple[int, ...]:
        """The numbers of the runs that some sources have."""
        return tuple(sorted(int(self._runs[each].id) for each in sources if each in self._runs))

    async def finish(self, *, stopped: bool) -> None:
        """End all runs."""
        for source, run in self._runs.items():
            counts = await self.store.copies.count_documents(run.id)
            error = self._errors.get(source)
            wrong = counts.get(DocumentOutcome.FAILED) or counts.get(DocumentOutcome.STUCK)
            left = RunState.PARTIAL if stopped or wrong else RunState.COMPLETED
            state = RunState.FAILED if error else left
            kept = {f"{DOCUMENTS}{name}": number for name, number in counts.items()}
            await self.store.copies.finish_run(run, state, kept, error, self.clock())
