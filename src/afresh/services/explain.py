"""Why a page is as it is: the evidence of the last look, in one sentence and its facts."""

from datetime import timedelta

from afresh.model.history import HistoryEntry, history_entry, recency
from afresh.model.records import Attempt, ChangeKind, Page, PageId, PageStatus, SourceId
from afresh.model.reports import PageView, Why
from afresh.model.retention import REMOVED
from afresh.store.store import Store


async def explain(
    store: Store, page: Page, view: PageView, name: str, version: str | None, keep: timedelta | None
) -> Why:
    """The evidence behind the state of a page; former texts stay as long as `keep`."""
    held = await store.pages.content(page.id)
    latest, next_look, linked_from, attempts = await store.history.evidence(page)
    return Why(
        url=page.url,
        source=name,
        version=version,
        status=view.status,
        summary=_summary(page, latest),
        page=view,
        latest=latest,
        next_look=next_look,
        linked_from=linked_from,
        attempts=attempts,
        former=held.former,
        former_until=held.former_at + keep if held.former_at and keep is not None else None,
    )


def _summary(page: Page, latest: Attempt | None) -> str:
    if latest is None:
        return "not looked at yet: it waits in the queue"
    parts = [latest.reason or str(latest.outcome)]
    if page.doomed_by is not None:
        parts.append(f"run {page.doomed_by} wants to drop it and waits for a confirmation")
    elif page.status is PageStatus.ACTIVE and latest.error_message:
        parts.append("the content of the last good look is kept")
    if page.doubt is not None and page.doubt not in parts[0]:
        parts.append(page.doubt)
    if page.missing_count:
        times = "run" if page.missing_count == 1 else "runs in a row"
        parts.append(f"no link led here in {page.missing_count} complete {times}")
    return "; ".join(parts)


async def history_of(store: Store, url: str, source: SourceId | None) -> list[HistoryEntry]:
    """Return the attempts at an address, source by source, newest first; those at former addresses of its
    page included."""
    found = {entry.id: entry for entry in await store.history.of_url(url, source)}
    for page, _, name, version in await store.pages.find(url, source):
        for attempt in await store.history.of_page(page.id):
            found[attempt.id] = history_entry(attempt, name, version)
    newest = sorted(found.values(), key=recency, reverse=True)
    order = {label: place for place, label in enumerate(dict.fromkeys(map(_label, newest)))}
    return sorted(newest, key=lambda entry: order[_label(entry)])


def _label(entry: HistoryEntry) -> tuple[str | None, str | None]:
    return entry.source, entry.version


async def explain_removed(store: Store, url: str, source: SourceId | None) -> Why | None:
    """Explain an address whose page is no longer on record, from its attempts and changes."""
    done = [each for each in await store.history.of_url(url, source) if each.outcome is not None]
    owned = [each for each in done if each.source is not None]
    if not owned:
        return None
    latest, mine = owned[0], [each for each in owned if _label(each) == _label(owned[0])]
    owner = await store.sources.find(latest.source or "", latest.version)
    if owner is None:
        return None
    changes = await store.history.changes([owner.id], url=url, kind=ChangeKind.DELETED, limit=1)
    deleted = next(iter(changes), None)
    seen = next((each for each in mine if each.reason and not each.reason.startswith(REMOVED)), latest)
    when = f"deleted on {deleted.at:%Y-%m-%d %H:%M} UTC by run {deleted.run}; " if deleted else ""
    summary = f"{seen.reason or seen.outcome}; {when}its record was removed since (retention.deleted_pages)"
    page = PageView(
        id=PageId(0),  # there is no record
        source_id=owner.id,
        url=url,
        status=PageStatus.DELETED,
        title=None,
        depth=0,
        language=None,
        content_hash=None,
        etag=None,
        last_modified=None,
        content_type=None,
        crawl_time=None,
        last_seen=None,
        checked_at=seen.completed_at,
        changed_at=deleted.at if deleted else None,
        missing_count=0,
        moved_to=None,
    )
    return Why(
        url=url,
        source=owner.name,
        version=owner.version,
        status=PageStatus.DELETED,
        summary=summary,
        page=page,
        latest=seen,
        next_look=None,
        linked_from=(),
        attempts=len(mine),
    )
