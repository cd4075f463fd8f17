"""Listing an external store, and bringing what is on record in line with it."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from afresh.model.records import PageStatus
from afresh.sync.audit import audit
from afresh.sync.copy import Copy, Replace, Wanted
from afresh.sync.reconcile import Times
from afresh.sync.remote import Remote
from afresh.sync.reports import AuditView
from afresh.sync.tally import SHOWN


@dataclass(slots=True)
class Listing:
    """What a store holds: ours by page, and how much is not ours."""

    ours: dict[tuple[str, int], list[Remote]] = field(default_factory=dict)
    listed: int = 0
    foreign: int = 0
    foreign_names: list[str] = field(default_factory=list)

    def add(self, remote: Remote, store: str | None) -> None:
        """Take one document of the list."""
        self.listed += 1
        if remote.mark is None or remote.mark.store != store:
            self.foreign += 1
            if len(self.foreign_names) < SHOWN:
                self.foreign_names.append(remote.name or remote.id)
            return
        self.ours.setdefault((remote.mark.source, remote.mark.page), []).append(remote)

    def take(self, copy: Copy) -> list[Remote]:
        """The documents of a copy, which are then no orphans."""
        if copy.page_id is not None:
            return self.ours.pop((copy.source, int(copy.page_id)), [])
        known = {copy.remote_id, *copy.former, *copy.leftovers}
        return [remote for each in self.ours.values() for remote in each if remote.id in known]

    def orphans(self, spoken_for: set[str]) -> list[tuple[str, str, str]]:
        """What is ours and belongs to no page: label of the source, URL or else name, and id."""
        rest = [remote for each in self.ours.values() for remote in each if remote.id not in spoken_for]
        return [
            (remote.mark.source if remote.mark else "", remote.url or remote.name, remote.id)
            for remote in rest
        ]


@dataclass(slots=True)
class Audit:
    """One pass over all copies of a store, with its listing at hand."""

    listing: Listing
    order: Replace
    times: Times
    verified: int = 0
    _spoken_for: set[str] = field(default_factory=set)  # by copies whose page is no longer on record
    _sums: dict[str, int] = field(default_factory=dict)

    def judge(self, batch: Sequence[Wanted], now: datetime) -> list[Copy]:
        """The copies of a batch that the listing changes."""
        changed = []
        for wanted in batch:
            copy = wanted.copy
            found = audit(wanted, self.listing.take(copy), self.order, now, self.times)
            if copy.page_id is None:
                self._spoken_for.update(found.copy.leftovers, found.copy.former)
                self._spoken_for.update([found.copy.remote_id] if found.copy.remote_id else [])
            self.verified += found.copy.state is PageStatus.ACTIVE and found.copy.remote_id is not None
            for name in ("missing", "doubled", "stale", "adopted"):
                self._sums[name] = self._sums.get(name, 0) + int(getattr(found, name))
            if found.copy != copy:
                changed.append(found.copy)
        return changed

    def orphans(self) -> list[tuple[str, str, str]]:
        """What is ours and belongs to no page, once all copies were judged."""
        return self.listing.orphans(self._spoken_for)

    def view(self, orphaned: int) -> AuditView:
        """What was found."""
        return AuditView(
            listed=self.listing.listed,
            orphaned=orphaned,
            foreign=self.listing.foreign,
            foreign_names=tuple(self.listing.foreign_names),
            **self._sums,
        )


async def listed(documents: Callable[[], AsyncIterator[Remote]], store: str | None) -> Listing:
    """Everything that a store holds; a list that breaks off is begun anew by the caller."""
    listing = Listing()
    async for remote in documents():
        listing.add(remote, store)
    return listing
