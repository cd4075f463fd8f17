"""Embeddings within runs: only new text costs anything, and an embedder in trouble loses nothing."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened, rows
from tests.e2e.program import Program
from tests.e2e.remote import PickyServer, flags_for, paid
from tests.e2e.sites import lay, looks, page, star, word
from tests.fakes.embedding_server import Status

from afresh.events import Event, Notice
from afresh.kb import KnowledgeBase
from afresh.models import endpoint
from afresh.store import repository
from afresh.testing import EmbedderFault, TinySite

FOREVER = 1_000  # requests
NO_WAY: dict[str, tuple[EmbedderFault | Status, str]] = {
    "500 for ever": (Status(500), "answered 500"),
    "a key that is refused": (Status(401), "check embedding.api_key"),
    "429, come back in an hour": (Status(429, {"retry_after": "3600"}), "answered 429"),
    "a hang": (EmbedderFault.HANG, "no answer"),
}
GARBAGE: dict[str, tuple[EmbedderFault | Status, str]] = {
    "no numbers": (EmbedderFault.NAN, "not numbers"),
    "fewer vectors than texts": (EmbedderFault.FEWER, "vectors for"),
    "another dimension": (EmbedderFault.WIDER, "17 numbers"),
    "413 whatever the size": (Status(413), "too large"),
}
TROUBLES = NO_WAY | GARBAGE


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PickyServer]:
    """An embedding API on loopback, whose client loses no time between tries."""
    monkeypatch.setattr(endpoint, "FIRST_WAIT_SECONDS", 0.0)
    with PickyServer() as server:
        yield server


@pytest.fixture
def flags(server: PickyServer) -> dict[str, object]:
    """The settings that lead to it."""
    return flags_for(server, timeout_seconds=0.5)


def etags(store: Path) -> dict[str, str]:
    return dict(rows(store, "select url, etag from pages"))


# ---- trouble with the embedder ----------------------------------------------------------------


@pytest.mark.parametrize("name", TROUBLES)
async def test_G13_F93_an_embedder_in_problems_keeps_old_content_and_validators_and_the_next_run_completes(
    name: str, server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    due, reported = TROUBLES[name]
    lay(tiny, star(4))
    async with opened(store, flags) as kb:
        first = await kb.runs.crawl(tiny.url, name="docs")
        assert (first.state, first.chunks_embedded, first.chunks_reused) == ("completed", 5, 0)
        before, index = etags(store), index_of(store)
        for path in ("/p1", "/p2"):
            tiny.put(path, page(path, ["/"], f"Quite other words: n{word(path)}."))
        server.script = [due] * FOREVER
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, counts(report)) == ("partial", {"not_modified": 3, "failed": 2})
        assert "2 pages could not be embedded and will be tried again" in (report.error or "")
        assert "127.0.0.1" in (report.error or "") or "openai/told" in (report.error or "")
        assert reported in (report.error or "")
        if name in NO_WAY:
            assert max(looks(tiny).values()) == 1, "pages are not fetched again for an embedder that is down"
        assert (etags(store), index_of(store)) == (before, index)
        assert tiny.at("/p1") in await found(kb, word("/p1"))
        assert_sound(store)
        server.script = []
        tiny.requests.clear()
        (healed,) = await kb.runs.refresh(["docs"])
        assert (healed.state, counts(healed)) == ("completed", {"not_modified": 3, "changed": 2})
        assert healed.chunks_embedded == 2
        assert tiny.requests.count("/p1", status=200) == 1
        assert tiny.at("/p1") in await found(kb, "n" + word("/p1"))
    assert_sound(store)


async def test_F93_a_first_crawl_with_a_dead_embedder_fails_with_the_fix_and_leaves_nothing_half_indexed(
    server: PickyServer, store: Path, tiny: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tiny, star(4))
    server.script = [Status(401)] * FOREVER
    for name, value in flags_for(server).items():
        monkeypatch.setenv(f"AFRESH_{name.upper().replace('.', '__')}", str(value))
    program = Program(store, in_process=True)
    ended = program.run("crawl", tiny.url, "--name", "docs", "--json")
    assert (ended.code, ended.report["state"]) == (1, "failed")
    assert ended.report["error"].startswith("the start page was not embedded: 127.0.0.1 answered 401")
    assert "check embedding.api_key" in ended.report["error"]
    assert index_of(store) == {}
    assert rows(store, "select count(*) from chunks") == [(0,)]
    server.script = []
    again = program.run("crawl", tiny.url, "--name", "docs", "--json")
    assert (again.code, again.report["state"], again.report["new"]) == (0, "completed", 5)
    tiny.put("/p1", page("/p1", ["/"], "Quite other words."))
    server.script = [Status(401)] * FOREVER
    partial = program.run("refresh", "docs", "--json")
    assert (partial.code, partial.report["state"]) == (1, "partial")
    assert "embedding.api_key" in partial.report["error"]
    assert_sound(store)


async def test_F93_429_and_413_that_pass_are_waited_for_and_split_within_the_run(
    server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(8))
    server.most_texts = 1
    server.script = [Status(429, {"retry_after": "0"}), Status(503)]
    async with opened(store, flags) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, report.chunks_embedded) == ("completed", 9)
    assert_sound(store)


async def test_F93_one_bad_text_fails_only_its_page(
    server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(12))
    server.dislikes = word("/p7")
    async with opened(store, flags) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
        assert (report.state, counts(report)) == ("partial", {"new": 12, "failed": 1})
        assert "1 page could not be embedded" in (report.error or "")
        assert set(index_of(store)) == {tiny.at(path) for path in tiny.paths if path != "/p7"}
        assert_sound(store)
        server.dislikes = "\0"
        (healed,) = await kb.runs.refresh(["docs"])
        assert (healed.state, healed.new, healed.chunks_embedded) == ("completed", 1, 1)


async def test_F93_a_budget_leaves_the_rest_to_the_next_runs_and_no_text_is_sent_twice(
    server: PickyServer, store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(10))
    async with opened(store, flags_for(server, budget_per_run=4)) as kb:
        reports = [await kb.runs.crawl(tiny.url, name="docs")]
        while reports[-1].state == "partial" and len(reports) < 10:
            assert "embedding.budget_per_run" in (reports[-1].error or "")
            assert_sound(store)
            tiny.requests.clear()
            reports += await kb.runs.refresh(["docs"])
            assert max(looks(tiny).values()) == 1
    assert [(each.state, each.chunks_embedded) for each in reports] == [
        ("partial", 4),
        ("partial", 4),
        ("completed", 3),
    ]
    assert set(paid(server).values()) == {1}
    assert len(index_of(store)) == 11


async def test_P12_F93_a_run_that_is_stopped_while_the_embedder_hangs_goes_on_with_the_next_command(
    server: PickyServer, store: Path, tiny: TinySite, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.worker.STOP_GRACE_SECONDS", 0.1)
    lay(tiny, star(3))
    async with opened(store, flags_for(server)) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.put("/p1", page("/p1", ["/"], "Quite other words."))
        tiny.put("/p2", page("/p2", ["/"], "And other words here."))
        server.script = [EmbedderFault.HANG]
        asked, run = len(server.asked), asyncio.create_task(kb.runs.refresh(["docs"]))
        while len(server.asked) == asked:  # noqa: ASYNC110 - the server has a thread of its own
            await asyncio.sleep(0.01)
        kb.stop()
        (report,) = await run
        assert report.state == "cancelled"
    async with opened(store, flags_for(server)) as kb:
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.changed) == ("completed", 2)
    assert_sound(store)


async def test_F14_F93_a_store_that_is_locked_while_vectors_are_kept_is_waited_for(
    server: PickyServer,
    flags: dict[str, object],
    store: Path,
    tiny: TinySite,
    work: type[InProcess],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The patience of a run holds for vectors too."""
    monkeypatch.setattr("afresh.app.TRY_SECONDS", 0.01)
    monkeypatch.setattr(repository, "REPORT_BUSY_SECONDS", 0.0)
    lay(tiny, star(2))
    locks: list[sqlite3.Connection] = []
    received: list[str] = []
    answer = server._too_large

    def locking(texts: tuple[str, ...]) -> Status | None:
        if not locks:
            locks.append(sqlite3.connect(store, isolation_level=None, check_same_thread=False))
            locks[0].execute("begin immediate")
        return answer(texts)

    def receive(event: Event) -> None:
        received.append(event.text if isinstance(event, Notice) else "")
        if received[-1] == repository.BUSY:
            locks[0].close()

    monkeypatch.setattr(server, "_too_large", locking)
    async with opened(store, flags) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs", listener=receive)
    assert repository.BUSY in received
    assert (report.state, report.chunks_embedded) == ("completed", 3)


