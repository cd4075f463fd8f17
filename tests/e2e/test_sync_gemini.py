"""Pages in Gemini File Search: by the real SDK, and only what the server holds is believed."""

from itertools import pairwise
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import found, index_of
from tests.e2e.sites import lay, word
from tests.e2e.stores import STORE, attached, texts
from tests.fakes.faults import HttpFault
from tests.fakes.gemini_hosted import FAILS, NEVER, after
from tests.fakes.gemini_server import KEY, GeminiServer

from afresh.cli.sync_commands import exit_code
from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.model.filters import PageFilter
from afresh.model.records import PageStatus, may_change
from afresh.sync.reports import DocumentCounts, SyncReport
from afresh.testing import FrozenClock, TinySite


@pytest.fixture
def clock() -> FrozenClock:
    """The time that the knowledge base and the server share."""
    return FrozenClock()


async def synced(kb: KnowledgeBase, *, verify: bool = False) -> SyncReport:
    """What one sync did."""
    [report] = await kb.sinks.sync(verify=verify)
    return report


def reported(report: SyncReport) -> dict[str, int]:
    """The numbers of a report that are not nought."""
    names = ("uploaded", "replaced", "deleted", "waiting", "failed", "stuck")
    return {name: number for name in names if (number := getattr(report, name))}


def held(store: Path) -> dict[str, str]:
    """The Markdown of every page that has content."""
    return {url: str(each.markdown) for url, each in index_of(store).items()}


@pytest.mark.parametrize("order", ["delete_first", "upload_first"])
async def test_R8_D1_D5_D6_D7_D9_D16_D20_G11_documents_follow_the_pages_and_a_quiet_sync_asks_nothing(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock, order: str
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock, order=order) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            assert len(server.requests) == 0  # a crawl calls no store
            report = await synced(kb)
            assert (report.state, reported(report)) == ("completed", {"uploaded": 3})
            assert texts(server) == held(store)
            assert {each.values["afresh_source"] for each in server.documents} == {"docs"}
            titles = {view.url: view.title for view in await kb.pages.of_source("docs")}
            assert {str(each.values["url"]): each.display_name for each in server.documents} == titles
            names = {view.url: copy.remote_name for view in await kb.pages.of_source("docs") for copy in view.copies}
            assert names == titles

            server.forget()
            assert reported(await synced(kb)) == {}
            assert server.kinds["upload.start"] == 0

            tiny.edit("/a", add_paragraph="the tide turns at noon")
            tiny.delete("/b")
            lay(tiny, {"/": ["/a", "/b", "/c"], "/c": []})
            clock.advance(days=1)
            await kb.runs.refresh(["docs"])
            server.forget()
            report = await synced(kb)
            assert reported(report) == {"uploaded": 1, "replaced": 2, "deleted": 1}
            assert (server.kinds["upload.start"], server.kinds["documents.delete"]) == (3, 3)
            calls = [each.method for each in server.requests if each.method != "GET"]
            assert calls[0] == "DELETE"  # what is gone for good goes first
            assert (calls.index("POST") > 2) is (order == "delete_first"), calls
            assert texts(server) == held(store)
            assert KEY not in repr(report)


