"""Pages in Gemini File Search: by the real SDK, and only what the server holds is believed."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import found, index_of
from tests.e2e.sites import lay, word
from tests.e2e.stores import STORE, attached, texts

from afresh.core.sync_views import SyncReport
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, GeminiServer, HttpFault, TinySite
from afresh.testing.gemini_hosted import FAILS, NEVER, after
from afresh.testing.gemini_server import KEY

pytest.importorskip("google.genai")


@pytest.fixture
def clock() -> FrozenClock:
    """The time that the knowledge base and the server share."""
    return FrozenClock()


async def synced(kb: KnowledgeBase, *, verify: bool = False) -> SyncReport:
    """What one sync did."""
    [report] = await kb.sync(verify=verify)
    return report


def told(report: SyncReport) -> dict[str, int]:
    """The numbers of a report that are not nought."""
    names = ("uploaded", "replaced", "deleted", "waiting", "failed", "stuck")
    return {name: number for name in names if (number := getattr(report, name))}


def held(store: Path) -> dict[str, str]:
    """The Markdown of every page that has content."""
    return {url: str(each.markdown) for url, each in index_of(store).items()}


@pytest.mark.parametrize("order", ["delete_first", "upload_first"])
async def test_documents_follow_the_pages_and_a_quiet_sync_asks_nothing(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock, order: str
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock, order=order) as kb:
            await kb.crawl(tiny.url, name="docs")
            assert len(server.requests) == 0  # a crawl calls no store
            report = await synced(kb)
            assert (report.state, told(report)) == ("completed", {"uploaded": 3})
            assert texts(server) == held(store)
            assert {each.values["afresh_source"] for each in server.documents} == {"docs"}

            server.forget()
            assert told(await synced(kb)) == {}
            assert server.kinds["upload.start"] == 0

            tiny.edit("/a", add_paragraph="the tide turns at noon")
            tiny.delete("/b")
            lay(tiny, {"/": ["/a", "/b", "/c"], "/c": []})
            clock.advance(days=1)
            await kb.refresh(["docs"])
            server.forget()
            report = await synced(kb)
            assert told(report) == {"uploaded": 1, "replaced": 2, "deleted": 1}
            assert (server.kinds["upload.start"], server.kinds["documents.delete"]) == (3, 3)
            assert texts(server) == held(store)
            assert KEY not in repr(report)


async def test_F94_F95_pages_are_active_when_Gemini_says_so_and_no_sooner(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    with GeminiServer(clock) as server:
        server.hosted.fates = [NEVER, FAILS, after(90, failing=5)]
        async with attached(store, server, clock) as kb:
            await kb.crawl(tiny.url, name="docs")
            assert {view.status for view in await kb.pages("docs")} == {"ready_for_indexing"}
            report = await synced(kb)
            assert (report.uploaded, report.verified) == (3, 0)
            assert {view.status for view in await kb.pages("docs")} <= {"processing", "error"}
            for _ in range(12):
                clock.advance(minutes=10)
                await synced(kb)
            stuck = [each for each in await kb.sync() if each.stuck]
            assert [each.stuck for each in stuck] == [1]
            states = sorted(view.status for view in await kb.pages("docs"))
            assert states == ["active", "active", "processing"]
            assert len(server.documents) == 3  # the one that failed was replaced, the one that hangs was not
            assert server.kinds["upload.start"] == 4
            assert texts(server) == held(store)


async def test_F97_an_outage_leaves_search_alone_and_the_next_sync_does_the_rest(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b", "/c"], "/a": [], "/b": [], "/c": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock) as kb:
            await kb.crawl(tiny.url, name="docs")
            await synced(kb)
            tiny.edit("/a", add_paragraph="ebb and flow")
            clock.advance(days=1)
            await kb.refresh(["docs"])
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


async def test_F98_F99_lost_answers_and_tampering_are_put_right_and_foreign_documents_stay(
    tiny: TinySite, store: Path, work: type[InProcess], clock: FrozenClock
) -> None:
    lay(tiny, {"/": ["/a", "/b", "/c"], "/a": [], "/b": [], "/c": []})
    with GeminiServer(clock) as server:
        async with attached(store, server, clock) as kb:
            await kb.crawl(tiny.url, name="docs")
            server.script.add(HttpFault(status=None, on="upload.bytes", done=True))
            await synced(kb)
            clock.advance(hours=1)
            await synced(kb)
            assert texts(server) == held(store)
            assert server.kinds["upload.bytes"] == 4

            shelf = server.store(STORE)
            first, second, *_ = list(shelf.documents.values())
            del shelf.documents[first.name]
            server.hosted.add(shelf, {"displayName": "twin", "customMetadata": second.metadata}, second.data)
            foreign = server.hosted.add(shelf, {"displayName": "Minutes"}, b"of a meeting")
            report = await synced(kb, verify=True)
            assert report.audit is not None
            assert (report.audit.missing, report.audit.doubled, report.audit.foreign) == (1, 1, 1)
            assert foreign.name in shelf.documents
            del shelf.documents[foreign.name]
            assert texts(server) == held(store)
