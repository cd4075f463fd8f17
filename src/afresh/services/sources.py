"""Add, change, preview, plan, show and remove sources."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import EllipsisType, MappingProxyType

from afresh.aio import yield_in_turns
from afresh.config.layers import split_settings
from afresh.crawl.decide import request_for
from afresh.crawl.heartbeat import LiveWorkers
from afresh.crawl.report import seconds_of
from afresh.dataclass import replace
from afresh.errors import SourceError, UsageError
from afresh.model.charts import RunSavings
from afresh.model.overview import Preview, SourceOverview
from afresh.model.records import UNFINISHED, PageStatus, Policy, Run, RunMode, Source, SourceId
from afresh.model.reports import FoundVersion, RefreshPlan, SourceView
from afresh.services import resolve
from afresh.services.charts import ENDED, LAST, receipt_of
from afresh.services.context import Service, ServiceContext
from afresh.services.edit_source import KB_OWNS, add_source, check_label, check_tokens, checked_settings, checked_url
from afresh.services.runs import RunService
from afresh.services.sinks import SinkService
from afresh.services.status_views import due_of, live_report, view_of
from afresh.sources.registry import name_of_root
from afresh.text.redact import mask_secrets
from afresh.urls.scope import Rules

MAX_BEGINNING_CHARS = 600  # characters of the start page that a preview shows
MAX_LISTED = 200  # files that a preview lists individually
LISTING_SECONDS = 20.0  # seconds that a preview may take to list them
NOTHING: Mapping[str, object] = MappingProxyType({})


class SourceService(Service):
    def __init__(self, context: ServiceContext, runs: RunService, sinks: SinkService) -> None:
        super().__init__(context)
        self._runs = runs
        self._sinks = sinks

    async def all(self) -> Sequence[Source]:
        return await self._store.sources.all()

    async def views(self) -> list[SourceView]:
        return await self._counted(await self._store.sources.all(), await self._alive())

    async def _counted(self, sources: Sequence[Source], alive: LiveWorkers) -> list[SourceView]:
        return [await view_of(self._store, self._tools, source, alive) for source in sources]

    async def get(self, number: int) -> Source:
        return await resolve.source_of(self._store, number)

    async def find(self, label: str) -> Source:
        """Return the source with this name and version; without a version, the newest."""
        return await self._source(label)

    async def labelled(self, labels: Sequence[str]) -> list[Source]:
        """Return the sources and libraries that the labels name; without labels, all except those of `init-kb`."""
        named = await resolve.labelled_sources(self._store, labels)
        return named or [each for each in await self._store.sources.all() if not each.is_of_digest]

    async def ids(self, label: str) -> list[SourceId]:
        """Return the ids of the sources that a label names; it may name a source or a library."""
        return [source.id for source in await self.labelled([label])]

    async def view(self, label: str, *, only: bool = False) -> SourceView:
        """Return a source with its counts; with `only`, raise UsageError for a name with several versions."""
        return (await self.views_of([await resolve.exact_source(self._store, label, only=only)]))[0]

    async def views_of(self, sources: Sequence[Source]) -> list[SourceView]:
        alive, serving = await self._alive(), await self._store.vectors.serving_model()
        views, planned = list[SourceView](), await self._planned_runs()
        for source, counts in zip(sources, await self._counted(sources, alive), strict=True):
            missing = await self._store.stats.missing_vectors(serving.name, source.id) if serving else None
            view = replace(
                counts,
                model=serving.name if serving else None,
                unembedded=missing.number if missing else counts.chunks,
                sinks=await self._sinks.views([source]),
            )
            if view.trouble is None:
                keywords = self._tools.settings_of(source).links.keywords
                view = replace(view, next_time=await self._next_run(source, planned), keywords=keywords)
            views.append(view)
        return views

    async def overviews(self, sources: Sequence[Source]) -> list[SourceOverview]:
        store, alive, now = self._store, await self._alive(), self._clock()
        serving, planned = await store.vectors.serving_model(), await self._planned_runs()
        due, views = await asyncio.gather(  # both count many rows: a store may run them concurrently
            due_of(store, self._tools, sources, now), self._counted(sources, alive)
        )
        overviews = []
        for source, counts in zip(sources, views, strict=True):
            view = replace(counts, model=serving.name if serving else None)
            tally, last = due[source.id], await store.runs.last(source.id, LAST)
            if view.trouble is None:
                view = replace(view, next_time=await self._next_run(source, planned))
            overviews.append(
                SourceOverview(
                    label=source.label,
                    view=view,
                    due=tally.due,
                    next_at=tally.next_at,
                    run=live_report(last[0], source, alive, now) if last else None,
                    receipt=receipt_of(source, view, tally.stale, last),
                )
            )
        return overviews

    async def receipt(self, source: Source) -> RunSavings:
        [overview] = await self.overviews([source])
        return overview.receipt

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
        """Add a source for a remote caller, without reading it; return the source and whether it is new.

        Without `keep`, the source is removed again if its first run reads nothing. Without `again`, raise AlreadyExists
        for a URL that is a source already.
        """
        found, (rules, policy) = self._tools.recognise(target, remote=True), split_settings(settings)
        known = {source.id for source in await self._store.sources.all()}
        how = {"by_operator": False, "keep": keep, "again": again}
        source = await add_source(self._store, self._tools, found, name, version, rules, policy, **how)
        return source, source.id not in known

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
        """Change name, version, URL and settings of a source, after all new values were checked.

        Return the source and notes on tokens that gain or lose access. Omitted values stay. The URL cannot be changed
        while a run of the source is queued or active. `again` allows the URL of another source; `by_operator` allows
        local files, and a new name with which tokens gain access.
        """
        now, own = self._clock(), checked_settings(self._tools, source, settings, reset)
        name, notes = name or source.name, list[str]()
        version = source.version if isinstance(version, EllipsisType) else version
        renames = (name, version) != (source.name, source.version)
        if renames:
            check_label(source, name, version)
            tokens = list(await self._store.access.tokens())
            notes = check_tokens(tokens, source, name, version, now, by_operator=by_operator)
        root = source.url
        if url is not None:
            if source.is_of_digest:
                raise UsageError(f"url: {source.label} {KB_OWNS}")
            recognise = partial(self._tools.recognise, remote=not by_operator)
            root = await checked_url(self._store, source, url, recognise, again=again)
        if root != source.url:
            await resolve.check_idle(self._store, source, await self._alive())
        if renames or root != source.url:
            # the operator's credentials apply only to a root that the operator set
            operator_url = root if by_operator and root != source.url else source.operator_url
            await self._store.sources.change(
                source.id, name=name, version=version, url=root, operator_url=operator_url, now=now
            )
        if settings or reset:
            await self._store.sources.replace_rules(source.id, *own, now)
        return await resolve.source_of(self._store, source.id), notes

    async def remove(self, label: str) -> int:
        """Delete a source; return how many pages had content. A name of several sources needs a version."""
        source = await resolve.exact_source(self._store, label, only=True)
        pages = await self._store.pages.live_count(source.id)
        await self._store.sources.remove(source.id, self._clock())
        return pages

    async def preview(
        self, target: str, settings: Mapping[str, object] | None = None, *, here: bool = False
    ) -> Preview:
        """Return what a source for a target would contain, without storing it; `here` allows any local file."""
        settings = settings or {}
        kind, url = self._tools.recognise(target, remote=not here)
        now, own = self._clock(), split_settings(settings)
        self._tools.config.with_overrides(*own)
        known = await self._store.sources.find_by_url(url, None)
        source = known or Source(
            id=SourceId(0),
            name=name_of_root(url, kind),
            version=None,
            kind=kind,
            url=url,
            operator_url=url if here else "",
            created_at=now,
            updated_at=now,
        )
        source = replace(source, rules={**source.rules, **own[0]}, policy={**source.policy, **own[1]})
        rules, policy = self._tools.bounds(source)
        made = Preview(
            kind=kind,
            url=url,
            name=source.name,
            known=known.label if known else None,
            plan=await self._plan(source, rules, policy) if known else None,
            rules=rules,
        )
        if kind == "web":
            return await self._with_start(made)
        return await self._with_contents(made, source)

    async def _with_contents(self, preview: Preview, source: Source) -> Preview:
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                found = await self._tools.contents(source)
        except TimeoutError:
            return replace(
                preview, trouble=f"the source was not listed within {LISTING_SECONDS:g} s; a run has no such limit"
            )
        except (SourceError, UsageError) as error:
            return replace(preview, trouble=mask_secrets(str(error)))
        listed, beyond = found.urls[: preview.rules.max_pages], len(found.urls) - preview.rules.max_pages
        return replace(
            preview,
            listed=len(listed),
            belong=listed[:MAX_LISTED],
            dropped={**found.dropped, **({"beyond the page limit": beyond} if beyond > 0 else {})},
            trouble=mask_secrets(found.errors[0]) if found.errors else None,
            notes=tuple(map(mask_secrets, found.notes)),
        )

    async def _with_start(self, preview: Preview) -> Preview:
        try:
            seen = await self._tools.fetch_once(preview.url)
        except (SourceError, UsageError) as error:
            return replace(preview, trouble=mask_secrets(str(error)))
        links = [url for url in seen.links if url != seen.url]
        judged = [(url, preview.rules.refusal(url, 1)) async for url in yield_in_turns(links, str)]
        return replace(
            preview,
            title=seen.title,
            language=seen.language,
            begins=seen.markdown[:MAX_BEGINNING_CHARS],
            belong=tuple(url for url, why in judged if why is None),
            left_out=tuple((url, why) for url, why in judged if why is not None),
        )

    async def plan(self, label: str) -> RefreshPlan:
        """Return what a refresh would check and cost, without executing it."""
        source = await self._source(label)
        plan = await self._plan(source, *self._tools.bounds(source))
        return replace(plan, next_time=await self._next_time(source))

    async def find_version(self, label: str) -> FoundVersion:
        return (await resolve.best_sources(self._store, label))[1]

    async def version_note(self, label: str) -> str | None:
        return await resolve.version_note(self._store, label)

    async def _plan(self, source: Source, rules: Rules, policy: Policy) -> RefreshPlan:
        store, now = self._store, self._clock()
        pages = await store.pages.to_check(source.id)
        listed = source.kind != "web"  # rules exclude stored pages of web sources only
        looked_at = [
            page
            async for page in yield_in_turns(pages, lambda page: page.url)
            if listed or rules.refusal(page.url, page.depth) is None
        ]
        known = [page for page in looked_at if page.content_hash is not None]
        conditional = [page for page in known if request_for(page, policy, now).validators is not None]
        first = [page for page in looked_at if page.status is PageStatus.PENDING]
        last = await store.runs.last(source.id, 20)
        runs = [run for run in last if run.state in ENDED]
        refreshed = next((run for run in runs if run.mode is RunMode.REFRESH), runs[0] if runs else None)
        return RefreshPlan(
            source=source.name,
            version=source.version,
            mode="refresh",
            known=len(known),
            conditional=len(conditional),
            unconditional=len(known) - len(conditional),
            first_looks=len(first),
            not_looked_at=len(pages) - len(looked_at),
            last_run_bytes=runs[0].counts.get("bytes", 0) if runs else 0,
            last_full_bytes=max((run.counts.get("bytes", 0) for run in runs), default=0),
            estimated_seconds=round(seconds_of(refreshed), 1) if refreshed and refreshed.finished_at else None,
            root=source.url,
            due=(await store.stats.due_tally(source.id, now, policy.max_age_seconds)).due,
            budget=policy.budget_per_run,
            notes=tuple(await self._plan_notes(source, len(looked_at) - len(known) - len(first), last[:1])),
        )

    async def _plan_notes(self, source: Source, others: int, last: Sequence[Run]) -> list[str]:
        notes = []
        if others:
            urls = "URL without content is" if others == 1 else "URLs without content are"
            notes.append(f"{others} {urls} checked again: moved, refused, failed or gone, and still linked")
        if waiting := len(await self._store.queue.frontier(source.id)):
            notes.append(f"{waiting} {'link is' if waiting == 1 else 'links are'} not followed because of a limit")
        if last and last[0].state in UNFINISHED:
            notes.append(f"run {last[0].id} is not finished: a refresh continues it")
        wanted, serving = self._models.wanted(), await self._store.vectors.serving_model()
        if wanted is not None and serving is not None and serving.name != wanted:
            notes.append(f"{wanted} is set, but searches use {serving.name}: `afresh reindex` rebuilds the index")
        return notes
