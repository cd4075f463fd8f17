"""Fill the queue of a run: follow redirects of the root, then queue the pages to check; repeating this is harmless.

| the root answers with                | the source                                                        |
|--------------------------------------|-------------------------------------------------------------------|
| content                              | is read from its root                                             |
| a permanent redirect, on its site    | moves there if the run ends well; pages below the old root follow |
| a temporary redirect, on its site    | keeps its URL; pages below the target belong to it, too           |
| a redirect to another site           | is not read, unless the run has the option `--follow-move`        |
| a redirect to a login, an error, 404 | is not read, nothing moves                                        |

A chain of redirects counts as permanent only if every redirect in it is permanent.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from afresh.aio import run_until_stopped
from afresh.crawl.context import RunContext
from afresh.crawl.decide import request_for
from afresh.crawl.hosts import fetch_politely
from afresh.crawl.listing_diff import KnownPage, compare, is_dated_newer
from afresh.crawl.plausibility import SuspicionAction, is_wall, suspicion_of
from afresh.crawl.soft_404 import content_signals
from afresh.dataclass import replace
from afresh.errors import ExtractError, ParserCrashed, ParserUnavailable, SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, NotModified, Outcome, Refused, Request
from afresh.model.records import Claim, CrawlId, ListedUrl, Page, PageId, RunMode
from afresh.urls.canonical import domain_of
from afresh.urls.scope import OTHER_SITE, Rules

MAX_ROOT_MOVES = 5
MAX_DELAY_SECONDS = 60  # a host that may not be requested for longer counts as pausing


async def follow_root(context: RunContext) -> list[ListedUrl]:
    """Follow redirects of the root, and return the URLs to queue as roots; keep the responses for their visits."""
    tools, root, asked_by = context.tools, context.rules.root, context.rules
    if tools.aim is None or context.source.kind != "web":
        return [ListedUrl(root, 0)]
    page = await _page_at(context, root)
    chain, answers = [root], [await _ask(context, root, page)]
    while isinstance(seen := answers[-1], Moved):
        if refused := _why_not_followed(context.rules, chain, seen):
            return _reject_root(context, asked_by, refused)
        chain.append(seen.to)
        _point_at(context, replace(context.rules, root=seen.to, aside=None, former=(root, *context.rules.former)))
        known = await _page_at(context, seen.to)
        answers.append(await _ask(context, seen.to, known if known and known.content_hash else page))
    seen = answers[-1]
    if seen is None or (len(chain) == 1 and not isinstance(seen, Body)):
        if seen is not None:
            tools.answers[root] = seen
        return [ListedUrl(root, 0)]
    if len(chain) > 1 and isinstance(seen, Gone | Refused | Failed):
        failure = seen.reason or f"nothing is there ({seen.status_code})"
        return _reject_root(context, asked_by, _refused(f"it moved permanently to {chain[-1]}: {failure}"))
    is_temporary = isinstance(seen, NotModified) and seen.validators.url not in (None, chain[-1])
    if isinstance(seen, Body):  # the last redirect may be temporary
        is_temporary, is_aside = seen.url != chain[-1], context.rules.refusal(seen.url, 0) is not None
        if is_aside or len(chain) > 1:
            why = await _why_implausible(context, page, chain[-1], seen)
            if why is not None:
                place = seen.url if is_aside else chain[-1]
                return _reject_root(context, asked_by, _refused(f"it leads to {place}: {why}"))
    if is_temporary:
        return _keep_root(context, asked_by, seen)
    tools.answers.update((url, seen) for url, seen in zip(chain, answers, strict=True) if seen is not None)
    if len(chain) > 1:
        context.moved_root = chain[-1]
    return [ListedUrl(url, 0) for url in reversed(chain)]


async def _page_at(context: RunContext, url: str) -> Page | None:
    return (await context.tools.store.history.root_attempt(context.source.id, url))[0]


async def _ask(context: RunContext, url: str, page: Page | None) -> Fetched | None:
    """Fetch a URL, conditionally if `page` is given; return None if its host must not be requested now."""
    tools, request = context.tools, Request(url=url)
    soon = tools.clock() + timedelta(seconds=MAX_DELAY_SECONDS)
    if any(
        host.next_allowed_at and host.next_allowed_at > soon
        for host in await tools.store.stats.host_states([domain_of(url)])
    ):
        return None
    if page is not None:
        known = request_for(page, tools.policy, tools.clock(), full=tools.full)
        validators = known.validators
        if validators is not None and page.url != url:
            validators = replace(validators, url=validators.url or page.url)
        request = replace(known, url=url, validators=validators)
    return await fetch_politely(domain_of(url), request, tools)


def _point_at(context: RunContext, rules: Rules) -> None:
    context.rules = rules
    if context.tools.aim is not None:
        context.tools = context.tools.aim(context.tools, rules)


def _why_not_followed(rules: Rules, chain: list[str], seen: Moved) -> Refused | None:
    way = " → ".join((*chain, seen.to))
    if seen.to in chain:
        return _refused(f"redirect loop: {way}", seen)
    if len(chain) > MAX_ROOT_MOVES:
        return _refused(f"more than {MAX_ROOT_MOVES} redirects: {way}", seen)
    if not rules.allows_redirect(chain[-1], seen.to):
        return _refused(f"it moved permanently to {seen.to}, {OTHER_SITE}", seen)
    return None


def _refused(reason: str, seen: Moved | None = None) -> Refused:
    return Refused(outcome=Outcome.FAILED, reason=reason, status_code=seen.status_code if seen else None)


def _reject_root(context: RunContext, rules: Rules, refused: Refused) -> list[ListedUrl]:
    """Return the root as the only URL to queue; its visit will fail with the reason in `refused`."""
    _point_at(context, rules)
    context.tools.answers[rules.root] = refused
    context.lost_root = True
    return [ListedUrl(rules.root, 0)]


def _keep_root(context: RunContext, rules: Rules, seen: Fetched) -> list[ListedUrl]:
    """Return the root as the only URL to queue, with the content of the target of its temporary redirect."""
    if isinstance(seen, Body):
        seen = replace(seen, validators=replace(seen.validators, url=seen.url))
        if rules.refusal(seen.url, 0) is not None:
            rules = replace(rules, aside=seen.url)
            context.notes.append(f"the start page redirects to {seen.url} for now: pages below it are crawled, too")
    if rules != context.rules:
        _point_at(context, rules)
    context.tools.answers[rules.root] = seen
    return [ListedUrl(rules.root, 0)]


async def _why_implausible(context: RunContext, page: Page | None, url: str, body: Body) -> str | None:
    tools = context.tools
    if not tools.policy.doubts:
        return None
    try:
        document = await tools.parsers.call(tools.extract, body)
    except (ExtractError, ParserCrashed, ParserUnavailable) as error:
        return str(error)
    asked = page or Page(id=PageId(0), source_id=context.source.id, url=url)
    claim = Claim(crawl_id=CrawlId(0), page=asked, run_id=context.run.id, domain=domain_of(url))
    doubt = suspicion_of(asked, document, await content_signals(claim, document, tools), tools.policy)
    if doubt is not None and doubt.action is SuspicionAction.HOLD:
        return doubt.text
    is_new_wall = asked.content_hash is None and is_wall(document)
    return "it looks like a login or consent page" if is_new_wall else None


async def fill(context: RunContext, pages: Sequence[ListedUrl]) -> None:
    """Queue the pages that a run has to check; if the source cannot be listed, store the reason in the context."""
    mode, store, now = context.run.mode, context.tools.store, context.tools.clock()
    if mode is RunMode.CHECK:
        if not context.starts_at_root:
            await store.sources.forget_mark(context.source.id)
        await store.queue.enqueue(context.run, pages, context.limits, now)
        return
    if not context.starts_at_root:
        if mode is not RunMode.DUE:
            await _keep_within_limit(context)
        await _fill_from_listing(context, now)
    elif mode is RunMode.DUE:
        await _fill_due(context, now)
    else:
        await _fill_from_root(context, now)


async def _keep_within_limit(context: RunContext) -> None:
    if context.resumed:
        await context.tools.store.queue.keep_within(context.run, context.limits.max_pages)


async def _fill_due(context: RunContext, now: datetime) -> None:
    store, run, limits = context.tools.store, context.run, context.limits
    news = await _news(context, now) if context.tools.has_change_dates else []
    if context.tools.policy.check_plan is not None:  # pages with a change hint come first
        await store.queue.enqueue(run, await _worth_checking(context, news, now), limits, now)
    await store.queue.enqueue_due(run, limits, now, max_age=context.tools.policy.max_age_seconds)
    if context.tools.policy.check_plan is None:
        await store.queue.enqueue(run, news, limits, now)
    if (await store.links.frontier_is_open(context.source.id, context.fingerprint))[0]:
        await store.queue.enqueue(run, await store.queue.frontier(context.source.id), limits, now)
    if (await store.queue.backlog(run.id)).open:
        roots = await _roots(context)  # check whether the site itself is available
        await store.queue.enqueue(run, roots or [], replace(limits, budget=None), now)


async def _news(context: RunContext, now: datetime) -> list[ListedUrl]:
    """Return the URLs that the site lists as new, or as changed since their last check."""
    listed = await _listed(context) or []
    record = await context.tools.store.listings.stored_pages(context.source.id, context.tools.policy.recipe)
    checked = {page.url: page.checked_at for page in record}
    return [item for item in listed if item.url not in checked or is_dated_newer(item.modified, checked[item.url], now)]


async def _worth_checking(context: RunContext, news: Sequence[ListedUrl], now: datetime) -> list[ListedUrl]:
    """Return those of the URLs in `news` that are worth a check, given how reliable the site's dates were so far."""
    plan, source = context.tools.policy.check_plan, context.source.id
    if plan is None or not news:
        return list(news)
    rhythms = dict(await context.tools.store.schedules.rhythms(source))
    record = await context.tools.store.listings.stored_pages(source, context.tools.policy.recipe)
    ages = {page.url: (now - page.checked_at).total_seconds() for page in record if page.checked_at}
    return [
        item
        for item in news
        if item.url not in rhythms
        or plan.is_due(domain_of(item.url), rhythms[item.url], ages.get(item.url, plan.max_seconds), 1)
    ]


