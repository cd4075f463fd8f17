"""Syncing an external store, fault by fault: what is asked of it, what is on record, what is found_text."""

import asyncio
from dataclasses import dataclass

import pytest
from tests.sync.syncing import ROOT, Office, mark

from afresh.dataclass import replace
from afresh.errors import RunBusy, SinkBusy, SinkFull, SinkMissing, SinkRefused, SinkUnauthorized
from afresh.model.records import PageStatus, WorkerRecord
from afresh.ops.failpoints import VARIABLE, FailpointRaised, arm
from afresh.store.store import Store
from afresh.sync.copy import Remote, RemoteState, ReplaceOrder, Upload
from afresh.testing import CUT, Fault, ScriptedSink


@dataclass(slots=True)
class Stopping(ScriptedSink):
    """Has the sync stopped when eight documents are there."""

    office: Office | None = None

    async def put(self, upload: Upload) -> Remote:
        if self.office is not None and self.count("put") >= 8:
            self.office.stopping.set()
        return await ScriptedSink.put(self, upload)


@dataclass(slots=True)
class Slow(ScriptedSink):
    """Is done with its documents at the third look."""

    async def look(self, remote_id: str) -> Remote | None:
        if self.count("look") == 2:
            self.settle()
        return await ScriptedSink.look(self, remote_id)


async def office_with(store: Store, *paths: str, order: ReplaceOrder = ReplaceOrder.DELETE_FIRST) -> Office:
    office = Office(store, order=order)
    for path in paths:
        await office.write(path, f"text of {path}")
    return office


async def test_D1_D9_D13_D19_a_page_is_put_replaced_and_dropped_and_nothing_else_is_called(store: Store) -> None:
    office = await office_with(store, "a", "b")
    office.sink.arrives = RemoteState.PROCESSING
    first = await office.sync()
    assert (first.uploaded, first.waiting, first.verified, first.state) == (2, 2, 0, "completed")
    assert office.copy("a").state is PageStatus.PROCESSING
    office.sink.settle()
    second = await office.sync()
    assert (second.uploaded, second.verified, second.waiting) == (0, 2, 0)
    assert office.copy("a").state is PageStatus.ACTIVE
    office.sink.calls.clear()
    assert (await office.sync()).verified == 0
    assert office.sink.calls == []
    await office.write("a", "another text")
    await office.write("b", None)
    office.sink.arrives = RemoteState.ACTIVE
    third = await office.sync()
    assert (third.uploaded, third.replaced, third.deleted) == (0, 1, 1)
    assert [kind for kind, _ in office.sink.calls] == ["drop", "drop", "put"]  # D20: deletes go first
    assert office.copy("b").state is PageStatus.DELETED
    assert office.found() == office.wanted()


async def test_R7_D15_G15_F94_what_is_processed_for_ever_is_stuck_then_put_once_per_deadline(store: Store) -> None:
    office = await office_with(store, "a", order=ReplaceOrder.UPLOAD_FIRST)
    await office.sync()
    old = office.ours()[0]
    await office.write("a", "new text")
    office.sink.arrives = RemoteState.PROCESSING
    await office.sync()
    hanging = office.copy("a").remote_id
    office.clock.advance(minutes=29)
    assert (await office.sync()).stuck == 0
    office.clock.advance(minutes=2)
    report = await office.sync()
    assert (report.stuck, report.waiting, report.state) == (1, 1, "partial")
    assert "stuck: PROCESSING since" in (office.copy("a").error or "")
    assert office.sink.count("put") == 2
    report = await office.sync()  # the next one deletes it and puts it once more
    assert (report.uploaded, report.stuck, report.state) == (1, 0, "completed")
    assert hanging not in office.sink.documents
    assert old.id in office.sink.documents  # it still answers
    for _ in range(14):
        office.clock.advance(minutes=2)
        await office.sync()
    assert office.sink.count("put") == 3  # no storm: one for each deadline
    office.sink.settle()
    office.clock.advance(minutes=5)
    await office.sync()
    assert office.found() == office.wanted()


async def test_R7_F142_a_document_that_is_stuck_three_times_is_an_error_and_tried_again_a_day_later(
    store: Store,
) -> None:
    office = await office_with(store, "a")
    office.sink.arrives = RemoteState.PROCESSING
    reports = []
    for _ in range(10):
        reports.append(await office.sync())
        office.clock.advance(minutes=31)
    assert [each.stuck for each in reports] == [0, 1, 0, 1, 0, 1, 0, 0, 0, 0]
    assert [each.failed for each in reports] == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert office.sink.count("put") == 3
    assert office.copy("a").state is PageStatus.ERROR
    assert "stuck" in reports[-1].failures[0].why
    office.sink.arrives = RemoteState.ACTIVE
    office.clock.advance(days=1)
    assert (await office.sync()).state == "completed"
    assert office.found() == office.wanted()


