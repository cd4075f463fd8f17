"""Comparing what a store lists with what we know of one page there: adopt, correct, mark for deletion.

This settles puts whose answer was lost, and repairs what was changed by hand. It never concerns documents
that do not bear our mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afresh.model.records import PageStatus
from afresh.sync.copy import Copy, Replace, Wanted
from afresh.sync.reconcile import USUAL, Times, move, ready, seen
from afresh.sync.remote import Remote, RemoteState


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A copy as the listing makes it, and what was found."""

    copy: Copy
    missing: int = 0  # documents that should be there and are not
    doubled: int = 0  # further documents of the same page
    stale: int = 0  # documents of another content than we believed
    adopted: int = 0


def audit(
    wanted: Wanted, listed: Sequence[Remote], order: Replace, now: datetime, times: Times = USUAL
) -> Audited:
    """What the listed documents of a page mean for its copy."""
    copy = wanted.copy
    by_id = {remote.id: remote for remote in listed}
    copy = replace(
        copy,
        former=tuple(each for each in copy.former if each in by_id),
        leftovers=tuple(each for each in copy.leftovers if each in by_id),
    )
    known = by_id.get(copy.remote_id) if copy.remote_id is not None else None
    found = (
        _known(copy, known, now, times)
        if known is not None
        else _unknown(copy, wanted.hash, listed, now, times)
    )
    return _rest(found, listed, order)


def _known(copy: Copy, remote: Remote, now: datetime, times: Times) -> Audited:
    held = remote.mark.hash if remote.mark else copy.held_hash
    stale = int(held != copy.held_hash)
    return Audited(copy=replace(seen(copy, remote, now, times), held_hash=held, putting=False), stale=stale)


def _unknown(
    copy: Copy, wanted: str | None, listed: Sequence[Remote], now: datetime, times: Times
) -> Audited:
    """No document that we know of is there: one with the right content is as good, whatever its name."""
    lost = copy.remote_id is not None
    spoken_for = {*copy.former, *copy.leftovers}
    fit = [
        remote
        for remote in listed
        if wanted is not None
        and remote.mark is not None
        and remote.mark.hash == wanted
        and remote.url in (None, copy.url)  # numbers of pages can be used again
        and remote.id not in spoken_for
    ]
    if not fit:
        if lost or copy.putting:
            copy = replace(ready(copy), remote_id=None, remote_name=None, held_hash=None, putting=False)
        return Audited(copy=copy, missing=int(lost))
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
    return Audited(copy=seen(adopted, best, now, times), adopted=1)


def _rest(found: Audited, listed: Sequence[Remote], order: Replace) -> Audited:
    """Every other document of the page is to go; with `upload_first` not before the new one serves."""
    copy = found.copy
    spoken_for = {copy.remote_id, *copy.former, *copy.leftovers}
    extra = tuple(remote.id for remote in listed if remote.id not in spoken_for)
    serves = copy.state is PageStatus.ACTIVE or order is Replace.DELETE_FIRST
    if serves:
        copy = replace(copy, leftovers=(*copy.leftovers, *copy.former, *extra), former=())
    else:
        copy = replace(copy, former=(*copy.former, *extra))
    return replace(found, copy=copy, doubled=found.doubled + len(extra))
