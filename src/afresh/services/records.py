"""Records by their numbers: what is asked for, or that it is not there."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.crawl.heartbeat import LiveWorkers
from afresh.errors import RunBusy, Unknown, UsageError
from afresh.model.filters import LinkRecord
from afresh.model.records import PageId, PageStatus, RunState, Source, SourceId
from afresh.model.reports import PageView
from afresh.services.add_source import Check
from afresh.store.store import Store
from afresh.urls.scope import Rules

# The keys of a source's settings that are rules; all others are policy.
RULES = (
    *("scope", "include", "exclude"),
    *("max_depth", "max_pages", "max_params", "max_components", "max_per_pattern"),
)


def split(settings: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The rules and the policy among the settings of a source."""
    rules = {key: value for key, value in settings.items() if key in RULES}
    return rules, {key: value for key, value in settings.items() if key not in RULES}


async def source_of(store: Store, number: int) -> Source:
    """The source with this number."""
    source = await store.sources.get(SourceId(number))
    if source is None:
        raise Unknown(f"there is no source {number}")
    return source


async def page_of(store: Store, number: int) -> PageView:
    """The page with this number."""
    page = await store.pages.get(PageId(number))
    if page is None:
        raise Unknown(f"there is no page {number}")
    return page


async def link_of(store: Store, number: int) -> LinkRecord:
    """The link with this number."""
    link = await store.links.get(number)
    if link is None:
        raise Unknown(f"there is no link {number} on any page")
    return link


async def check_idle(store: Store, source: Source, alive: LiveWorkers) -> None:
    """RunBusy, if a run of the source waits for a worker or is under way."""
    for run in await store.runs.live():
        busy = run.state is RunState.QUEUED or (run.state is RunState.RUNNING and alive.work_on(run))
        if run.source_id == source.id and busy:
            word = "waits for a worker" if run.state is RunState.QUEUED else "is under way"
            raise RunBusy(f"run {run.id} of {source.label} {word}: wait for it or cancel it", run.id)


async def change_settings(
    store: Store,
    source: Source,
    settings: Mapping[str, object],
    reset: Sequence[str],
    check: Check,
    now: datetime,
) -> None:
    """Lay settings over those of a source, and let some be as everywhere again, if they agree."""
    rules, policy = checked_settings(source, settings, reset, check)
    if await store.sources.replace_rules(source.id, rules, policy, now) is None:
        raise Unknown(f"there is no source {source.id}")


def checked_settings(
    source: Source, settings: Mapping[str, object], reset: Sequence[str], check: Check
) -> tuple[dict[str, object], dict[str, object]]:
    """Return rules and policy with settings laid over those of a source, if they agree."""
    rules, policy = (
        {key: value for key, value in {**own, **new}.items() if key not in reset}
        for own, new in zip((source.rules, source.policy), split(settings), strict=True)
    )
    check(rules, policy)
    return rules, policy


async def add_page(store: Store, source: Source, rules: Rules, url: str, now: datetime) -> PageView:
    """Make an address of a source known, to be looked at when what is due is."""
    why = rules.refusal(url, 1)
    if why is not None:
        raise UsageError(f"url: {url} is no part of {source.label}: {why}")
    for page, _, _, _ in await store.pages.find(url, source.id):
        if page.status is PageStatus.DELETED:
            raise UsageError(f"url: {url} was deleted: a refresh brings it back where something links to it")
        await store.pages.check_at(page.id, now, now)
        return await page_of(store, page.id)
    return await page_of(store, await store.pages.add(source.id, url, 1, now))
