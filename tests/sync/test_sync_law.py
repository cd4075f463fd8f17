"""P18: whatever happens to pages, to the store and to the sync, two quiet syncs later both sides agree."""

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.stores import execute, new_store
from tests.sync.syncing import ROOT, Office, mark

from afresh.errors import SinkBusy, SinkFull, SinkMissing, SinkRefused, SinkUnauthorized
from afresh.model.records import PageStatus
from afresh.ops.failpoints import VARIABLE, FailpointRaised, arm
from afresh.store import sqlite
from afresh.store.store import Store
from afresh.sync.copy import RemoteState, ReplaceOrder
from afresh.testing import CUT, Fault, ScriptedSink

T = TypeVar("T")
PAGES = ("a", "b", "c", "d")
POINTS = ("taken", "audited", "dropping", "dropped", "putting", "put", "kept", "looked", "done")
FAULTS = (
    CUT,
    Fault(SinkBusy("time-out")),
    Fault(SinkBusy("429", 7.0)),
    Fault(SinkBusy("503 for 2 h", 7200.0)),
    Fault(SinkRefused("400")),
    Fault(SinkUnauthorized("401")),
    Fault(SinkFull("quota")),
    Fault(SinkMissing("no such store")),
)

page = st.sampled_from(PAGES)
actions = st.one_of(
    st.tuples(st.just("edit"), page, st.sampled_from("12345")),
    st.tuples(st.just("delete"), page, st.booleans()),
    st.tuples(st.just("fault"), st.sampled_from(["put", "drop", "look", "all"]), st.sampled_from(FAULTS)),
    st.tuples(st.just("fate"), st.sampled_from(RemoteState), st.none()),
    st.tuples(st.just("settle"), st.sampled_from([RemoteState.ACTIVE, RemoteState.FAILED]), st.none()),
    st.tuples(st.just("tamper"), st.sampled_from(["drop", "double", "orphan", "foreign"]), page),
    st.tuples(st.just("pass"), st.sampled_from([1, 11, 31, 1500]), st.none()),
    st.tuples(st.just("sync"), st.booleans(), st.none()),
    st.tuples(st.just("crash"), st.sampled_from(POINTS), st.integers(1, 3)),
)


@dataclass(slots=True)
class Guarded(ScriptedSink):
    """Refuses to lose the last searchable version of a page that has content."""

    office: Office | None = field(default=None)

    async def drop(self, remote_id: str) -> None:
        before = self.documents.get(remote_id)
        await ScriptedSink.drop(self, remote_id)
        if self.office is None or before is None or before.mark is None or before.mark.store != "me":
            return
        sql = "select id, url from pages where id = ? and content_hash is not null"
        wanted = execute(self.office.store, sql, before.mark.page)
        if before.state is RemoteState.ACTIVE and wanted:
            others = [each for each in self.documents.values() if each.mark]
            rest = [each.state for each in others if each.mark and each.mark.page == wanted[0]["id"]]
            assert RemoteState.ACTIVE in rest, f"{wanted[0]['url']} can no longer be found"


async def act(office: Office, kind: str, first: object, second: object) -> None:
    sink = office.sink
    match kind:
        case "edit":
            await office.write(str(first), f"text {second}")
        case "delete":
            await office.write(str(first), None, moved=bool(second))
        case "fault":
            assert isinstance(second, Fault)
            sink.script(str(first), second)
        case "fate":
            sink.fates.append(RemoteState(str(first)))
        case "settle":
            sink.settle(RemoteState(str(first)))
        case "tamper":
            await tamper(office, str(first), str(second))
        case "pass":
            office.clock.advance(minutes=int(str(first)))
        case "sync":
            await office.sync(verify=bool(first))
        case _:
            await crash(office, str(first), int(str(second)))


async def tamper(office: Office, how: str, path: str) -> None:
    number = await office.write(path, "text 1")
    if how == "drop":
        gone = [each.id for each in office.ours() if each.mark and each.mark.page == number]
        for remote in gone[:1]:
            del office.sink.documents[remote]
    elif how == "foreign":
        office.sink.add("by hand", mark(number, store="other") if path in "ab" else None)
    else:
        copied = mark(number if how == "double" else 10_000, text="text 1")
        office.sink.add(path, copied, "text 1", url=ROOT + path)


async def crash(office: Office, point: str, hit: int) -> None:
    arm({VARIABLE: f"sync.{point}=raise@{hit}"})
    try:
        await office.sync()
    except FailpointRaised:
        pass
    finally:
        arm({})


async def live(store: Store, order: ReplaceOrder, story: list[tuple[str, object, object]]) -> None:
    office = Office(store, order=order)
    sink = Guarded(name="remote", at_once=2)
    office.sink = sink
    if order is ReplaceOrder.UPLOAD_FIRST:
        sink.office = office
    for path in PAGES[:2]:
        await office.write(path, "text 0")
    for kind, first, second in story:
        await act(office, kind, first, second)
    foreign = {each.id for each in sink.documents.values() if each not in office.ours()}
    sink.faults, sink.fates = {}, deque()
    sink.settle()
    for _ in range(2):
        office.clock.advance(days=2)
        report = await office.sync(verify=True)
        assert report.error is None
    assert office.found() == office.wanted()
    assert foreign <= sink.documents.keys()
    assert len(sink.documents) == len(foreign) + len(office.wanted())
    states = {copy.url: copy.state for copy in office.copies()}
    assert {url for url, state in states.items() if state is PageStatus.ACTIVE} == office.wanted().keys()
    sink.calls.clear()
    report = await office.sync()
    assert (report.state, report.waiting, report.failed) == ("completed", 0, 0)
    assert sink.calls == []


@pytest.fixture
def _in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the store work in the thread of the test: it takes half of the time."""

    class SameThread(Executor):
        def __init__(self, *_: object) -> None: ...

        def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
            done: Future[T] = Future()
            done.set_result(work(*args, **kwargs))
            return done

    monkeypatch.setattr(sqlite, "ThreadPoolExecutor", SameThread)


@pytest.mark.slow
@pytest.mark.usefixtures("_in_one_thread")
@pytest.mark.parametrize("order", ReplaceOrder)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=st.lists(actions, max_size=14))
def test_P18_F94_F95_F96_F97_F98_F99_two_quiet_syncs_later_both_sides_agree(
    order: ReplaceOrder, story: list[tuple[str, object, object]]
) -> None:
    """0 orphans, 0 doubles, 0 uploads of unchanged pages; with upload_first never a search gap (G11)."""

    async def play_story() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with new_store(Path(folder), Store) as store:
                await live(store, order, story)

    asyncio.run(play_story())
