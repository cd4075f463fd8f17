"""Judge how a run ends: which pages are missing, whether it may delete, and which deletions need confirmation."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from afresh.dataclass import dataclass, field, replace
from afresh.model.records import Page, PageId, PageStatus, Policy, Run, RunId, RunState
from afresh.search.records import UNEMBEDDED

OUTAGE_SHARE = 0.10  # a larger share of failing known pages is an outage of the source
MAX_ODD_PAGES = 2  # this many pages may look suspicious or move to one URL, even in a small source


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """The results of a run, from which `judge` decides how the run ends; all numbers count pages."""

    unlisted: str | None = None  # why the source could not be read
    many_hosts: bool = False  # pages belong to independent hosts
    root_failed: str | None  # why the root could not be read, None if it could
    robots_unreachable: bool
    listing_complete: bool  # every sitemap or listing that exists was read
    stopped: bool
    known: int  # pages that had content when the run began
    known_failed: int  # of those, how many could not be fetched
    known_doubtful: int = 0  # and how many looked suspicious
    known_barred: int = 0  # and how many need a login now (401, 403)
    failed: int  # pages that ended in a failure
    unembedded: int = 0  # of those, how many lack only vectors
    embedder: str | None = None  # the error of the embedder
    next_try: datetime | None = None  # when the first page that backs off is due, in runs of due pages

    def is_outage(self, pages: int) -> bool:
        if self.many_hosts:
            return self.known > 0 and pages >= self.known
        return pages > self.known * OUTAGE_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    state: RunState
    may_delete: bool = False  # delete pages that are proven gone
    may_miss: bool = False  # count pages that were not reached as missing
    error: str | None = None


def judge(evidence: RunEvidence) -> RunVerdict:
    """Return how a run ends; after an outage, many refusals or a stop, the run may not delete pages."""
    if evidence.stopped:
        return RunVerdict(state=RunState.CANCELLED)
    if (error := _outage(evidence)) is not None:
        return RunVerdict(state=RunState.FAILED, error=error)
    if (error := _widespread(evidence)) is not None:
        return RunVerdict(state=RunState.PARTIAL, error=error)
    barred, known = evidence.known_barred, evidence.known
    if barred > MAX_ODD_PAGES and evidence.is_outage(barred):
        error = f"{barred} of {known} known pages now answer 401 or 403; they were kept"
        return RunVerdict(state=RunState.PARTIAL, error=error)
    if evidence.failed:
        return RunVerdict(state=RunState.PARTIAL, may_delete=True, error=_left(evidence))
    return RunVerdict(state=RunState.COMPLETED, may_delete=True, may_miss=evidence.listing_complete)


def _left(evidence: RunEvidence) -> str:
    unread, reasons = evidence.failed - evidence.unembedded, []
    if unread:
        due = evidence.next_try
        when = f"by the first run after {due:%Y-%m-%d %H:%M} UTC" if due else "with the next run"
        reasons.append(f"{_pages(unread)} could not be read and will be tried again {when}")
    if evidence.unembedded:
        why = f" ({evidence.embedder})" if evidence.embedder else ""
        reasons.append(f"{_pages(evidence.unembedded)} could not be embedded and will be tried again{why}")
    return "; ".join(reasons)


def _pages(number: int) -> str:
    return "1 page" if number == 1 else f"{number} pages"


def _outage(evidence: RunEvidence) -> str | None:
    if evidence.unlisted is not None:
        return evidence.unlisted
    if evidence.root_failed is not None and evidence.root_failed.startswith(UNEMBEDDED):
        return f"the start page was {evidence.root_failed}"
    if evidence.root_failed is not None:
        return f"the start page could not be read: {evidence.root_failed.removeprefix('not fetched: ')}"
    if evidence.robots_unreachable:
        return "robots.txt could not be read, so nothing was fetched"
    if evidence.known and evidence.known_failed + evidence.known_doubtful >= evidence.known:
        return _widespread(evidence)
    return None


def _widespread(evidence: RunEvidence) -> str | None:
    """Return an error message if so many known pages failed that no page may be deleted; else None."""
    if evidence.known and evidence.is_outage(evidence.known_failed):
        return f"{evidence.known_failed} of {evidence.known} known pages could not be read"
    odd = evidence.known_failed + evidence.known_doubtful
    if evidence.known_doubtful > MAX_ODD_PAGES and evidence.is_outage(odd):
        return f"{odd} of {evidence.known} known pages look like an error or login page"
    return None


def exceeds_deletion_limit(live: int, doomed: int, policy: Policy, *, to_one: int = 0) -> bool:
    """Return whether deletions need confirmation, because too many pages would be deleted or moved to one URL."""
    return any(
        number > allowed and number * 100 > live * policy.brake_percent
        for number, allowed in ((doomed, policy.brake_pages), (to_one, MAX_ODD_PAGES))
    )


def moved_to_one(pages: Iterable[Page]) -> int:
    """Return how many pages redirect to the most common target (ignoring its query), which may be a login page."""
    targets = Counter(page.moved_to.partition("?")[0] for page in pages if page.moved_to is not None)
    return max(targets.values(), default=0)


def decide_missing(page: Page, run: RunId, policy: Policy) -> Page:
    """Return the page with its missing count increased; at the limit, mark the page for deletion by this run."""
    count = page.missing_count + 1
    doomed = run if count >= policy.missing_after else page.doomed_by
    return replace(page, missing_count=count, doomed_by=doomed)


def may_drop(page: Page, target: PageStatus | None, run: RunId) -> bool:
    """Return whether `run` may delete a page that it marked; `target` is the status of the page where redirects end."""
    is_final = page.moved_to is None or target in (None, PageStatus.ACTIVE, PageStatus.DELETED)
    return page.doomed_by == run and is_final


def keeps_links(page: Page) -> bool:
    """Return whether links on a page marked for deletion still count, because the page moved or has noindex."""
    return page.moved_to is not None or (page.gone_count == 0 and page.missing_count == 0)


def final_status(url: str, known: Mapping[str, tuple[PageStatus, str | None]]) -> PageStatus | None:
    """Return the status of the page where redirects from `url` end, None if not `known` (status, target by URL)."""
    end = end_of_moves(url, lambda each: known[each][1] if each in known else None)
    return PageStatus.PENDING if end is None else known[end][0] if end in known else None


def end_of_moves(url: str, target_of: Callable[[str], str | None]) -> str | None:
    """Return the URL where a chain of redirects ends; None for a loop."""
    seen: set[str] = set()
    while (target := target_of(url)) is not None and url not in seen:
        seen.add(url)
        url = target
    return None if url in seen else url


def pair_moves(
    pages: Iterable[Page], moves: Mapping[str, str], targets: Mapping[str, tuple[Page, datetime]]
) -> dict[PageId, Page]:
    """Return by the id of each moved page its heir: the page at the new URL, whose content the moved page takes over.

    `targets` holds pages by URL, each with the start of the run that found it. Each target becomes an heir once. If
    the moved page still answered at its old URL after the target was found, the target is a separate page and no heir.
    """
    pairs: dict[PageId, Page] = {}
    taken: set[PageId] = set()
    moved = [page for page in pages if page.moved_to is not None and page.last_seen is not None]
    ends = {page.id: targets.get(end_of_moves(page.moved_to or "", moves.get) or "") for page in moved}

    def rank(page: Page) -> tuple[bool, PageId]:
        found = ends[page.id]
        return found is None or found[0].content_hash != page.content_hash, page.id

    for page in sorted(moved, key=rank):  # first those whose target shows the same content
        found = ends[page.id]
        if found is None or found[0].id in taken or page.last_seen is None or found[1] <= page.last_seen:
            continue
        if found[0].status is PageStatus.ACTIVE and found[0].id != page.id:
            taken.add(found[0].id)
            pairs[page.id] = found[0]
    return pairs


def count_moves(dropped: Iterable[Page], heirs: Mapping[PageId, Page], run: Run) -> dict[str, int]:
    """Return the numbers of moved and deleted pages, and of new pages without the `heirs` (see `pair_moves`).

    Heirs that this run read count as `moved_read`.
    """
    pages = list(dropped)
    moved = sum(1 for page in pages if page.moved_to is not None)
    fresh = sum(1 for heir in heirs.values() if heir.changed_at and heir.changed_at >= run.started_at)
    new = run.counts.get("new", 0)
    read = min(new, fresh)
    return {"moved": moved, "deleted": len(pages) - moved, **({"new": new - read, "moved_read": read} if heirs else {})}


def by_reason(pages: Iterable[Page]) -> dict[str, list[PageId]]:
    reasons: dict[str, list[PageId]] = {}
    for page in pages:
        absent = page.missing_count > 0 and page.gone_count == 0
        times = f"{page.missing_count} complete runs in a row"
        reasons.setdefault(f"no link led here in {times}" if absent else "dropped", []).append(page.id)
    return reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    state: RunState
    counts: Mapping[str, int]
    notes: Sequence[str] = ()
    error: str | None = None
    missing: Sequence[Page] | None = None  # pages that were not reached; None: the run cannot tell
    dropped: Sequence[Page] = ()  # pages whose content is deleted
    heirs: Mapping[PageId, Page] = field(default_factory=dict)  # by id of a moved page: the page at its new URL
    root: str | None = None  # where the root of the source is now
    messages: Sequence[tuple[str, str]] = ()  # targets to notify, each with the event
    forgives: bool = False  # reset pages that this run found gone, because its evidence is weak
    mark: str | None = None  # the state of the source that was read completely