# ---- only new text costs anything -------------------------------------------------------------


def article(links: Sequence[str], topic: str) -> str:
    """A page that does not say where it or others stand, so that it can move."""
    text = f"All there is to say about {topic}, in one paragraph of its own."
    items = "".join(f'<li><a href="{link}">another one</a></li>' for link in links)
    main = f"<main><h1>An article</h1><p>{text}</p><ul>{items}</ul></main>"
    return f"<!doctype html><html lang=en><title>An article</title><body>{main}</body></html>"


def shelve(site: TinySite, prefix: str, number: int = 12) -> None:
    """Articles below a prefix that link to one another."""
    site.put(f"{prefix}/", article([f"{prefix}/a{each}" for each in range(number)], "everything"))
    for each in range(number):
        site.put(f"{prefix}/a{each}", article([f"{prefix}/", f"{prefix}/a{(each + 1) % number}"], word(f"/{each}")))


async def test_F46_another_etag_for_the_same_content_embeds_nothing(
    server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(3))
    async with opened(store, flags) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        asked = len(server.asked)
        for path in tiny.paths:
            tiny.put(path, tiny.read(path).replace("<body>", "<body data-build=2>"))
        (report,) = await kb.runs.refresh(["docs"])
        assert counts(report) == {"unchanged": 4}
        assert (report.chunks_embedded, len(server.asked)) == (0, asked)


