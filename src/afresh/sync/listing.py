"""Correct the stored copies by a listing of the external store (sink).

A listing shows whether uploads without an answer succeeded, and finds manual changes. Documents without the tag of
afresh are never changed.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from afresh.dataclass import dataclass, field, replace
from afresh.model.records import PageStatus
from afresh.ports import Sink
from afresh.sync.copy import Copy, DesiredCopy, Remote, RemoteState, ReplaceOrder
from afresh.sync.reconcile import SyncTimes, move, ready, seen
from afresh.sync.reports import MAX_LISTED, AuditView


def audit(
    wanted: DesiredCopy,
    listed: Sequence[Remote],
    order: ReplaceOrder,
    now: datetime,
    times: SyncTimes,
    sums: Counter[str],
) -> Copy:
    """Correct a copy by the documents that the sink lists for its page; count the corrections in `sums`."""
    copy, by_id = wanted.copy, {remote.id: remote for remote in listed}
    former, leftovers = (tuple(each for each in ids if each in by_id) for ids in (copy.former, copy.leftovers))
    copy = replace(copy, former=former, leftovers=leftovers)
    if (known := by_id.get(copy.remote_id or "")) is None:
        copy = _adopt(copy, wanted.hash, listed, now, times, sums)
    else:
        held = known.mark.hash if known.mark else copy.held_hash
        sums["stale"] += held != copy.held_hash
        copy = replace(seen(copy, known, now, times), held_hash=held, putting=False)
    spoken_for = {copy.remote_id, *copy.former, *copy.leftovers}
    extra = tuple(remote.id for remote in listed if remote.id not in spoken_for)
    sums["doubled"] += len(extra)
    if copy.state is PageStatus.ACTIVE or order is ReplaceOrder.DELETE_FIRST:
        return replace(copy, leftovers=(*copy.leftovers, *copy.former, *extra), former=())
    return replace(copy, former=(*copy.former, *extra))  # keep them until the new document is active


def _adopt(
    copy: Copy, wanted: str | None, listed: Sequence[Remote], now: datetime, times: SyncTimes, sums: Counter[str]
) -> Copy:
    """Return a copy whose document is not listed, linked if possible to a listed document with the `wanted` hash."""
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
        sums["missing"] += lost
        if lost or copy.putting:
            copy = replace(ready(copy), remote_id=None, remote_name=None, held_hash=None, putting=False)
        return copy
    sums["adopted"] += 1
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
    return seen(adopted, best, now, times)


@dataclass(slots=True)
class StoreListing:
    """The documents in a sink: those marked by this store, by source label and page id; others are only counted."""

    ours: dict[tuple[str, int], list[Remote]] = field(default_factory=dict)
    listed: int = 0
    foreign: int = 0
    foreign_names: list[str] = field(default_factory=list)

    def take(self, copy: Copy) -> list[Remote]:
        """Return the listed documents of a copy.

        If the page of the copy is stored, remove the documents from `ours`: only documents without a page remain.
        """
        if copy.page_id is not None:
            return self.ours.pop((copy.source, int(copy.page_id)), [])
        known = {copy.remote_id, *copy.former, *copy.leftovers}
        return [remote for each in self.ours.values() for remote in each if remote.id in known]


@dataclass(slots=True)
class Audit:
    """Compares the stored copies of a sink with its listed documents, batch by batch."""

    listing: StoreListing
    order: ReplaceOrder
    times: SyncTimes
    verified: int = 0
    _spoken_for: set[str] = field(default_factory=set)  # ids in copies whose page is no longer stored
    _sums: Counter[str] = field(default_factory=Counter)

    def judge(self, batch: Sequence[DesiredCopy], now: datetime) -> list[Copy]:
        """Correct the copies of a batch by the listing; return those that changed."""
        changed = []
        for wanted in batch:
            copy = wanted.copy
            found = audit(wanted, self.listing.take(copy), self.order, now, self.times, self._sums)
            if copy.page_id is None:
                self._spoken_for.update(found.leftovers, found.former, [found.remote_id or ""])
            self.verified += found.state is PageStatus.ACTIVE and found.remote_id is not None
            if found != copy:
                changed.append(found)
        return changed

    def orphans(self) -> list[tuple[str, str, str]]:
        """Return the documents without a page as (source label, URL or name, id); call it after all batches."""
        rest = [each for remotes in self.listing.ours.values() for each in remotes if each.id not in self._spoken_for]
        return [(each.mark.source if each.mark else "", each.url or each.name, each.id) for each in rest]

    def view(self, orphaned: int) -> AuditView:
        return AuditView(
            listed=self.listing.listed,
            orphaned=orphaned,
            foreign=self.listing.foreign,
            foreign_names=tuple(self.listing.foreign_names),
            **self._sums,
        )


async def list_documents(sink: Sink, store: str | None) -> StoreListing:
    """List all documents in a sink; those not marked with the id `store` are foreign. Each call starts over."""
    listing = StoreListing()
    async for remote in sink.all():
        listing.listed += 1
        if remote.mark is not None and remote.mark.store == store:
            listing.ours.setdefault((remote.mark.source, remote.mark.page), []).append(remote)
            continue
        listing.foreign += 1
        if len(listing.foreign_names) < MAX_LISTED:
            listing.foreign_names.append(remote.name or remote.id)
    return listing
