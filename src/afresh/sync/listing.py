"""List an external store (sink) and compare it with our records: adopt, correct, mark for deletion.

This settles uploads whose answer was lost and repairs manual changes. It never affects documents without our
tag.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from afresh.model.records import PageStatus
from afresh.sync.copy import Copy, DesiredCopy, Remote, RemoteState, ReplaceOrder
from afresh.sync.reconcile import USUAL, SyncTimes, move, ready, seen
from afresh.sync.reports import SHOWN, AuditView


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCopy:
    """A copy corrected by the listing, and what was found."""

    copy: Copy
    missing: int = 0  # expected documents that do not exist
    doubled: int = 0  # additional documents of the same page
    stale: int = 0  # documents with other content than stored
    adopted: int = 0


def audit(
    wanted: DesiredCopy,
    listed: Sequence[Remote],
    order: ReplaceOrder,
    now: datetime,
    times: SyncTimes = USUAL,
) -> AuditedCopy:
    """Return what the listed documents of a page mean for its copy."""
    copy = wanted.copy
    by_id = {remote.id: remote for remote in listed}
    former = tuple(each for each in copy.former if each in by_id)
    copy = replace(copy, former=former, leftovers=tuple(each for each in copy.leftovers if each in by_id))
    known = by_id.get(copy.remote_id) if copy.remote_id is not None else None
    if known is None:
        return _rest(_unknown(copy, wanted.hash, listed, now, times), listed, order)
    held = known.mark.hash if known.mark else copy.held_hash
    now_known = replace(seen(copy, known, now, times), held_hash=held, putting=False)
    return _rest(AuditedCopy(copy=now_known, stale=int(held != copy.held_hash)), listed, order)


def _unknown(
    copy: Copy, wanted: str | None, listed: Sequence[Remote], now: datetime, times: SyncTimes
) -> AuditedCopy:
    """Adopt a document with the right content if none of the known documents exists."""
    lost = copy.remote_id is not None
    spoken_for = {*copy.former, *copy.leftovers}
    fit = [
        remote
        for remote in listed
        if wanted is not None
        and remote.mark is not None
        and remote.mark.hash == wanted
        and remote.url in (None, copy.url)  # page ids can be reused
        and remote.id not in spoken_for
    ]
    if not fit:
        if lost or copy.putting:
            copy = replace(ready(copy), remote_id=None, remote_name=None, held_hash=None, putting=False)
        return AuditedCopy(copy=copy, missing=int(lost))
    best = min(fit, key=lambda remote: remote.state is not RemoteState.ACTIVE)
    if copy.state is not PageStatus.PROCESSING:
        copy = move(ready(copy), PageStatus.PROCESSING)
    adopted = replace(
        copy,
        putting=False,
        remote_id=best.id,
        remote_name=best.name,
        wanted_hash=wanted,
        held_hash=wanted,
        put_at=copy.put_at or now,
    )
    return AuditedCopy(copy=seen(adopted, best, now, times), adopted=1)


def _rest(found: AuditedCopy, listed: Sequence[Remote], order: ReplaceOrder) -> AuditedCopy:
    """Mark other documents of the page for deletion; with `upload_first` once the new one is active."""
    copy = found.copy
    spoken_for = {copy.remote_id, *copy.former, *copy.leftovers}
    extra = tuple(remote.id for remote in listed if remote.id not in spoken_for)
    serves = copy.state is PageStatus.ACTIVE or order is ReplaceOrder.DELETE_FIRST
    if serves:
        copy = replace(copy, leftovers=(*copy.leftovers, *copy.former, *extra), former=())
    else:
        copy = replace(copy, former=(*copy.former, *extra))
    return replace(found, copy=copy, doubled=found.doubled + len(extra))


@dataclass(slots=True)
class StoreListing:
    """The documents in a sink: ours by page, and the number of others."""

    ours: dict[tuple[str, int], list[Remote]] = field(default_factory=dict)
    listed: int = 0
    foreign: int = 0
    foreign_names: list[str] = field(default_factory=list)

    def add(self, remote: Remote, store: str | None) -> None:
        """Add one listed document."""
        self.listed += 1
        if remote.mark is None or remote.mark.store != store:
            self.foreign += 1
            if len(self.foreign_names) < SHOWN:
                self.foreign_names.append(remote.name or remote.id)
            return
        self.ours.setdefault((remote.mark.source, remote.mark.page), []).append(remote)

    def take(self, copy: Copy) -> list[Remote]:
        """Return the documents of a copy; those of a page are removed, so that they are no orphans."""
        if copy.page_id is not None:
            return self.ours.pop((copy.source, int(copy.page_id)), [])
        known = {copy.remote_id, *copy.former, *copy.leftovers}
        return [remote for each in self.ours.values() for remote in each if remote.id in known]

    def orphans(self, spoken_for: set[str]) -> list[tuple[str, str, str]]:
        """Return our documents without a page: label of the source, URL or name, and id."""
        rest = [remote for each in self.ours.values() for remote in each if remote.id not in spoken_for]
        return [
            (remote.mark.source if remote.mark else "", remote.url or remote.name, remote.id)
            for remote in rest
        ]


@dataclass(slots=True)
class Audit:
    """One pass over all copies of a sink with its listing."""

    listing: StoreListing
    order: ReplaceOrder
    times: SyncTimes
    verified: int = 0
    _spoken_for: set[str] = field(default_factory=set)  # by copies whose page is no longer stored
    _sums: Counter[str] = field(default_factory=Counter)

    def judge(self, batch: Sequence[DesiredCopy], now: datetime) -> list[Copy]:
        """Return the copies of a batch that the listing changes."""
        changed = []
        for wanted in batch:
            copy = wanted.copy
            found = audit(wanted, self.listing.take(copy), self.order, now, self.times)
            if copy.page_id is None:
                self._spoken_for.update(found.copy.leftovers, found.copy.former)
                self._spoken_for.update([found.copy.remote_id] if found.copy.remote_id else [])
            self.verified += found.copy.state is PageStatus.ACTIVE and found.copy.remote_id is not None
            for name in ("missing", "doubled", "stale", "adopted"):
                self._sums[name] += int(getattr(found, name))
            if found.copy != copy:
                changed.append(found.copy)
        return changed

    def orphans(self) -> list[tuple[str, str, str]]:
        """Return our documents without a page, after all copies were judged."""
        return self.listing.orphans(self._spoken_for)

    def view(self, orphaned: int) -> AuditView:
        """Return the summary of the audit."""
        return AuditView(
            listed=self.listing.listed,
            orphaned=orphaned,
            foreign=self.listing.foreign,
            foreign_names=tuple(self.listing.foreign_names),
            **self._sums,
        )


async def listed(documents: Callable[[], AsyncIterator[Remote]], store: str | None) -> StoreListing:
    """Return everything in a sink; an interrupted listing has to be restarted by the caller."""
    listing = StoreListing()
    async for remote in documents():
        listing.add(remote, store)
    return listing