@pytest.mark.parametrize("others", [0, 1])
async def test_R7_one_sync_never_both_finds_a_document_stuck_and_puts_it_again(store: Store, others: int) -> None:
    office = await office_with(store, "a")
    office.sink.arrives = RemoteState.PROCESSING
    await office.sync()
    office.clock.advance(minutes=31)
    for number in range(others):
        await office.write(f"other{number}", "still processed")
    office.wait_seconds = 30.0  # several rounds of looks
    report = await office.sync(verify=True)
    assert (report.stuck, report.uploaded, report.state) == (1, others, "partial")
    assert office.sink.count("put") == 1 + others


async def test_D4_D14_F95_failed_is_checked_again_uploaded_again_and_given_up_after_three(store: Store) -> None:
    office = await office_with(store, "a")
    office.sink.arrives = RemoteState.FAILED
    await office.sync()
    office.clock.advance(minutes=9)
    await office.sync()
    assert (office.sink.count("put"), office.sink.count("look")) == (1, 0)  # not believed at once
    puts = []
    for _ in range(4):
        office.clock.advance(minutes=11)
        report = await office.sync()
        puts.append(office.sink.count("put"))
    assert puts == [2, 3, 3, 3]
    assert (report.failed, report.state) == (1, "partial")
    assert report.failures[0].url == ROOT + "a"
    assert "FAILED" in report.failures[0].why
    assert office.copy("a").state is PageStatus.ERROR
    assert office.sink.documents == {}
    office.sink.arrives = RemoteState.ACTIVE
    office.clock.advance(days=2)  # D4: it heals
    assert (await office.sync()).state == "completed"
    assert office.found() == office.wanted()


async def test_F95_failed_can_turn_active_and_is_not_put_again(store: Store) -> None:
    office = await office_with(store, "a")
    office.sink.arrives = RemoteState.FAILED
    await office.sync()
    office.sink.settle()
    office.clock.advance(minutes=11)
    assert (await office.sync()).verified == 1
    assert office.sink.count("put") == 1


async def test_D9_F96_a_delete_that_fails_is_kept_in_mind_and_absent_is_success(store: Store) -> None:
    office = await office_with(store, "a", "b")
    await office.sync()
    for path in "ab":
        await office.write(path, None)
    del office.sink.documents[office.copy("a").remote_id or ""]  # somebody was faster: 404
    office.sink.script("drop", None, Fault(SinkRefused("400: not empty")))
    report = await office.sync()
    assert (report.deleted, report.failed, report.state) == (1, 1, "partial")
    assert office.copy("b").leftovers == (next(iter(office.sink.documents)),)
    assert (await office.sync()).deleted == 1
    assert office.sink.documents == {}
    office.sink.calls.clear()
    await office.sync()
    assert office.sink.calls == []


@pytest.mark.parametrize(
    "problem",
    [SinkBusy("503"), SinkBusy("429", 7200.0), SinkFull("quota"), SinkMissing("no store"), SinkUnauthorized("key")],
)
async def test_F97_a_problem_with_the_store_stops_the_sync_with_its_state_and_it_resumes(
    store: Store, problem: Exception
) -> None:
    office = await office_with(store, "a", "b", "c", "d")
    office.sink.down = problem
    report = await office.sync()
    assert (report.state, report.uploaded, report.waiting) == ("failed", 0, 4)
    assert str(problem) in (report.error or "")
    calls = len(office.sink.calls)
    assert calls <= 8  # no storm
    office.sink.down = None
    if getattr(problem, "retry_after", None):
        assert "asked for a pause" in ((await office.sync()).error or "")
        assert len(office.sink.calls) == calls  # it asked for two hours
        office.clock.advance(hours=3)
    assert (await office.sync()).uploaded == 4
    assert office.found() == office.wanted()


async def test_F97_a_short_retry_after_is_waited_for_and_one_refused_page_affects_no_other(store: Store) -> None:
    office = await office_with(store, "a", "b", "c", "d", "e")
    office.sink.at_once = 1
    busy, refused = Fault(SinkBusy("429", 3.0)), Fault(SinkRefused("400: too long for s3cr3t-key"))
    office.sink.script("put", busy, None, refused, None)
    report = await office.sync()
    assert (report.uploaded, report.failed, report.state) == (4, 1, "partial")
    assert [failure.why for failure in report.failures] == ["400: too long for ***"]
    assert office.sink.count("all") == 1  # a put that was turned away leaves no doubt
    assert (await office.sync()).uploaded == 1


@pytest.mark.parametrize("order", ReplaceOrder)
async def test_F98_a_document_whose_id_got_lost_is_adopted(store: Store, order: ReplaceOrder) -> None:
    office = await office_with(store, "a", "b", order=order)
    office.sink.script("put", CUT)
    report = await office.sync()
    assert (report.state, office.sink.count("put")) == ("completed", 2)
    arm({VARIABLE: "sync.put=raise"})
    await office.write("a", "changed")
    try:
        with pytest.raises(FailpointRaised):
            await office.sync()
    finally:
        arm({})
    report = await office.sync()
    assert report.audit is not None
    assert (report.audit.adopted, office.sink.count("put")) == (1, 3)
    assert office.found() == office.wanted()


