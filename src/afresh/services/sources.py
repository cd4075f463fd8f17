"""The use cases of sources: add, change, preview, show and remove them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import EllipsisType, MappingProxyType

from afresh.aio import in_turns
from afresh.crawl.heartbeat import LiveWorkers
from afresh.digest.update import KINDS
from afresh.errors import SourceError, UsageError
from afresh.model.charts import Receipt
from afresh.model.labels import name_for
from afresh.model.overview import Preview, SourceGlance
from afresh.model.records import Source, SourceId
from afresh.model.reports import (
    FoundVersion,
    Plan,
    SourceView,
)
from afresh.schedule.due import DueTally
from afresh.search.vectors import Model
from afresh.services.add_source import KB_OWNS, add_source
from afresh.services.change_source import change_source, check_label, check_tokens, checked_url
from afresh.services.chart_data import LAST, receipt_of
from afresh.services.context import Context, Service
from afresh.services.plan import plan_of
from afresh.services.records import (
    change_settings,
    check_idle,
    checked_settings,
    source_of,
    split,
)
from afresh.services.resolve import best_sources, exact_source, version_note
from afresh.services.runs import RunService
from afresh.services.sinks import SinkService
from afresh.services.status_views import due_of, live_report, view_of, whole_view_of
from afresh.text.redact import mask_secrets

BEGINS = 600  # characters of the start page that a preview shows
MOST_LISTED = 200  # files that a preview names one by one
PATIENCE = 20.0  # seconds for a preview to list them
LISTED = ("folder", "file", "archive", "links", "git", "github")  # kinds that list all they have
NOTHING: Mapping[str, object] = MappingProxyType({})


class SourceService(Service):
    """Sources."""

    def __init__(self, context: Context, runs: RunService, sinks: SinkService) -> None:
        super().__init__(context)
        self._runs = runs
        self._sinks = sinks

    async def all(self) -> Sequence[Source]:
        """Every source, by name and version."""
        return await self._store.sources.all()

    async def views(self) -> list[SourceView]:
        """All sources with their numbers."""
        alive = await self._alive()
        return await self._counted(await self._store.sources.all(), alive)

    async def get(self, number: int) -> Source:
        """One source."""
        return await source_of(self._store, number)

    async def view(self, label: str, *, only: bool = False) -> SourceView:
        """One source with its numbers; with `only` a name with several versions is refused."""
        return (await self.views_of([await exact_source(self._store, label, only=only)]))[0]

    async def views_of(self, sources: Sequence[Source]) -> list[SourceView]:
        """Some sources with their numbers."""
        alive, serving = await self._alive(), await self._store.vectors.serving_model()
        return [await self._shown(source, alive, serving) for source in sources]

    async def _shown(self, source: Source, alive: LiveWorkers, serving: Model | None) -> SourceView:
        view = await whole_view_of(self._store, self._tools, source, alive, serving)
        view = replace(view, sinks=await self._sinks.views([source]))
        if view.trouble is not None:
            return view
        return replace(view, next_time=await self._next_time(source), keywords=self._tools.keywords(source))

    async def overviews(self, sources: Sequence[Source]) -> list[SourceGlance]:
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

    async def receipt(self, source: Source) -> Receipt:
        """How fresh a source is, and what its last run cost and saved."""
        [glance] = await self.overviews([source])
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

    async def add(
        self,
        target: str,
        *,
        name: str | None,
        version: str | None,
        settings: Mapping[str, object],
        keep: bool = True,
        again: bool = True,
    ) -> tuple[Source, bool]:
        """Add a source that somebody names from afar, and whether it is new; nothing is read yet.

        Without `keep` it is removed again if its first run reads nothing.
        """
        kind, url = self._tools.recognise_from_afar(target)
        known = {source.id for source in await self._store.sources.all()}
        rules, policy = split(settings)
        check, now = self._tools.check_settings, self._clock()
        own = {"by_operator": False, "keep": keep, "again": again}
        source = await add_source(self._store, kind, url, name, version, rules, policy, check, now, **own)
        return source, source.id not in known

    async def change_settings(
        self, source: Source, settings: Mapping[str, object], reset: Sequence[str]
    ) -> Source:
        """Lay settings over those of a source, and let some be as everywhere again."""
        check, now = self._tools.check_settings, self._clock()
        await change_settings(self._store, source, settings, reset, check, now)
        return await source_of(self._store, source.id)

    async def change(
        self,
        source: Source,
        *,
        name: str | None = None,
        version: str | EllipsisType | None = ...,
        url: str | None = None,
        again: bool = False,
        settings: Mapping[str, object] = NOTHING,
        reset: Sequence[str] = (),
        by_operator: bool = False,
    ) -> tuple[Source, list[str]]:
        """Change name, version, root and settings of a source, all or none, and say what follows from it.

        What is not named stays. A run under way is in the way of another root.
        """
        check, now = self._tools.check_settings, self._clock()
        rules, policy = checked_settings(source, settings, reset, check)
        name, notes = name or source.name, list[str]()
        version = source.version if isinstance(version, EllipsisType) else version
        renames = (name, version) != (source.name, source.version)
        if renames:
            check_label(source, name, version)
            tokens = list(await self._store.access.tokens())
            notes = check_tokens(tokens, source, name, version, now, by_operator=by_operator)
        root = source.url
        if url is not None:
            if source.name in KINDS:
                raise UsageError(f"url: {source.label} {KB_OWNS}")
            recognise = self._tools.recognise if by_operator else self._tools.recognise_from_afar
            root = await checked_url(self._store, source, url, recognise, again=again)
        if root != source.url:
            await check_idle(self._store, source, await self._alive())
        if renames or root != source.url:
            source = await change_source(
                self._store, source, name, version, root, now, by_operator=by_operator
            )
        if settings or reset:
            await self._store.sources.replace_rules(source.id, rules, policy, now)
        return await source_of(self._store, source.id), notes

    async def remove(self, label: str) -> int:
        """Delete a source and its pages; the answer is how many had content. Several versions: name one."""
        source = await exact_source(self._store, label, only=True)
        pages = await self._store.pages.live_count(source.id)
        await self._store.sources.remove(source.id, self._clock())
        return pages

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
        links = [url for url in seen.links if url != seen.url]
        judged = [(url, preview.rules.refusal(url, 1)) async for url in in_turns(links, str)]
        return replace(
            preview,
            title=seen.title,
            language=seen.language,
            begins=seen.markdown[:BEGINS],
            belong=tuple(url for url, why in judged if why is None),
            left_out=tuple((url, why) for url, why in judged if why is not None),
        )

    async def plan(self, label: str) -> Plan:
        """What a refresh would look at and cost; writes and fetches nothing."""
        source = await self._source(label)
        bounds = self._tools.bounds(source)
        plan = await plan_of(self._store, source, *bounds, self._clock(), self._models.wanted())
        return replace(plan, next_time=await self._next_time(source))

    async def find_version(self, label: str) -> FoundVersion:
        """The version of a source that a label means, which may be a range, and the versions there are."""
        return (await best_sources(self._store, label))[1]

    async def version_note(self, label: str) -> str | None:
        """Say which version a name without one means, where there are several."""
        return await version_note(self._store, label)
