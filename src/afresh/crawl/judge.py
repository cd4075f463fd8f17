"""How a run ends: whether it may delete, what it misses, and when the brake holds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from afresh.model.records import Page, PageId, PageStatus, Policy, Run, RunId, RunState
from afresh.search.vectors import UNEMBEDDED

OUTAGE_SHARE = 0.10  # more known pages failing than this is an outage of the source, not of pages
FEW = 2  # pages that may turn into something odd, or move to one place, however small the source is


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run knows about itself when nothing is left to look at."""

    unlisted: str | None = None  # why the source could not be read at all
    many_hosts: bool = False  # pages belong to hosts that know nothing of one another
    root_failed: str | None  # why the root could not be read, None if it could
    robots_unreachable: bool
    listing_complete: bool  # every sitemap or listing that exists was read
    stopped: bool
    known: int  # pages that had content when the run began
    known_failed: int  # of those, how many could not be looked at
    known_doubtful: int = 0  # and how many showed what is not believed
    known_barred: int = 0  # and how many want a login now (401, 403)
    failed: int  # pages that ended in a failure
    unembedded: int = 0  # of those, how many lack nothing but vectors
    embedder: str | None = None  # what is the matter with the embedder
    next_try: datetime | None = None  # when the first page that backs off is due, if runs wait for that

    def is_outage(self, pages: int) -> bool:
        """Whether so many of the known pages in trouble mean that the source is, rather than they are."""
        if self.many_hosts:
            return self.known > 0 and pages >= self.known
        return pages > self.known * OUTAGE_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a run is judged."""

    state: RunState
    may_delete: bool  # proof that single pages are gone is acted upon
    may_miss: bool  # absence counts: every page that was not reached is one run closer to its end
    error: str | None = None


def judge(evidence: Evidence) -> Verdict:
    """Judge a run: an outage, a refusal or an unfinished run never deletes anything."""
    if evidence.stopped:
        return Verdict(state=RunState.CANCELLED, may_delete=False, may_miss=False)
    error = _outage(evidence)
    if error is not None:
        return Verdict(state=RunState.FAILED, may_delete=False, may_miss=False, error=error)
    error = _widespread(evidence)
    if error is not None:
        return Verdict(state=RunState.PARTIAL, may_delete=False, may_miss=False, error=error)
    if evidence.known_barred > FEW and evidence.is_outage(evidence.known_barred):
        error = f"{evidence.known_barred} of {evidence.known} known pages refuse us now (401 or 403): kept"
        return Verdict(state=RunState.PARTIAL, may_delete=False, may_miss=False, error=error)
    if evidence.failed:
        return Verdict(state=RunState.PARTIAL, may_delete=True, may_miss=False, error=_left(evidence))
    return Verdict(state=RunState.COMPLETED, may_delete=True, may_miss=evidence.listing_complete)


def _left(evidence: Evidence) -> str:
    """What is left to do, and who is to blame."""
    unread, said = evidence.failed - evidence.unembedded, []
    if unread:
        due = evidence.next_try
        when = f"by the first run after {due:%Y-%m-%d %H:%M} UTC" if due else "with the next run"
        said.append(f"{_pages(unread)} could not be read and will be tried again {when}")
    if evidence.unembedded:
        why = f" ({evidence.embedder})" if evidence.embedder else ""
        said.append(f"{_pages(evidence.unembedded)} could not be embedded and will be tried again{why}")
    return "; ".join(said)


def _pages(number: int) -> str:
    return "1 page" if number == 1 else f"{number} pages"


def _outage(evidence: Evidence) -> str | None:
    if evidence.unlisted is not None:
        return evidence.unlisted
    if evidence.root_failed is not None and evidence.root_failed.startswith(UNEMBEDDED):
        return f"the root was {evidence.root_failed}"
    if evidence.root_failed is not None:
        return f"the root could not be read: {evidence.root_failed}"
    if evidence.robots_unreachable:
        return "robots.txt could not be read, so nothing was fetched"
    if evidence.known and evidence.known_failed + evidence.known_doubtful >= evidence.known:
        return _widespread(evidence)
    return None


def _widespread(evidence: Evidence) -> str | None:
    """What is wrong with so many of the known pages that none is deleted, whatever the rest shows."""
    if evidence.known and evidence.is_outage(evidence.known_failed):
        return f"{evidence.known_failed} of {evidence.known} known pages could not be read"
    odd = evidence.known_failed + evidence.known_doubtful
    if evidence.known_doubtful > FEW and evidence.is_outage(odd):
        return f"{odd} of {evidence.known} known pages show no content of theirs (an error page, a wall?)"
    return None


def brake_holds(live: int, doomed: int, policy: Policy, *, to_one: int = 0) -> bool:
    """Whether deletions wait for a human: too many at once, or too many that moved to one address."""
    return any(
        number > allowed and number * 100 > live * policy.brake_percent
        for number, allowed in ((doomed, policy.brake_pages), (to_one, FEW))
    )


def moved_to_one(pages: Iterable[Page]) -> int:
    """How many pages moved to one address, whatever its query, where most did: all to a login page, say."""
    targets = Counter(page.moved_to.partition("?")[0] for page in pages if page.moved_to is not None)
    return max(targets.values(), default=0)


def decide_missing(page: Page, run: RunId, policy: Policy) -> Page:
    """A page that a complete run did not reach: one run closer to its end, and doomed when it is there."""
    count = page.missing_count + 1
    doomed = run if count >= policy.missing_after else page.doomed_by
    return replace(page, missing_count=count, doomed_by=doomed)


def may_drop(page: Page, target: PageStatus | None, run: RunId) -> bool:
    """Whether a run may drop content now: it proved it itself, and a move has led somewhere settled."""
    settled = page.moved_to is None or target in (None, PageStatus.ACTIVE, PageStatus.DELETED)
    return page.doomed_by == run and settled


def leads_on(page: Page) -> bool:
    """Whether the links of a doomed page still count: it moved, or only asks not to be indexed itself."""
    return page.moved_to is not None or (page.gone_count == 0 and page.missing_count == 0)


def final_status(url: str, known: Mapping[str, tuple[PageStatus, str | None]]) -> PageStatus | None:
    """Where a chain of moves ends: a status, None outside the source, pending if it goes in circles."""
    seen: set[str] = set()
    while url in known and url not in seen:
        seen.add(url)
        status, moved_to = known[url]
        if moved_to is None:
            return status
        url = moved_to
    return PageStatus.PENDING if url in seen else None


def end_of_moves(url: str, moves: Mapping[str, str]) -> str | None:
    """Return the URL where a chain of moves ends; None if it goes in circles."""
    seen: set[str] = set()
    while url in moves and url not in seen:
        seen.add(url)
        url = moves[url]
    return None if url in seen else url


def pair_moves(
    pages: Iterable[Page], moves: Mapping[str, str], targets: Mapping[str, tuple[Page, datetime]]
) -> dict[PageId, Page]:
    """Pair pages that moved with the pages that take their identity, each target once.

    `targets` holds pages by URL with the start of the run that found them. A target that was found no later
    than the moved page last answered at its own URL has an identity of its own and keeps it.
    """
    pairs: dict[PageId, Page] = {}
    taken: set[PageId] = set()
    moved = [page for page in pages if page.moved_to is not None and page.last_seen is not None]
    ends = {page.id: targets.get(end_of_moves(page.moved_to or "", moves) or "") for page in moved}
    for page in sorted(moved, key=lambda page: (not _is_same(page, ends[page.id]), page.id)):
        found = ends[page.id]
        if found is None or found[0].id in taken or page.last_seen is None or found[1] <= page.last_seen:
            continue
        if found[0].status is PageStatus.ACTIVE and found[0].id != page.id:
            taken.add(found[0].id)
            pairs[page.id] = found[0]
    return pairs


def count_moves(dropped: Iterable[Page], heirs: Mapping[PageId, Page], run: Run) -> dict[str, int]:
    """Count what left and what moved; a page that took the identity of another is not counted as new."""
    pages = list(dropped)
    moved = sum(1 for page in pages if page.moved_to is not None)
    fresh = sum(1 for heir in heirs.values() if heir.changed_at and heir.changed_at >= run.started_at)
    new = max(0, run.counts.get("new", 0) - fresh)
    return {"moved": moved, "deleted": len(pages) - moved, **({"new": new} if heirs else {})}


def _is_same(page: Page, found: tuple[Page, datetime] | None) -> bool:
    """Whether a target shows the content that the page had."""
    return found is not None and found[0].content_hash == page.content_hash


def by_reason(pages: Iterable[Page]) -> dict[str, list[PageId]]:
    """Pages that leave, by why: absence, or proof that the history already holds."""
    reasons: dict[str, list[PageId]] = {}
    for page in pages:
        absent = page.missing_count > 0 and page.gone_count == 0
        times = f"{page.missing_count} complete runs in a row"
        reasons.setdefault(f"no link led here in {times}" if absent else "dropped", []).append(page.id)
    return reasons