async def _fill_from_root(context: RunContext, now: datetime) -> None:
    store, run = context.tools.store, context.run
    roots = await _roots(context)
    lister = context.tools.lister
    await store.queue.enqueue(run, roots or [], context.limits, now)
    await _keep_within_limit(context)
    if roots is None or context.lost_root:
        return
    await store.queue.enqueue_known(run, context.limits, now)
    listed = await _listed(context)
    if listed is None:
        return
    limits = context.limits
    if context.tools.best_first:  # queue known pages only; new ones are admitted by score
        context.held_back, limits = listed, replace(limits, max_pages=0)
    await store.queue.enqueue(run, listed, limits, now)
    await store.listings.record(context.source.id, listed, complete=not lister.listing_errors)
    await _follow_stored(context, now)


async def _fill_from_listing(context: RunContext, now: datetime) -> None:
    """Queue the pages whose validators differ from the listing; record the others as checked without requests."""
    store, run, lister = context.tools.store, context.run, context.tools.lister
    listed = await _listed(context)
    if listed is None or context.unlisted is not None:
        return
    if lister.unchanged:
        await _fill_from_same_listing(context, listed, now)
        return
    stored_pages = await store.listings.stored_pages(context.source.id, context.tools.policy.recipe)
    there = lister.dropped or any(not lister.walks(item.url) for item in listed)  # excluded files count as content
    if not there and any(not lister.walks(page.url) for page in stored_pages):
        context.unlisted = (
            f"{context.source.url} is empty now, but was not before (is it mounted?). All its pages are kept; "
            "if it is empty on purpose, put a file there"
        )
        return
    context.listed = [item for item in listed if not lister.walks(item.url)]
    await store.sources.forget_mark(context.source.id)
    compared = compare(listed, stored_pages, lister.walks, full=context.tools.full)
    if context.resumed:  # pages may have been edited or deleted since this run checked them
        since = compare(listed, stored_pages, lister.walks, full=False)
        listed_again = [item.url for item in since.asked if item.validators is not None]
        await store.queue.allow_again(run, [*listed_again, *(item.url for item in since.gone)])
    walked = [page for page in stored_pages if lister.walks(page.url)]
    differing = [item for item in compared.asked if item.validators is not None]
    in_turn = [item for item in compared.asked if item.validators is None]
    await _queue_individually(context, [*in_turn, *_walked_again(context, walked)], now)
    await store.listings.record(context.source.id, listed, complete=not lister.listing_errors)
    await _queue_listed(context, [*differing, *compared.gone], now)
    await store.listings.record(context.source.id, differing, complete=False)  # some became pages just now
    unlisted = {item.url for item in in_turn} | {page.url for page in walked}
    await store.listings.mark_unchanged(run, now, [page.id for page in stored_pages if page.url in unlisted])


