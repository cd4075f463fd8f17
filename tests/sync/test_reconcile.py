"""Copies: no event leads off the drawn transitions, and every plan comes to an end."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.model.records import PageId, PageStatus, SourceId, may_change
from afresh.sync.copy import Copy, DesiredCopy, OwnerTag, Remote, RemoteState, ReplaceOrder
from afresh.sync.listing import audit
from afresh.sync.reconcile import (
    CopyStep,
    SyncTimes,
    copy_state,
    dropped,
    plan,
    put,
    refused,
    seen,
    to_drop,
    to_put,
    unput,
)

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
URL = "https://docs.test/a"
NEW = Copy(
    id=1, sink="out", source_id=SourceId(1), source="docs", page_id=PageId(7), url=URL, created_at=NOON, updated_at=NOON
)
hashes = st.sampled_from([None, "h1", "h2", "h3"])
events = st.tuples(
    hashes,
    st.sampled_from(["ok", "lost", "sure", "refused"]),
    st.sampled_from(RemoteState),
    st.booleans(),
    st.integers(0, 60),
)


def remote(number: int, content: str | None, state: RemoteState) -> Remote:
    mark = OwnerTag(store="me", source="docs", page=7, hash=content or "")
    return Remote(id=f"d/{number}", name="A page", url=URL, state=state, mark=mark)


def answered(copy: Copy, answer: str, taken: Remote, now: datetime) -> Copy:
    if answer == "ok":
        return put(copy, taken, now)
    return refused(copy, "400") if answer == "refused" else unput(copy, "429", sure=answer == "sure")


@law
@given(st.lists(events, max_size=12), st.sampled_from(ReplaceOrder))
def test_D3_D17_D18_whatever_happens_a_copy_moves_along_the_table_and_one_step_at_a_time(
    life: list[tuple[str | None, str, RemoteState, bool, int]], order: ReplaceOrder
) -> None:
    copy, now, there = NEW, NOON, dict[str, Remote]()
    for number, (content, answer, state, vanished, minutes) in enumerate(life):
        now += timedelta(minutes=minutes)
        if vanished and there:
            there.pop(next(iter(there)))
        wanted = DesiredCopy(copy=copy, hash=content)
        step, before = plan(wanted, order, now), copy
        match step:
            case CopyStep.DROP:
                copy = to_drop(wanted, order)
                assert may_change(before.state, copy.state)
                there = {each: doc for each, doc in there.items() if each not in copy.leftovers}
                for each in copy.leftovers:
                    copy = dropped(copy, each)
            case CopyStep.PUT:
                assert content is not None
                assert order is ReplaceOrder.UPLOAD_FIRST or copy.remote_id is None
                copy = to_put(wanted)
                assert copy.state is PageStatus.PROCESSING
                taken = remote(number, content, state)
                if answer in ("ok", "lost"):
                    there[taken.id] = taken
                copy = answered(copy, answer, taken, now)
            case CopyStep.LOOK:
                known = there.get(copy.remote_id or "")
                copy = seen(copy, replace(known, state=state) if known else None, now)
            case CopyStep.ASK:
                copy = audit(wanted, list(there.values()), order, now, SyncTimes(), Counter())
                assert not copy.putting
        spoken_for = {copy.remote_id, *copy.former, *copy.leftovers}
        assert copy.putting or there.keys() <= spoken_for  # nothing is there that we do not know of
        if copy.state is PageStatus.ACTIVE:
            assert copy.remote_id is not None
            assert copy.former == ()
        if content is not None and copy.state is PageStatus.ACTIVE and copy.held_hash != content:
            assert copy_state(DesiredCopy(copy=copy, hash=content)) is PageStatus.READY_FOR_INDEXING