async def test_D2_D3_D13_D14_D15_D19_F94_F95_pages_are_active_when_Gemini_says_so_and_no_sooner(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    with GeminiServer(clock) as server:
        server.hosted.fates = [NEVER, FAILS, after(90, failing=5)]
        async with attached(store, server, clock) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            lives = {view.url: [view.status] for view in await kb.pages.of_source("docs")}
            assert list(lives.values()) == [["ready_for_indexing"]] * 3
            report = await synced(kb)
            assert (report.uploaded, report.verified) == (3, 0)
            assert {view.status for view in await kb.pages.of_source("docs")} <= {"processing", "error"}
            for _ in range(12):
                for view in await kb.pages.of_source("docs"):
                    lives[view.url].append(view.status)
                clock.advance(minutes=10)
                await synced(kb)
            states = sorted(view.status for view in await kb.pages.of_source("docs"))
            assert states == ["active", "active", "active"]
            assert all(may_change(*pair) for life in lives.values() for pair in pairwise(life))
            assert server.kinds["upload.start"] == 5  # one failed and one was stuck: each was put once more
            assert texts(server) == held(store)


async def test_R7_G15_F94_what_is_stuck_shows_in_status_doctor_pages_and_exit_code_until_it_is_put_again(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    with GeminiServer(clock) as server:
        server.hosted.fates = [NEVER]
        async with attached(store, server, clock) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            assert exit_code([await synced(kb)]) == 0  # what is processed in time is no trouble
            clock.advance(minutes=31)
            report = await synced(kb)
            assert (report.stuck, exit_code([report])) == (1, 1)
            [sink], [displayed] = (await kb.status.get()).sinks, (await kb.sources.view("docs")).sinks or ()
            assert (sink.stuck, displayed.stuck, sink.states) == (1, 1, {"active": 1, "processing": 1})
            [finding] = [each for each in await kb.status.doctor() if each.check == "sink team"]
            assert not finding.ok
            assert "1 document is stuck" in finding.detail
            assert "afresh sync --to team" in str(finding.fix)
            assert sum(copy.stuck for view in await kb.pages.of_source("docs") for copy in view.copies) == 1
            report = await synced(kb)
            assert (report.uploaded, report.stuck, exit_code([report])) == (1, 0, 0)
            assert server.kinds["documents.delete"] == 1
            assert [each.stuck for each in (await kb.status.get()).sinks] == [0]
            assert texts(server) == held(store)


async def test_R9_D21_a_sync_is_a_run_with_a_number_and_its_documents_then_and_now(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    with GeminiServer(clock) as server:
        server.hosted.fates = [NEVER]
        async with attached(store, server, clock) as kb:
            crawl = await kb.runs.crawl(tiny.url, name="docs")
            report = await synced(kb)
            [number] = report.runs
            sync, before = await kb.runs.records(await kb.sources.ids("docs"))
            assert (sync.run, sync.mode, sync.state, before.run) == (number, "sync", "completed", crawl.run)
            assert sync == await kb.runs.get(number)
            assert (sync.started_at, sync.documents) == (clock(), DocumentCounts(uploaded=3))
            [listed, _] = await kb.runs.records(None, below=None, limit=9)
            assert listed == sync
            found = await kb.runs.documents(number, limit=9)
            assert [(each.outcome, each.state, each.state_now) for each in found] == [
                ("uploaded", "processing", "processing"),
                ("uploaded", "active", "active"),
                ("uploaded", "active", "active"),
            ]
            titles = {view.url: view.title for view in await kb.pages.of_source("docs")}
            assert {each.url: each.remote_name for each in found} == titles
            clock.advance(minutes=31)
            [stuck] = (await synced(kb)).runs
            reported = await kb.runs.get(stuck)
            assert (reported.state, reported.documents) == ("partial", DocumentCounts(stuck=1))
            await synced(kb)
            tiny.delete("/b")
            clock.advance(hours=1)
            await kb.runs.refresh(["docs"])
            await synced(kb)
            later = await kb.runs.documents(number, limit=9)
            assert [each.state for each in later] == [each.state for each in found]  # as that sync left it
            now = {each.url: each.state_now for each in later}
            assert now == {tiny.at("/"): "active", tiny.at("/a"): "active", tiny.at("/b"): "deleted"}
            [gone] = await kb.runs.documents((await kb.runs.records(await kb.sources.ids("docs")))[0].run, limit=9)
            assert (gone.url, gone.outcome, gone.state) == (tiny.at("/b"), "deleted", "deleted")
            with pytest.raises(UsageError, match="is a sync"):
                await kb.runs.cancel(number)
            assert (await kb.sources.view("docs")).last_mode == "refresh"
            assert [run.mode for run in await kb.runs.records(await kb.sources.ids("docs"))].count("sync") == 4


async def test_R9_a_sync_that_failed_says_why_and_one_that_follows_a_schedule_says_only_of_what_it_did(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            server.script.outage = HttpFault(status=503, retry_after="7200")
            [number] = (await synced(kb)).runs
            failed = await kb.runs.get(number)
            assert (failed.state, failed.documents) == ("failed", DocumentCounts())
            assert "503" in str(failed.error)
            server.script.clear()
            clock.advance(hours=3)
            await kb.schedules.set_rule(await kb.sources.labelled(["docs"]), "every 6h")
            clock.advance(hours=7)
            for _ in range(3):
                assert await kb.schedules.keep(once=True)
                clock.advance(hours=7)
            syncs = [run for run in await kb.runs.records(await kb.sources.ids("docs")) if run.mode == "sync"]
            assert [(run.state, run.documents) for run in syncs] == [
                ("completed", DocumentCounts(uploaded=2)),
                ("failed", DocumentCounts()),
            ]


async def test_D17_F97_an_outage_leaves_search_alone_and_the_next_sync_does_the_rest(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b", "/c"], "/a": [], "/b": [], "/c": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            await synced(kb)
            tiny.edit("/a", add_paragraph="ebb and flow")
            clock.advance(days=1)
            await kb.runs.refresh(["docs"])
            server.script.outage = HttpFault(status=503, retry_after="7200")
            report = await synced(kb)
            assert report.state != "completed"
            assert "503" in str(report.error)
            assert await found(kb, word("/b")) == {tiny.at("/b")}
            server.script.clear()
            server.keys.clear()
            clock.advance(hours=3)
            report = await synced(kb)
            assert "sinks.team.api_key" in str(report.error)
            server.keys.add(KEY)
            clock.advance(hours=3)
            await synced(kb)
            clock.advance(hours=3)
            assert (await synced(kb)).state == "completed"
            assert texts(server) == held(store)


async def test_D16_D18_F98_F99_lost_answers_and_tampering_are_put_right_and_foreign_documents_stay(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b", "/c"], "/a": [], "/b": [], "/c": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            server.script.add(HttpFault(status=None, on="upload.bytes", done=True))
            await synced(kb)
            clock.advance(hours=1)
            await synced(kb)
            assert texts(server) == held(store)
            assert server.kinds["upload.bytes"] == 4

            digest_files = server.store(STORE)
            kept = {copy.remote_id for view in await kb.pages.of_source("docs") for copy in view.copies}
            assert kept == set(digest_files.documents)
            first, second, *_ = list(digest_files.documents.values())
            del digest_files.documents[first.name]
            server.hosted.add(digest_files, {"displayName": "twin", "customMetadata": second.metadata}, second.data)
            foreign = server.hosted.add(digest_files, {"displayName": "Minutes"}, b"of a meeting")
            report = await synced(kb, verify=True)
            assert report.audit is not None
            assert (report.audit.missing, report.audit.doubled, report.audit.foreign) == (1, 1, 1)
            assert foreign.name in digest_files.documents
            del digest_files.documents[foreign.name]
            assert texts(server) == held(store)


async def test_D4_D8_D10_D11_D21_what_is_missing_stays_three_runs_and_a_job_shows_its_documents(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b", "/c"], "/a": [], "/b": [], "/c": []})
    tiny.fail("/c", 403)
    with GeminiServer(clock) as server:
        server.script.add(HttpFault(status=400, on="upload.start"))  # one page is refused
        async with attached(store, server, clock) as kb:
            run = await kb.runs.crawl(tiny.url, name="docs")
            assert [(each.sink, each.states) for each in run.sinks or ()] == [("team", {"ready_for_indexing": 3})]
            assert reported(await synced(kb)) == {"uploaded": 2, "failed": 1}
            displayed = [(await kb.status.get()).sinks, (await kb.sources.view("docs")).sinks]
            assert [[each.states for each in sinks or ()] for sinks in displayed] == [[{"active": 2, "error": 1}]] * 2
            odd = [view.url for view in await kb.pages.of_source("docs", PageFilter(status=PageStatus.ERROR))]
            assert len(odd) == 2
            assert not texts(server).keys() & set(odd)
            assert "1 page was refused" in str(await kb.status.doctor())

            tiny.restore("/c")  # without content it is scraped again, with content uploaded again
            clock.advance(hours=2)
            await kb.runs.refresh(["docs"])
            assert reported(await synced(kb)) == {"uploaded": 2}
            assert texts(server) == held(store)
            assert len(texts(server)) == 4

            server.forget()
            before = {view.url: view.checked_at for view in await kb.pages.of_source("docs")}
            clock.advance(hours=1)
            await kb.runs.refresh(["docs"])
            await synced(kb)
            assert len(server.requests) == 0
            views = await kb.pages.of_source("docs")
            assert all(view.checked_at != before[view.url] and not view.missing_count for view in views)

            lay(tiny, {"/": ["/a", "/c"]})
            for missing in (1, 2, 3):
                clock.advance(hours=1)
                await kb.runs.refresh(["docs"])
                await synced(kb)
                assert (tiny.at("/b") in texts(server)) is (missing < 3), missing
            assert texts(server) == held(store)

            server.keys.clear()
            tiny.edit("/a", add_paragraph="neap")
            clock.advance(hours=1)
            await kb.runs.refresh(["docs"])
            failing_since = clock()
            for _ in range(2):
                await synced(kb)
                clock.advance(hours=1)
            [sink] = (await kb.status.get()).sinks
            assert (sink.states, sink.failing_since) == ({"active": 2, "ready_for_indexing": 1}, failing_since)
            [finding] = [each for each in await kb.status.doctor() if each.check == "sink team"]
            assert not finding.ok
            assert "sinks.team.api_key" in finding.detail
            assert "afresh sync --to team" in str(finding.fix)
            assert KEY not in repr((sink, finding))
