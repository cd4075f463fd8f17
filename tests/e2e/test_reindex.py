"""`afresh reindex`: another model or another way of cutting, from stored text, while the old one answers."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened, rows
from tests.e2e.program import Program
from tests.e2e.sites import lay, looks, page, star, word
from tests.fakes.embedding_server import EmbeddingServer, Status

from afresh.events import Event, Listener, MaintenanceProgress
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Chunk, Document
from afresh.model.reports import ReindexReport
from afresh.store.vectors import VectorRepository
from afresh.testing import TinySite
from afresh.text.normalize import text_hash

PAGES = 12
DIMENSION = 256
FAST = "local/fast"
MODELS = "select name, serving from models order by serving desc"


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch, work: type[InProcess]) -> None:
    """Cutting anew in this process too."""
    monkeypatch.setattr("afresh.search.model_provider.ParserPool", InProcess)


@pytest.fixture
def api() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimension=DIMENSION) as server:
        yield server


def name(api: EmbeddingServer, model: str = "small") -> str:
    """The fingerprint of a model of the server."""
    return f"openai/{model}~{urlsplit(api.base_url).netloc}"


def by(api: EmbeddingServer, model: str = "small", **more: object) -> dict[str, object]:
    """Settings that name a model of the server."""
    own = {"provider": "openai", "model": model, "base_url": api.base_url, **more}
    return {f"embedding.{key}": value for key, value in own.items()}


def times(api: EmbeddingServer) -> Counter[str]:
    """How often each text was embedded."""
    return Counter(text for each in api.asked for text in each.texts)


async def by_meaning(kb: KnowledgeBase, query: str = "This page speaks of little") -> set[str]:
    answer = await kb.search.search(query, mode="vector", limit=100)
    return {hit.url for hit in answer.hits}


async def crawled(store: Path, tiny: TinySite, flags: dict[str, object] | None = None) -> None:
    lay(tiny, star(PAGES))
    async with opened(store, flags) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
    tiny.requests.clear()


def serving(store: Path) -> str:
    [(name,)] = rows(store, "select name from models where serving = 1")
    return str(name)


async def test_F93_another_model_takes_over_without_a_fetch(store: Path, tiny: TinySite, api: EmbeddingServer) -> None:
    await crawled(store, tiny)
    async with opened(store, by(api)) as kb:
        before = await kb.search.search("speaks of little", mode="vector")
        assert len(before.hits) == 10
        assert f"{name(api)} is configured, but searches still use local/fast" in before.notes[0]
        assert api.asked == [], "the old model answers until the switch"
        events: list[Event] = []
        [report] = await kb.search.reindex(listener=events.append)
        assert (report.state, report.left, report.error, report.source) == ("completed", 0, None, None)
        assert report.serving == report.model == name(api, "small")
        assert (report.chunks_embedded, report.pages_cut) == (PAGES + 1, 0)
        reported = [event for event in events if isinstance(event, MaintenanceProgress)]
        assert (reported[-1].what, reported[-1].done, reported[-1].of) == ("chunks", PAGES + 1, PAGES + 1)
        assert len(await by_meaning(kb)) == PAGES + 1
        assert (await kb.search.search("speaks", mode="vector")).notes == ()
        [again] = await kb.search.reindex()
        assert (again.state, again.chunks_embedded, again.chunks_reused) == ("completed", 0, 0)
    assert set(times(api).values()) == {1} | {times(api)["speaks"]}
    assert looks(tiny) == {}
    assert rows(store, MODELS) == [(name(api, "small"), 1)]
    assert rows(store, "select count(*) from vectors v join models m on m.id = v.model_id") == [(PAGES + 1,)]
    assert_sound(store)


async def test_the_old_index_answers_while_the_new_one_is_made(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    """Between two remote models too: the one that answers is asked under its own name."""
    await crawled(store, tiny, by(api, "small"))
    seen: list[tuple[int, str]] = []
    async with opened(store, by(api, "large")) as kb, opened(store, by(api, "large")) as other:
        api.asked.clear()
        asking: list[asyncio.Task[None]] = []
        answered = asyncio.Event()

        async def ask() -> None:
            seen.append((len(await by_meaning(other)), serving(store)))
            answered.set()

        def receive(event: Event) -> None:
            if isinstance(event, MaintenanceProgress) and not asking:
                asking.append(asyncio.create_task(ask()))

        await switching_after(answered, kb, receive)
        assert len(await by_meaning(kb)) == len(await by_meaning(other)) == PAGES + 1
    assert seen == [(PAGES + 1, name(api, "small"))]
    questions = [each.body["model"] for each in api.asked if "This page speaks of little" in each.texts]
    assert questions[0] == "small"
    assert questions[-1] == "large"
    assert serving(store) == name(api, "large")


async def test_a_search_that_cannot_reach_the_old_model_goes_by_words_and_says_so(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny, by(api))
    api.asked.clear()
    async with opened(store) as kb:
        answer = await kb.search.search(word("/p3"))
        assert [hit.url for hit in answer.hits] == [tiny.at("/p3")]
        assert answer.notes == (
            f"keyword search only: the index was made by {name(api)}, which is no longer configured: "
            "run `afresh reindex`",
        )
        assert await by_meaning(kb) == set(), "vectors of two models are never compared"
        [report] = await kb.search.reindex()
        assert report.state == "completed"
        assert len(await by_meaning(kb)) == PAGES + 1
    assert api.asked == []
    assert serving(store).startswith(FAST)


async def test_F93_a_store_of_the_former_built_in_model_is_embedded_again(store: Path, tiny: TinySite) -> None:
    await crawled(store, tiny)
    with closing(sqlite3.connect(store)) as base, base:
        base.execute("update models set name = 'local/wordllama-256/1'")
    async with opened(store) as kb:
        answer = await kb.search.search(word("/p3"))
        assert [hit.url for hit in answer.hits] == [tiny.at("/p3")]
        assert "the index was made by local/wordllama-256/1" in answer.notes[0]
        assert answer.notes[0].endswith("run `afresh reindex`")
        [report] = await kb.search.reindex()
        assert (report.state, report.chunks_embedded) == ("completed", PAGES + 1)
        assert len(await by_meaning(kb)) == PAGES + 1
    assert looks(tiny) == {}
    assert serving(store).startswith(FAST)


async def test_a_refresh_beside_it_gives_new_text_the_model_that_answers_and_the_switch_waits_for_it(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny)
    async with opened(store, by(api)) as kb, opened(store) as other:
        tiny.put("/p3", page("/p3", ["/"], "Zebras graze here."))
        lay(tiny, {"/": ["/late", *star(PAGES)["/"]], "/late": ["/"]})
        came: list[asyncio.Task[object]] = []
        done = asyncio.Event()

        async def refresh() -> None:
            await other.runs.refresh(["docs"])
            done.set()

        def receive(event: Event) -> None:
            if isinstance(event, MaintenanceProgress) and not came:
                came.append(asyncio.create_task(refresh()))

        report = await switching_after(done, kb, receive)
        assert (report.state, report.serving) == ("completed", name(api, "small"))
        assert report.chunks_embedded == PAGES + 1 + 3, "the root, an edited page and a new one"
        await asyncio.gather(*came)
        found = await kb.search.search("Zebras graze", mode="vector", limit=1)
        assert [hit.url for hit in found.hits] == [tiny.at("/p3")]
        assert len(await by_meaning(kb, "This page speaks of little, but zebras graze here")) == PAGES + 2
    assert {times(api)[text] for text in times(api) if "speaks" in text or "graze here" in text} == {1}
    assert_sound(store)


async def switching_after(until: asyncio.Event, kb: KnowledgeBase, listener: Listener) -> ReindexReport:
    """A reindex that asks for its switch only when something else is over."""
    serve = VectorRepository.serve

    async def later(store: VectorRepository, model: str) -> bool:
        await until.wait()
        return await serve(store, model)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VectorRepository, "serve", later)
        [report] = await kb.search.reindex(listener=listener)
    return report


async def test_a_run_that_outlives_the_switch_says_what_to_do(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny)
    tiny.put("/p3", page("/p3", ["/"], "Zebras graze here."))
    gate = tiny.hold("/p3")
    async with opened(store) as kb, opened(store, by(api)) as other:
        run = asyncio.create_task(kb.runs.refresh(["docs"]))
        await asyncio.to_thread(gate.wait)
        assert [report.state for report in await other.search.reindex()] == ["completed"]
        tiny.release("/p3")
        [report] = await run
        assert any(f"but search uses {name(api)}: run `afresh reindex`" in note for note in report.notes)
        assert [hit.url for hit in (await other.search.search("zebras graze", mode="text")).hits] == [tiny.at("/p3")]
        assert (await other.status.get()).unembedded == 1
        [report2] = await other.search.reindex()
        assert (report2.state, report2.chunks_embedded) == ("completed", 1)
        assert tiny.at("/p3") in await by_meaning(other, "Zebras graze")
    assert rows(store, MODELS) == [(name(api, "small"), 1)]


async def test_one_source_alone_says_that_others_miss_vectors(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny)
    with TinySite() as second:
        lay(second, star(2))
        async with opened(store, by(api)) as kb:
            second.put("/", page("Other", [], "Giraffes look down."))
            async with opened(store) as before:
                await before.runs.crawl(second.url, name="other")
            [report] = await kb.search.reindex(["docs"])
            assert (report.source, report.state, report.left) == ("docs", "partial", 0)
            assert report.notes == (
                "other sources have no embeddings of this model: run `afresh reindex` without a name",
            )
            assert report.serving is not None
            assert report.serving.startswith(FAST)
            every = await by_meaning(kb, "This page speaks of little, but giraffes look down")
            assert len(every) == PAGES + 2, "the old index answers"
            [report] = await kb.search.reindex(["other"])
            assert (report.state, report.serving, report.chunks_embedded) == ("completed", name(api, "small"), 1)


async def test_an_empty_store_has_nothing_to_make_again(store: Path, api: EmbeddingServer) -> None:
    async with opened(store, by(api)) as kb:
        [report] = await kb.search.reindex()
        assert (report.state, report.notes, report.chunks_embedded) == ("completed", (), 0)
    assert api.asked == []


async def test_F93_a_model_that_fails_leaves_the_old_index_and_goes_on_later(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny)
    flags = by(api, batch_size=4)
    async with opened(store, flags) as kb:
        api.script = [Status(401)] * 99
        [report] = await kb.search.reindex()
        assert report.state == "failed"
        assert "embedding.api_key" in (report.error or "")
        assert len(await by_meaning(kb)) == PAGES + 1
        api.script = []
        [report] = await kb.search.reindex()
        assert (report.state, report.chunks_embedded) == ("completed", PAGES + 1)


async def test_F93_vectors_of_another_dimension_are_refused_midway(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny, by(api))
    api.dimension = 24
    tiny.put("/p3", page("/p3", ["/"], "Zebras graze here."))
    async with opened(store, by(api)) as kb:
        [report] = await kb.runs.refresh(["docs"])
        assert report.state != "completed"
        assert [hit.url for hit in (await kb.search.search(word("/p3"), mode="text")).hits] == [tiny.at("/p3")]
    assert rows(store, "select distinct length(vector) from vectors") == [(DIMENSION,)]


async def test_a_stop_is_received_and_nothing_is_embedded_twice(
    store: Path, tiny: TinySite, api: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.search.reindex.MIN_BATCH_CHUNKS", 4)
    monkeypatch.setattr("afresh.search.reindex.MAX_BATCH_CHUNKS", 4)
    await crawled(store, tiny)
    async with opened(store, by(api)) as kb:

        def stop(event: Event) -> None:
            if isinstance(event, MaintenanceProgress):
                kb.stop()

        [report] = await kb.search.reindex(listener=stop)
        assert (report.state, report.chunks_embedded, report.left) == ("partial", 4, PAGES + 1 - 4)
        assert (report.serving or "").startswith(FAST)
    async with opened(store, by(api)) as kb:
        assert (await kb.status.get()).model == report.serving
        [report] = await kb.search.reindex()
        assert (report.state, report.chunks_embedded) == ("completed", PAGES + 1 - 4)
    assert set(times(api).values()) == {1}


@pytest.mark.parametrize("point", ["reindex.embedded", "embed.made", "embed.kept", "sql.commit"])
async def test_F04_a_reindex_killed_at_any_point_goes_on_where_it_was(
    point: str, store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny)
    program = Program(store, in_process=True)
    program.file.write_text(
        program.file.read_text() + f"embedding: {{provider: openai, model: small, base_url: '{api.base_url}'}}\n"
    )
    died = program.run("reindex", "--json", failpoints=f"{point}=kill")
    assert died.code == -9, died
    async with opened(store) as kb:
        assert len(await by_meaning(kb)) == PAGES + 1, "the old index answers"
    last = program.run("reindex", "--json")
    assert (last.code, last.report["state"], last.report["serving"]) == (0, "completed", name(api, "small"))
    twice = [text for text, number in times(api).items() if number > 1]
    assert max(times(api).values()) <= 2
    assert len(twice) <= (PAGES + 1 if point in ("embed.made", "sql.commit") else 0)
    assert_sound(store)


# ---- another way of cutting


def by_sentence(document: Document) -> list[Chunk]:
    parts = [part.strip() for part in document.markdown.replace("\n", " ").split(".") if part.strip()]
    return [Chunk(content=part, text_hash=text_hash("\n\n" + part)) for part in parts]


@pytest.fixture
def other_chunker(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the chunker another one when it is called."""

    def change() -> None:
        for place in ("afresh.model.fetch.CHUNKER", "afresh.crawl.bounds.CHUNKER", "afresh.search.reindex.CHUNKER"):
            monkeypatch.setattr(place, "sentences-1")
        monkeypatch.setattr("afresh.extract.chunk.markdown.chunk", by_sentence)

    return change


