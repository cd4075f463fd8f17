"""The use cases of search: ask, and make the index anew."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from afresh.crawl.tools import RunOptions
from afresh.errors import RunBusy, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import Listed, RunMode, Source
from afresh.model.reports import (
    Answer,
    Reindexed,
)
from afresh.search.bodyless import needs_text, without_text
from afresh.search.reindex import reindex
from afresh.search.request import Asked, Mode, Narrowed
from afresh.services.context import Context, Service
from afresh.services.resolve import best_sources, stand_in_note, version_note
from afresh.services.runs import RunService
from afresh.services.valid_settings import if_settled


class SearchService(Service):
    """Search."""

    def __init__(self, context: Context, runs: RunService) -> None:
        super().__init__(context)
        self._runs = runs

    async def search(
        self,
        query: str,
        *,
        within: Sequence[str] = (),
        language: str | None = None,
        path: str | None = None,
        changed_within: timedelta | None = None,
        checked_within: timedelta | None = None,
        mode: str = Mode.HYBRID,
        max_age: timedelta | None = None,
        limit: int = 10,
        every_chunk: bool = False,
        context: bool = False,
        listener: Listener = ignore,
    ) -> Answer:
        """The passages that answer a query best; `max_age` looks at their pages again if they are older."""
        from afresh.search.search import answer, older_pages

        if limit < 1:
            raise UsageError(f"at least one answer has to be allowed, not {limit}")
        now = self._clock()
        meant = [await best_sources(self._store, label) for label in within]
        chosen = [source for sources, _ in meant for source in sources]
        told = [note for _, version in meant if (note := stand_in_note(version))]
        told += [note for label in within if (note := await version_note(self._store, label))]
        told += await self._unkept(chosen, query, context)
        narrowed = Narrowed(
            sources=tuple(source.id for source in chosen) if chosen else None,
            language=language,
            path=path,
            changed_after=now - changed_within if changed_within else None,
            checked_after=now - checked_within if checked_within else None,
        )
        asked = Asked(query=query, within=narrowed, mode=Mode(mode), limit=limit, every_chunk=every_chunk)
        async with self._models.for_questions(asked.mode) as (embedder, notes):
            found = await answer(self._store, asked, embedder, notes, context=context)
            old = older_pages(found.hits, now - max_age) if max_age is not None else {}
            if old:
                told += await self._check(old, listener)
                found = await answer(self._store, asked, embedder, notes, context=context)
            return replace(found, notes=(*found.notes, *told))

    async def _unkept(self, chosen: Sequence[Source], query: str, context: bool) -> list[str]:
        """What a search asks for that sources without text cannot give."""
        if not needs_text(query, context=context):
            return []
        sources = chosen or await self._store.sources.all()
        keeps = self._tools.keeps_text
        return without_text([each.label for each in sources if if_settled(keeps, each) is False], query)

    async def _check(self, old: Mapping[str, Sequence[Listed]], listener: Listener) -> list[str]:
        """Look again at some pages, by the label of their source; what could not be done."""
        from afresh.search.search import told_of_check

        notes = []
        for label, pages in old.items():
            if self._stopping.is_set():
                notes.append(f"{label} was not looked at again: stopped")
                continue
            source = await self._source(label)
            try:
                report = await self._runs.run_now(
                    source, RunOptions(mode=RunMode.CHECK, pages=pages), listener
                )
            except RunBusy as busy:
                notes.append(f"{label} was not looked at again: {busy}")
                continue
            notes += told_of_check(label, report)
        return notes

    async def reindex(self, labels: Sequence[str] = (), *, listener: Listener = ignore) -> list[Reindexed]:
        """Make chunks and vectors anew from stored text where the recipe or the model changed."""
        chosen: list[Source | None] = [await self._source(label) for label in dict.fromkeys(labels)] or [None]
        reports = []
        for source in chosen:
            if self._stopping.is_set():
                break
            async with self._models.for_remake(listener, self._stopping) as remake:
                reports.append(await reindex(remake, source))
        return reports