@pytest.mark.parametrize("order", ReplaceOrder)
async def test_R8_G19_F98_a_document_named_by_its_url_is_adopted_and_bears_the_title_once_it_changes(
    store: Store, order: ReplaceOrder
) -> None:
    """Former versions named documents by the URL: they are neither doubled nor put again."""
    office = await office_with(store, "a", "b", order=order)
    number = await office.write("a", "text of a")
    named = office.sink.add("docs.example.org/a", mark(number, text="text of a"), "text of a", url=ROOT + "a")
    report = await office.sync()
    assert report.audit is not None
    assert (report.audit.adopted, report.uploaded, office.sink.count("put")) == (1, 1, 1)
    assert (office.copy("a").remote_id, office.copy("a").remote_name) == (named.id, "docs.example.org/a")
    assert office.copy("b").remote_name == "b"  # the title of the page
    await office.write("a", "changed")
    await office.sync(verify=True)
    assert {(each.name, each.url) for each in office.ours()} == {("a", ROOT + "a"), ("b", ROOT + "b")}
    assert office.found() == office.wanted()


async def test_R8_F143_documents_are_identified_by_metadata_and_never_by_their_names(store: Store) -> None:
    """Two pages with one title, and a document of the same number and content that stood for another URL."""
    office = await office_with(store, "a", "b")
    for path in "ab":
        await office.write(path, "same text", title="Home")
    number = await office.write("c", "same text", title="Home")
    other = office.sink.add("Home", mark(number, text="same text"), "same text", url=ROOT + "elsewhere")
    arm({VARIABLE: "sync.put=raise"})
    try:
        with pytest.raises(FailpointRaised):
            await office.sync()
    finally:
        arm({})
    report = await office.sync()
    assert report.audit is not None
    assert report.state == "completed"
    assert other.id not in office.sink.documents
    assert [(each.name, each.url) for each in office.ours()] == [("Home", ROOT + path) for path in "abc"]
    assert office.found() == office.wanted()


@pytest.mark.parametrize("title", [None, "", "  \n"])
async def test_R8_a_page_without_a_title_is_named_by_its_url(store: Store, title: str | None) -> None:
    office = Office(store)
    await office.write("a?b=1", "text", title=title)
    await office.sync()
    assert [each.name for each in office.ours()] == [ROOT + "a?b=1"]


async def test_F99_verify_finds_both_ways_repairs_what_is_ours_and_leaves_the_rest(store: Store) -> None:
    office = await office_with(store, "a", "b", "c")
    await office.sync()
    documents = office.sink.documents
    del documents[office.copy("a").remote_id or ""]
    number = await office.write("b", "text of b")
    office.sink.add("b", mark(number))
    office.sink.add("gone", mark(4711))
    foreign = {office.sink.add("theirs").id, office.sink.add("b", mark(number, store="other")).id}
    preview = (await office.syncs().preview([office.target()], verify=True))[0]
    assert (preview.state, len(documents), preview.deleted) == ("planned", 6, 1)
    report = await office.sync(verify=True)
    audit = report.audit
    assert audit is not None
    found = (audit.missing, audit.doubled, audit.orphaned, audit.foreign, audit.listed)
    assert found == (1, 1, 1, 2, 6)
    assert preview.audit == audit
    assert foreign <= documents.keys()
    assert office.found() == office.wanted()
    assert set(audit.foreign_names) == {"theirs", "b"}


async def test_P18_a_store_that_another_process_syncs_is_left_alone(store: Store) -> None:
    office = await office_with(store, "a")
    living = WorkerRecord(name="other", host="elsewhere", pid=1, heartbeat_at=office.clock())
    await office.store.workers.join(living)
    await office.store.copies.take_sink("remote", "memory", "other")
    with pytest.raises(RunBusy, match="another process"):
        await office.sync()
    other = replace(office.target(), name="other")
    reports = await office.syncs().sync([office.target(), other])
    assert [(each.sink, each.state) for each in reports] == [("remote", "busy"), ("other", "completed")]
    assert "another process" in str(reports[0].error)


async def test_D20_uploads_side_by_side_are_limited_and_a_stop_leaves_the_rest_for_the_next(store: Store) -> None:
    office = await office_with(store, *(str(number) for number in range(20)))
    office.sink = sink = Stopping(at_once=4, office=office)
    report = await office.sync()
    assert (report.state, report.uploaded, report.waiting) == ("partial", 12, 8)
    assert office.sink.most_at_once == 4
    office.stopping, sink.office = asyncio.Event(), None
    assert (await office.sync()).uploaded == 8


async def test_D15_a_sync_waits_a_while_for_what_the_store_processes(store: Store) -> None:
    office = await office_with(store, "a")
    office.wait_seconds = 30.0
    office.sink = Slow(arrives=RemoteState.PROCESSING)
    assert (await office.sync()).verified == 1
    assert office.copy("a").state is PageStatus.ACTIVE
    assert office.sink.count("look") == 3
