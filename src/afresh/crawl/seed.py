"""Filling the queue: what a run is to look at; repeating it adds nothing."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.crawl.context import Course
from afresh.crawl.lastmod import is_news
from afresh.crawl.listing_diff import OnRecord, compare
from afresh.crawl.root import follow_root
from afresh.errors import SourceError
from afresh.model.records import Listed, Page, RunMode
from afresh.ports import Lister
from afresh.urls.canonical import domain_of


async def fill(course: Course, pages: Sequence[Listed]) -> None:
    """Put what is to be looked at into the queue; a source that cannot be read is noted."""
    mode, store, now = course.run.mode, course.kit.store, course.kit.clock()
    if mode is RunMode.CHECK:
        if not course.starts_at_root:
            await store.sources.forget_mark(course.source.id)
        await store.queue.enqueue(course.run, pages, course.limits, now)
        return
    if not course.starts_at_root:
        if mode is not RunMode.DUE:
            await _keep_within_limit(course)
        await _fill_from_listing(course, now)
    elif mode is RunMode.DUE:
        await _fill_due(course, now)
    else:
        await _fill_from_root(course, now)


async def _keep_within_limit(course: Course) -> None:
    """Hold a run that goes on to its limit, which may be another one than when it began."""
    if course.resumed:
        await course.kit.store.queue.keep_within(course.run, course.limits.max_pages)


async def _fill_due(course: Course, now: datetime) -> None:
    store, run, limits = course.kit.store, course.run, course.limits
    news = await _news(course, now) if course.kit.tells_news else []
    if course.kit.policy.looks is not None:  # what is worth a look for what was told of it comes first
        await store.queue.enqueue(run, await _worth_a_look(course, news, now), limits, now)
    await store.queue.enqueue_due(run, limits, now, max_age=course.kit.policy.max_age_seconds)
    if course.kit.policy.looks is None:
        await store.queue.enqueue(run, news, limits, now)
    if (await store.links.frontier_is_open(course.source.id, course.fingerprint))[0]:
        await store.queue.enqueue(run, await store.queue.frontier(course.source.id), limits, now)
    if (await store.queue.backlog(run.id)).open:
        roots = await _roots(course)  # is the site well at all?
        await store.queue.enqueue(run, roots or [], replace(limits, budget=None), now)


async def _news(course: Course, now: datetime) -> list[Listed]:
    """What the site lists as new or as changed since it was last looked at."""
    listed = await _listed(course) or []
    record = await course.kit.store.listings.on_record(course.source.id, course.kit.policy.recipe)
    checked = {page.url: page.checked_at for page in record}
    return [
        item for item in listed if item.url not in checked or is_news(item.modified, checked[item.url], now)
    ]


async def _worth_a_look(course: Course, news: Sequence[Listed], now: datetime) -> list[Listed]:
    """News as far as it is believed: what the site told so far decides how much."""
    plan, source = course.kit.policy.looks, course.source.id
    if plan is None or not news:
        return list(news)
    rhythms = dict(await course.kit.store.schedules.rhythms(source))
    record = await course.kit.store.listings.on_record(source, course.kit.policy.recipe)
    ages = {page.url: (now - page.checked_at).total_seconds() for page in record if page.checked_at}
    return [
        item
        for item in news
        if item.url not in rhythms
        or plan.is_due(domain_of(item.url), rhythms[item.url], ages.get(item.url, plan.longest), 1)
    ]


async def _fill_from_root(course: Course, now: datetime) -> None:
    store, run = course.kit.store, course.run
    roots = await _roots(course)
    lister = course.kit.lister
    await store.queue.enqueue(run, roots or [], course.limits, now)
    await _keep_within_limit(course)
    if roots is None or course.lost_root:
        return
    await store.queue.enqueue_known(run, course.limits, now)
    listed = await _listed(course)
    if listed is None:
        return
    limits = course.limits
    if course.kit.best_first:  # only what is known: the rest has to be the best of what there is
        course.held_back, limits = listed, replace(limits, max_pages=0)
    await store.queue.enqueue(run, listed, limits, now)
    await store.listings.record(course.source.id, listed, complete=not lister.listing_errors)
    await _follow_stored(course, now)


async def _fill_from_listing(course: Course, now: datetime) -> None:
    """Queue what the listing does not show to be as it is on record, and stamp the rest at once."""
    store, run, lister = course.kit.store, course.run, course.kit.lister
    listed = await _listed(course)
    if listed is None or course.unlisted is not None:
        return
    if lister.unchanged:
        await _fill_from_same_listing(course, listed, now)
        return
    on_record = await store.listings.on_record(course.source.id, course.kit.policy.recipe)
    if _is_suddenly_empty(lister, listed, on_record):
        course.unlisted = (
            f"{course.source.url} is empty, and was not before (is it mounted?): all its pages are kept; "
            "if that is meant, put a file there"
        )
        return
    course.listed = [item for item in listed if not lister.walks(item.url)]
    await store.sources.forget_mark(course.source.id)
    compared = compare(listed, on_record, lister.walks, full=course.kit.full)
    if course.resumed:  # what was edited or deleted since this run looked at it
        since = compare(listed, on_record, lister.walks, full=False)
        shown_again = [item.url for item in since.asked if item.validators is not None]
        await store.queue.ask_again(run, [*shown_again, *(item.url for item in since.gone)])
    walked = [page for page in on_record if lister.walks(page.url)]
    shown = [item for item in compared.asked if item.validators is not None]
    in_turn = [item for item in compared.asked if item.validators is None]
    await _take_turns(course, [*in_turn, *_again(course, walked)], now)
    await store.listings.record(course.source.id, listed, complete=not lister.listing_errors)
    await _look_at(course, [*shown, *compared.gone], now)
    await store.listings.record(course.source.id, shown, complete=False)  # those that are pages only now
    untold = {item.url for item in in_turn} | {page.url for page in walked}
    await store.listings.believe(run, now, [page.id for page in on_record if page.url in untold])


def _is_suddenly_empty(lister: Lister, listed: Sequence[Listed], on_record: Sequence[OnRecord]) -> bool:
    """Whether nothing is there of what was: not mounted, most likely; what rules leave out is there."""
    there = lister.dropped or any(not lister.walks(item.url) for item in listed)
    return not there and any(not lister.walks(page.url) for page in on_record)


async def is_as_listed(course: Course, dropped: Sequence[Page]) -> bool:
    """Whether the record, once some pages are dropped, is what was listed, down to the last page."""
    lister, recipe = course.kit.lister, course.kit.policy.recipe
    if lister.mark is None or lister.unchanged or course.starts_at_root:
        return lister.mark is not None
    leaving = {page.id for page in dropped}
    record = await course.kit.store.listings.on_record(course.source.id, recipe)
    on_record = [page for page in record if page.id not in leaving]
    compared = compare(course.listed, on_record, lister.walks, full=False)
    return not compared.asked and not compared.gone


async def _fill_from_same_listing(course: Course, listed: list[Listed], now: datetime) -> None:
    """Queue just what was not read well, and pages that are found by links: those tell for themselves."""
    store, run, recipe = course.kit.store, course.run, course.kit.policy.recipe
    if not await store.sources.has_mark(course.source.id, course.kit.mark):
        course.unlisted = "another process has looked at it in the meantime: run the command again"
        return
    record = await store.listings.on_record(course.source.id, recipe) if listed else ()
    walked = [page for page in record if course.kit.lister.walks(page.url)]
    unsound, in_turn = (
        await store.listings.unsound(course.source.id, recipe),
        [*listed, *_again(course, walked)],
    )
    await _take_turns(course, in_turn, now)
    await _look_at(course, unsound, now)
    asked = unsound if run.mode is RunMode.DUE else [*unsound, *in_turn]
    urls = {item.url for item in asked}
    await store.listings.record_unchanged(run, now, [page.id for page in walked if page.url not in urls])


async def _take_turns(course: Course, in_turn: Sequence[Listed], now: datetime) -> None:
    """Queue pages that are asked by themselves; in a run of what is due they wait for their time."""
    store, run, limits = course.kit.store, course.run, course.limits
    if run.mode is RunMode.DUE:
        await store.queue.schedule(run, in_turn, limits, course.kit.policy.recheck_seconds, now)
    else:
        await store.queue.enqueue(run, in_turn, limits, now)


async def _look_at(course: Course, asked: Sequence[Listed], now: datetime) -> None:
    """Queue what the listing shows, whatever the budget; before it what is due, if that is asked for."""
    store, run, limits = course.kit.store, course.run, course.limits
    if run.mode is RunMode.DUE:
        await store.queue.enqueue_due(run, limits, now, max_age=course.kit.policy.max_age_seconds)
    await store.queue.enqueue(run, asked, replace(limits, budget=None), now)


def _again(course: Course, walked: Sequence[OnRecord]) -> list[Listed]:
    """Pages that are found by links, to be asked again unless only what is due is."""
    return [] if course.run.mode is RunMode.DUE else [Listed(page.url, page.depth) for page in walked]


async def _roots(course: Course) -> list[Listed] | None:
    """Where the source starts; None if the run stops before that is known."""
    roots = await _unless_stopped(follow_root(course), course.stopping)
    course.unfilled = roots is None
    return roots


async def _listed(course: Course) -> list[Listed] | None:
    """What the source lists; None if the run stops before that is known."""

    async def items() -> list[Listed]:
        return [item async for item in course.kit.lister.list()]

    try:
        listed = await _unless_stopped(items(), course.stopping)
    except SourceError as error:
        course.unlisted = str(error)
        return []
    course.unfilled = listed is None
    return listed


async def _unless_stopped(
    work: Coroutine[None, None, list[Listed]], stopping: asyncio.Event
) -> list[Listed] | None:
    """The result of a longer piece of work, or None if the run is told to stop before."""
    task, stop = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        task.cancel()
        stop.cancel()


async def _follow_stored(course: Course, now: datetime) -> None:
    """Make pages of links on record that a limit or other rules had left out."""
    store, source = course.kit.store, course.source.id
    waiting, changed = await store.links.frontier_is_open(source, course.fingerprint)
    if changed:
        await course.kit.patterns.load()
        await store.links.judge(source, course.admits)
    if (waiting or changed) and not course.kit.best_first:
        await store.queue.enqueue(course.run, await store.queue.frontier(source), course.limits, now)
    await store.links.close_frontier(source, course.fingerprint, course.rules.max_depth)