async def is_as_listed(context: RunContext, dropped: Sequence[Page]) -> bool:
    """Return whether the stored pages, without `dropped`, equal the listing."""
    lister, recipe = context.tools.lister, context.tools.policy.recipe
    if lister.mark is None or lister.unchanged or context.starts_at_root:
        return lister.mark is not None
    leaving = {page.id for page in dropped}
    record = await context.tools.store.listings.stored_pages(context.source.id, recipe)
    stored_pages = [page for page in record if page.id not in leaving]
    compared = compare(context.listed, stored_pages, lister.walks, full=False)
    return not compared.asked and not compared.gone


async def _fill_from_same_listing(context: RunContext, listed: list[ListedUrl], now: datetime) -> None:
    """Queue only pages with problems and pages found by links, because the listing is unchanged."""
    store, run, recipe = context.tools.store, context.run, context.tools.policy.recipe
    if not await store.sources.has_mark(context.source.id, context.tools.mark):
        context.unlisted = "another process has updated the source meanwhile: run the command again"
        return
    record = await store.listings.stored_pages(context.source.id, recipe) if listed else ()
    walked = [page for page in record if context.tools.lister.walks(page.url)]
    with_problems = await store.listings.with_problems(context.source.id, recipe)
    in_turn = [*listed, *_walked_again(context, walked)]
    await _queue_individually(context, in_turn, now)
    await _queue_listed(context, with_problems, now)
    asked = with_problems if run.mode is RunMode.DUE else [*with_problems, *in_turn]
    urls = {item.url for item in asked}
    await store.listings.record_unchanged(run, now, [page.id for page in walked if page.url not in urls])


