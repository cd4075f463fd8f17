"""Search the index, and rebuild it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from afresh.crawl.factory import settings_or_none
from afresh.crawl.tools import RunOptions
from afresh.dataclass import replace
from afresh.errors import RunBusy, UsageError
from afresh.events import Listener, MaintenanceProgress, ignore
from afresh.model.records import ListedUrl, RunMode, Source
from afresh.model.reports import ReindexReport, SearchAnswer
from afresh.search.query import parse, without_text
from afresh.search.records import SearchFilter, SearchMode, SearchRequest
from afresh.search.reindex import reindex
from afresh.services.context import Service
from afresh.services.resolve import best_sources, stand_in_note, version_note

if TYPE_CHECKING:
    from afresh.search.evaluation import Evaluation, Question


class SearchService(Service):
    async def search(
        self,
        query: str,
        *,
        within: Sequence[str] = (),
        language: str | None = None,
        path: str | None = None,
        changed_within: timedelta | None = None,
        checked_within: timedelta | None = None,
        mode: str = SearchMode.HYBRID,
        max_age: timedelta | None = None,
        limit: int = 10,
        every_chunk: bool = False,
        context: bool = False,
        listener: Listener = ignore,
    ) -> SearchAnswer:
        """Return the passages that match a query best; with `max_age`, check older result pages first.

        `every_chunk` allows several passages of a page; `context` adds the text around each passage.
        """
        from afresh.search.search import answer, older_pages

        if limit < 1:
            raise UsageError(f"limit has to be at least 1, not {limit}")
        now = self._clock()
        resolved = [await best_sources(self._store, label) for label in within]
        chosen = [source for sources, _ in resolved for source in sources]
        own_notes = [note for _, version in resolved if (note := stand_in_note(version))]
        own_notes += [note for label in within if (note := await version_note(self._store, label))]
        if context or parse(query).phrases:  # sources without stored text cannot provide this
            among = chosen or await self._store.sources.all()
            settings = [(each.label, settings_or_none(self._tools.settings_of, each)) for each in among]
            bare = [label for label, own in settings if own and own.storage.body != "markdown"]
            own_notes += without_text(bare, query)
        narrowed = SearchFilter(
            sources=tuple(source.id for source in chosen) if chosen else None,
            language=language,
            path=path,
            changed_after=now - changed_within if changed_within else None,
            checked_after=now - checked_within if checked_within else None,
        )
        asked = SearchRequest(query=query, within=narrowed, mode=SearchMode(mode), limit=limit, every_chunk=every_chunk)
        async with self._models.for_queries(asked.mode) as (embedder, notes):
            found = await answer(self._store, asked, embedder, notes, context=context)
            old = older_pages(found.hits, now - max_age) if max_age is not None else {}
            if old:
                own_notes += await self._check(old, listener)
                found = await answer(self._store, asked, embedder, notes, context=context)
            return replace(found, notes=(*found.notes, *own_notes))

    async def _check(self, old: Mapping[str, Sequence[ListedUrl]], listener: Listener) -> list[str]:
        """Check the pages in `old`, which holds them by the label of their source; return notes about problems."""
        from afresh.search.search import notes_on_check

        notes = []
        for label, pages in old.items():
            if self._stopping.is_set():
                notes.append(f"{label} was not checked again: stopped")
                continue
            source = await self._source(label)
            try:
                report = await self._runner.run(source, RunOptions(mode=RunMode.CHECK, pages=pages), listener)
            except RunBusy as busy:
                notes.append(f"{label} was not checked again: {busy}")
                continue
            notes += notes_on_check(label, report)
        return notes

    async def evaluate(
        self,
        questions: Sequence["Question"],
        *,
        within: Sequence[str] = (),
        mode: str = SearchMode.HYBRID,
        listener: Listener = ignore,
    ) -> "Evaluation":
        from afresh.search.evaluation import DEPTH, summarize

        asked = []
        for question in questions:
            if self._stopping.is_set():
                break
            found = await self.search(question.query, within=within, mode=mode, limit=DEPTH)
            asked.append((question, found.hits if question.pages or not found.weak else ()))
            listener(MaintenanceProgress(what="questions", done=len(asked), of=len(questions), task="eval"))
        return summarize(asked, self._clock())

    async def reindex(self, labels: Sequence[str] = (), *, listener: Listener = ignore) -> list[ReindexReport]:
        """Rebuild chunks and vectors that an older chunker or another embedding model made."""
        chosen: list[Source | None] = [await self._source(label) for label in dict.fromkeys(labels)] or [None]
        reports = []
        for source in chosen:
            if self._stopping.is_set():
                break
            async with self._models.for_reindex(listener, self._stopping) as tools:
                reports.append(await reindex(tools, source))
        return reports