async def test_another_chunker_cuts_stored_text_again_without_a_fetch(
    store: Path, tiny: TinySite, other_chunker: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tiny, star(PAGES))
    tiny.put("/p3", page("/p3", ["/"], "Zebras graze here. Lions watch them. Nobody sleeps."))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        before = rows(store, "select count(*) from chunks")[0][0]
        tiny.requests.clear()
        other_chunker()
        monkeypatch.setattr("afresh.search.reindex.BATCH_PAGES", 5)
        seen: list[set[str]] = []

        async def ask() -> None:
            seen.append({hit.url for hit in (await kb.search.search("speaks zebras lions", limit=100)).hits})

        tasks: list[asyncio.Task[None]] = []

        def receive(event: Event) -> None:
            if isinstance(event, MaintenanceProgress):
                tasks.append(asyncio.create_task(ask()))

        [report] = await kb.search.reindex(listener=receive)
        await asyncio.gather(*tasks)
        assert (report.state, report.pages_cut, report.left) == ("completed", PAGES + 1, 0)
        assert rows(store, "select count(*) from chunks")[0][0] > before
        assert [len(urls) for urls in seen] == [PAGES + 1] * len(seen)
        assert (await kb.search.search("lions watch", limit=1)).hits[0].url == tiny.at("/p3")
        assert (await kb.status.get()).unembedded == 0
        assert looks(tiny) == {}
        [again] = await kb.search.reindex()
        assert (again.state, again.pages_cut, again.chunks_embedded) == ("completed", 0, 0)
        [refreshed] = await kb.runs.refresh(["docs"])
        assert refreshed.not_modified == PAGES + 1, "no page is read again for it"
    assert_sound(store)