async def _queue_individually(context: RunContext, in_turn: Sequence[ListedUrl], now: datetime) -> None:
    """Queue pages that have to be requested one by one; in a run of due pages, each only when it is due."""
    store, run, limits = context.tools.store, context.run, context.limits
    if run.mode is RunMode.DUE:
        await store.queue.schedule(run, in_turn, limits, context.tools.policy.recheck_seconds, now)
    else:
        await store.queue.enqueue(run, in_turn, limits, now)


async def _queue_listed(context: RunContext, asked: Sequence[ListedUrl], now: datetime) -> None:
    """Queue pages that the listing shows as changed, even beyond the budget of a run of due pages."""
    store, run, limits = context.tools.store, context.run, context.limits
    if run.mode is RunMode.DUE:
        await store.queue.enqueue_due(run, limits, now, max_age=context.tools.policy.max_age_seconds)
    await store.queue.enqueue(run, asked, replace(limits, budget=None), now)


def _walked_again(context: RunContext, walked: Sequence[KnownPage]) -> list[ListedUrl]:
    """Return the pages that were found by links, as URLs to check; none in a run of due pages."""
    return [] if context.run.mode is RunMode.DUE else [ListedUrl(page.url, page.depth) for page in walked]


async def _roots(context: RunContext) -> list[ListedUrl] | None:
    """Return the root URLs to queue; None if the run was stopped first."""
    roots = await run_until_stopped(follow_root(context), context.stopping)
    context.unfilled = roots is None
    return roots


async def _listed(context: RunContext) -> list[ListedUrl] | None:
    """Return the URLs that the source lists; [] if it cannot be listed, None if the run was stopped first."""

    async def items() -> list[ListedUrl]:
        return [item async for item in context.tools.lister.list()]

    try:
        listed = await run_until_stopped(items(), context.stopping)
    except SourceError as error:
        context.unlisted = str(error)
        return []
    context.unfilled = listed is None
    return listed


async def _follow_stored(context: RunContext, now: datetime) -> None:
    """Queue stored links that earlier runs did not follow because of a limit or of the former rules."""
    store, source = context.tools.store, context.source.id
    waiting, changed = await store.links.frontier_is_open(source, context.fingerprint)
    if changed:
        await context.tools.patterns.load()
        await store.links.judge(source, context.admits)
    if (waiting or changed) and not context.tools.best_first:
        await store.queue.enqueue(context.run, await store.queue.frontier(source), context.limits, now)
    await store.links.close_frontier(source, context.fingerprint, context.rules.max_depth)