async def test_F36_a_page_that_is_deleted_and_found_again_reuses_its_vectors(
    server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(3))
    async with opened(store, flags) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.delete("/p1")
        (report,) = await kb.runs.refresh(["docs"])
        assert report.deleted == 1
        tiny.restore("/p1")
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.new, report.chunks_embedded, report.chunks_reused) == (1, 0, 1)
    assert set(paid(server).values()) == {1}
    assert_sound(store)


async def test_P7_pages_that_move_to_another_prefix_embed_nothing_whether_by_301_or_by_a_new_crawl(
    server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    tiny.put("/", article(["/old/"], "the way in"))
    shelve(tiny, "/old")
    async with opened(store, flags) as kb:
        first = await kb.runs.crawl(tiny.url, name="docs")
        assert (first.new, first.chunks_embedded) == (14, 14)
        shelve(tiny, "/new/place")
        for path in [each for each in tiny.paths if each.startswith("/old/")]:
            tiny.move(path, path.replace("/old/", "/new/place/"))
        tiny.put("/", article(["/new/place/"], "the way in"))
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.new, report.changed, report.chunks_embedded) == (0, 1, 0)
        if report.state == "needs_confirmation":
            report = await kb.runs.confirm(report.run)
        assert report.moved == 13
        assert {url.removeprefix(tiny.url).split("/")[0] for url in index_of(store)} == {"", "new"}
        assert all("/old/" not in text for held in index_of(store).values() for text in held.chunks)
        again = await kb.runs.crawl(tiny.at("/new/place/"), name="again")
        assert (again.new, again.chunks_embedded, again.chunks_reused) == (13, 0, 13)
    assert set(paid(server).values()) == {1}
    assert_sound(store)


async def test_P7_two_versions_of_the_same_documentation_share_their_vectors(
    server: PickyServer, flags: dict[str, object], store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    shelve(tiny, "/v1")
    shelve(tiny, "/v2")
    tiny.put("/v2/a3", article(["/v2/"], "something new"))
    async with opened(store, flags) as kb:
        await kb.runs.crawl(tiny.at("/v1/"), name="docs", version="1")
        second = await kb.runs.crawl(tiny.at("/v2/"), name="docs", version="2")
    assert (second.new, second.chunks_embedded, second.chunks_reused) == (13, 1, 12)
    assert_sound(store)


async def test_P7_one_edited_paragraph_on_each_of_ten_pages_embeds_at_most_two_chunks_a_page(
    kb: KnowledgeBase, site: TinySite, store: Path
) -> None:
    first = await kb.runs.crawl(site.url, name="docs")
    edited = [path for path in site.paths if path.count("/") == 3 and "private" not in path][:10]
    assert len(edited) == 10
    for path in edited:
        text = site.read(path)
        middle = text.index("</p>", text.index("<main") + len(text[text.index("<main") :]) // 2)
        site.put(path, f"{text[:middle]} This was added to one paragraph of {path}.{text[middle:]}")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.changed) == ("completed", 10)
    assert 10 <= report.chunks_embedded <= 20
    assert (
        first.chunks_embedded
        == rows(store, "select count(distinct text_hash) from vectors")[0][0] - report.chunks_embedded
    )
    (again,) = await kb.runs.refresh(["docs"])
    assert (again.chunks_embedded, again.chunks_reused) == (0, 0)
    assert_sound(store)


# ---- with and without vectors -----------------------------------------------------------------


async def test_a_store_without_vectors_answers_by_words_and_reindex_completes_it(
    store: Path, tiny: TinySite, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.search.model_provider.ParserPool", InProcess)
    lay(tiny, star(5))
    async with opened(store, {"embedding.provider": "none"}) as kb:
        first = await kb.runs.crawl(tiny.url, name="docs")
        assert (first.state, first.chunks_embedded, first.chunks_reused) == ("completed", 0, 0)
        assert rows(store, "select count(*) from vectors") == [(0,)]
    async with opened(store) as kb:
        tiny.put("/p1", page("/p1", ["/"], "Quite other words."))
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.changed) == ("completed", 1)
        answer = await kb.search.search("quite other words", within=["docs"])
        assert answer.hits[0].url == tiny.at("/p1")
        assert_sound(store)
        (made,) = await kb.search.reindex()
        assert (made.state, made.left) == ("completed", 0)
        assert made.serving == made.model
        assert rows(store, "select count(*) from models where serving = 1") == [(1,)]
        answer = await kb.search.search("quite other words", within=["docs"], mode="vector")
        assert answer.hits[0].url == tiny.at("/p1")
    assert_sound(store)
