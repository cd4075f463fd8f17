"""The use cases of those who look on: sources at a glance, and what runs now."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.embedding import Model
from afresh.core.errors import SourceError, UsageError
from afresh.core.events import ignore
from afresh.core.labels import name_for
from afresh.core.masking import mask_secrets
from afresh.core.model import PageId, Policy, RunId, RunState, Source, SourceId
from afresh.core.overview import Held, HeldPage, PassageView, Preview, SourceGlance
from afresh.core.pictures import Receipt
from afresh.core.schedule import DueTally
from afresh.core.sweep import may_drop
from afresh.core.views import OpenedPage, RunReport, SourceView
from afresh.engine.lifetime import LiveWorkers
from afresh.engine.pictures import LAST, receipt_of
from afresh.engine.plan import plan_of
from afresh.engine.records import split
from afresh.engine.restoring import restore_page
from afresh.engine.runs import run_and_source
from afresh.engine.settled import if_settled
from afresh.engine.status import due_of, live_report, view_of, whole_view_of
from afresh.engine.tools import Models
from afresh.engine.which import exact_source, version_note
from afresh.kb_work import Work

BEGINS = 600  # characters of the start page that a preview shows
MOST_LISTED = 200  # files that a preview names one by one
PATIENCE = 20.0  # seconds for a preview to list them
LISTED = ("folder", "file", "archive", "links", "git", "github")  # kinds that list all they have
MOST_HELD = 200  # pages that are named one by one
SHOWN = (RunState.QUEUED, RunState.RUNNING, RunState.NEEDS_CONFIRMATION)


class Glances(Work):
    """Sources and runs, told briefly."""

    _models: Models

    async def sources(self) -> list[SourceView]:
        """All sources with their numbers."""
        alive = await self._alive()
        return await self._counted(await self._store.sources.all(), alive)

    async def version_note(self, label: str) -> str | None:
        """Say which version a name without one means, where there are several."""
        return await version_note(self._store, label)

    async def restore(self, url: str, *, within: str | None = None) -> OpenedPage:
        """Put the former text of a page back that lost nearly all of it."""
        source = (await exact_source(self._store, within)).id if within else None
        async with self._models.for_remake(ignore, self._stopping) as remake:
            return await restore_page(remake, self._tools.address(url), source)

    async def show(self, label: str) -> SourceView:
        """One source with its numbers."""
        return (await self.shown([await exact_source(self._store, label)]))[0]

    async def shown(self, sources: Sequence[Source]) -> list[SourceView]:
        """Some sources with their numbers."""
        alive, serving = await self._alive(), await self._store.vectors.serving_model()
        return [await self._shown(source, alive, serving) for source in sources]

    async def _shown(self, source: Source, alive: LiveWorkers, serving: Model | None) -> SourceView:
        view = await whole_view_of(self._store, self._tools, source, alive, serving)
        view = replace(view, sinks=await self.sink_views([source]))
        if view.trouble is not None:
            return view
        return replace(view, next_time=await self._next_time(source), keywords=self._tools.keywords(source))

    async def glances(self, sources: Sequence[Source]) -> list[SourceGlance]:
        """Each of some sources at a glance."""
        alive, now = await self._alive(), self._clock()
        serving = await self._store.vectors.serving_model()
        model = serving.name if serving else None
        due, views = await asyncio.gather(  # both count many rows: a store may do so at once
            due_of(self._store, self._tools, sources, now), self._counted(sources, alive)
        )
        return [
            await self._glance(source, alive, now, replace(view, model=model), due[source.id])
            for source, view in zip(sources, views, strict=True)
        ]

    async def _counted(self, sources: Sequence[Source], alive: LiveWorkers) -> list[SourceView]:
        return [await view_of(self._store, self._tools, source, alive) for source in sources]

    async def sums(self) -> Mapping[str, int]:
        """How many pages and passages there are in all sources."""
        totals = await self._store.stats.totals()
        return {"pages": int(totals["pages"] or 0), "chunks": int(totals["chunks"] or 0)}

    async def live_runs(self, sees: Callable[[str], bool]) -> list[tuple[Source, RunReport]]:
        """What runs, waits for a worker or for a word, of the sources that somebody sees; newest first."""
        alive, now = await self._alive(), self._clock()
        found = []
        for run in await self._store.runs.live():
            source = await self._store.sources.get(run.source_id)
            if source is not None and sees(source.label):
                report = live_report(run, source, alive, now)
                found += [(source, report)] if report.state in SHOWN else []
        return found

    async def receipt(self, source: Source) -> Receipt:
        """How fresh a source is, and what its last run cost and saved."""
        [glance] = await self.glances([source])
        return glance.receipt

    async def _glance(
        self, source: Source, alive: LiveWorkers, now: datetime, view: SourceView, tally: DueTally
    ) -> SourceGlance:
        last = await self._store.runs.last(source.id, LAST)
        if view.trouble is None:
            view = replace(view, next_time=await self._next_time(source))
        return SourceGlance(
            label=source.label,
            view=view,
            due=tally.due,
            next_at=tally.next_at,
            run=live_report(last[0], source, alive, now) if last else None,
            receipt=receipt_of(source, view, tally.stale, last),
        )

    async def preview(
        self, target: str, settings: Mapping[str, object] | None = None, *, here: bool = False
    ) -> Preview:
        """What would be read of a target that somebody names from afar, or here; nothing is kept."""
        settings = settings or {}
        recognise = self._tools.recognise if here else self._tools.recognise_from_afar
        kind, url = recognise(target)
        now, own = self._clock(), split(settings)
        self._tools.check_settings(*own)
        known = await self._store.sources.find_by_url(url, None)
        source = known or Source(
            id=SourceId(0),
            name=name_for(url, kind),
            version=None,
            kind=kind,
            url=url,
            operator_url=url if here else "",
            created_at=now,
            updated_at=now,
        )
        source = replace(source, rules={**source.rules, **own[0]}, policy={**source.policy, **own[1]})
        rules, policy = self._tools.bounds(source)
        wanted = self._models.wanted()
        made = Preview(
            kind=kind,
            url=url,
            name=source.name,
            known=known.label if known else None,
            plan=await plan_of(self._store, source, rules, policy, now, wanted) if known else None,
            rules=rules,
        )
        if kind == "web":
            return await self._with_start(made)
        return await self._with_contents(made, source) if kind in LISTED else made

    async def _with_contents(self, preview: Preview, source: Source) -> Preview:
        """A preview with what the source lists by itself."""
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._tools.contents(source)
        except TimeoutError:
            return replace(preview, trouble=f"it is not listed within {PATIENCE:g} s; a run has more time")
        except (SourceError, UsageError) as error:
            return replace(preview, trouble=mask_secrets(str(error)))
        listed, beyond = found.urls[: preview.rules.max_pages], len(found.urls) - preview.rules.max_pages
        return replace(
            preview,
            listed=len(listed),
            belong=listed[:MOST_LISTED],
            dropped={**found.dropped, **({"beyond the most pages": beyond} if beyond > 0 else {})},
            trouble=mask_secrets(found.errors[0]) if found.errors else None,
            notes=tuple(map(mask_secrets, found.notes)),
        )

    async def _with_start(self, preview: Preview) -> Preview:
        """A preview with what its start page shows."""
        try:
            seen = await self._tools.glance(preview.url)
        except (SourceError, UsageError) as error:
            return replace(preview, trouble=mask_secrets(str(error)))
        judged = [(url, preview.rules.refusal(url, 1)) for url in seen.links if url != seen.url]
        return replace(
            preview,
            title=seen.title,
            language=seen.language,
            begins=seen.markdown[:BEGINS],
            belong=tuple(url for url, why in judged if why is None),
            left_out=tuple((url, why) for url, why in judged if why is not None),
        )

    async def held(self, number: int) -> Held:
        """What a run that the brake holds would delete."""
        run, source = await run_and_source(self._store, number)
        settled = if_settled(self._tools.bounds, source)
        brake = settled[1] if settled else Policy()
        if run.state is not RunState.NEEDS_CONFIRMATION:
            return Held(pages=(), count=0, percent=brake.brake_percent, allowed=brake.brake_pages)
        doomed = await self._store.pages.doomed(source.id)
        pages = [page for page, target in doomed if may_drop(page, target, RunId(number))]
        shown = tuple(
            HeldPage(id=page.id, url=page.url, title=page.title, moved_to=page.moved_to)
            for page in pages[:MOST_HELD]
        )
        return Held(pages=shown, count=len(pages), percent=brake.brake_percent, allowed=brake.brake_pages)

    async def passages(self, page: int) -> list[PassageView]:
        """The pieces of a page that are searched, in the order of its text."""
        found = (await self._store.search.page_chunks([PageId(page)])).get(PageId(page), ())
        return [PassageView(content=each.content, path=each.path, types=each.types) for each in found]