async def test_a_stop_while_pages_are_cut_leaves_the_rest_as_it_was(
    store: Path, tiny: TinySite, other_chunker: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await crawled(store, tiny)
    other_chunker()
    monkeypatch.setattr("afresh.search.reindex.BATCH_PAGES", 5)
    async with opened(store) as kb:

        def stop(event: Event) -> None:
            kb.stop()

        [report] = await kb.search.reindex(listener=stop)
        assert (report.state, report.pages_cut, report.left) == ("partial", 5, PAGES + 1 - 5)
        assert len((await kb.search.search("speaks", limit=100)).hits) == PAGES + 1
    async with opened(store) as kb:
        [report] = await kb.search.reindex()
        assert (report.state, report.pages_cut, report.left) == ("completed", PAGES + 1 - 5, 0)
    assert_sound(store)


# ---- what is told


async def test_status_show_plan_and_doctor_say_which_model_answers_and_what_is_missing(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny)
    async with opened(store) as kb:
        status, view = await kb.status.get(), await kb.sources.view("docs")
        assert (status.model, status.unembedded) == (status.wanted_model, 0)
        assert (view.model, view.unembedded) == (status.model, 0)
        assert not any("answers" in note for note in (await kb.sources.plan("docs")).notes)
        [finding] = [each for each in await kb.status.doctor() if each.check == "vectors"]
        assert (finding.ok, finding.fix) == (True, None)
    async with opened(store, {"embedding.provider": "none"}) as kb:
        tiny.put("/p3", page("/p3", ["/"], "Zebras graze here."))
        await kb.runs.refresh(["docs"])
        assert (await kb.status.get()).wanted_model is None
        assert all(each.ok for each in await kb.status.doctor() if each.check == "vectors")
    async with opened(store) as kb:
        assert (await kb.status.get()).unembedded == (await kb.sources.view("docs")).unembedded == 1
        [finding] = [each for each in await kb.status.doctor() if each.check == "vectors"]
        assert not finding.ok
        assert finding.detail.startswith("1 passage has no vector of local/fast")
        assert "`afresh reindex`" in (finding.fix or "")
    async with opened(store, by(api)) as kb:
        status = await kb.status.get()
        assert (status.model or "").startswith(FAST)
        assert status.wanted_model == name(api, "small")
        assert f"{name(api)} is set, but searches use local/fast" in (await kb.sources.plan("docs")).notes[-1]
        [finding] = [each for each in await kb.status.doctor() if each.check == "vectors"]
        assert f"but {name(api)} is configured" in finding.detail
        assert "`afresh reindex`" in (finding.fix or "")
    assert api.asked == []


async def test_F93_questions_of_another_length_are_answered_by_words_and_say_so(
    store: Path, tiny: TinySite, api: EmbeddingServer
) -> None:
    await crawled(store, tiny, by(api))
    api.dimension = 2 * DIMENSION
    async with opened(store, by(api)) as kb:
        answer = await kb.search.search("This page speaks of little")
        assert answer.hits
        assert f"{2 * DIMENSION} numbers now, but the stored vectors have {DIMENSION}" in answer.notes[-1]


async def test_text_that_lacks_vectors_gets_them_in_the_next_run(store: Path, tiny: TinySite) -> None:
    await crawled(store, tiny)
    tiny.put("/p3", page("/p3", ["/"], "Zebras graze here."))
    async with opened(store, {"embedding.provider": "none"}) as kb:
        await kb.runs.refresh(["docs"])
    async with opened(store) as kb:
        assert (await kb.status.get()).unembedded == 1
        [report] = await kb.runs.refresh(["docs"])
        assert (report.state, report.changed, report.chunks_embedded) == ("completed", 0, 1)
        assert (await kb.status.get()).unembedded == 0
    assert_sound(store)
