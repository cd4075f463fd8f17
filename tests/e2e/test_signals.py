"""`storage.body: none`: no body is ever on disk, pages are found all the same, what needs text says so."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened, rows, settings
from tests.e2e.sites import looks
from tests.fakes.embedding_server import EmbeddingServer

from afresh.errors import UsageError
from afresh.extract import extract
from afresh.model.fetch import Body
from afresh.ops.logging import configure_logging
from afresh.search.query import signals
from afresh.search.stemming import words_in
from afresh.testing import TinySite

NONE: dict[str, object] = {"storage.body": "none"}
EDITED = "/guide/retries/"


def threes(words: Iterable[str]) -> set[str]:
    listed = list(words)
    return {" ".join(three) for three in zip(listed, listed[1:], listed[2:], strict=False) if len(set(three)) > 1}


def message_by(site: TinySite) -> set[str]:
    """Three words in a row of every page, but those of titles, link texts and addresses."""
    message: set[str] = set()
    allowed: set[str] = set()
    for path in site.paths:
        body = Body(data=site.read(path).encode(), url=site.at(path), media_type="text/html")
        document = extract(body)
        message |= threes(words_in(document.markdown))
        for text in (document.title, *(each for link in document.links for each in (link.url, link.text))):
            allowed |= threes(words_in(text))
    return message - allowed


def on_disk(folder: Path) -> str:
    """Everything that lies beside the store, in lower case and with single blanks."""
    data = b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    return re.sub(r"[\s\"',.:;()`*_#-]+", " ", data.decode("utf-8", "replace").lower())


def found_of(message: set[str], folder: Path) -> set[str]:
    """Those of some three words in a row that stand there with nothing but blanks and marks between them."""
    found: set[str] = set()
    for part in re.split(r"[^\w ]+", on_disk(folder)):
        found |= threes(part.split())
    return found & message


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch, work: type[InProcess]) -> None:
    monkeypatch.setattr("afresh.search.model_provider.ParserPool", InProcess)


@pytest.fixture
def api() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimension=256) as server:
        yield server


def name(api: EmbeddingServer, model: str = "small") -> str:
    """The fingerprint of a model of the server."""
    return f"openai/{model}~{urlsplit(api.base_url).netloc}"


def by(api: EmbeddingServer) -> dict[str, object]:
    own = {"provider": "openai", "model": "small", "base_url": api.base_url}
    return {**NONE, **{f"embedding.{key}": value for key, value in own.items()}}


async def test_no_three_words_of_a_page_are_ever_on_disk(store: Path, site: TinySite, api: EmbeddingServer) -> None:
    """After a crawl, changes, a flagged page, another model and a reindex; the log tells all it can."""
    log = {**NONE, "log.file": str(store.parent / "afresh.log"), "log.level": "debug"}
    message = message_by(site)
    assert len(message) > 3000
    with configure_logging(settings(store, log), verbose=2):
        async with opened(store, log) as kb:
            await kb.runs.crawl(site.url, name="docs")
            assert found_of(message, store.parent) == set()
            site.edit(EDITED, add_paragraph="Quiet zebras graze beside the harbour wall at noon.")
            site.put("/guide/workers/", "<title>Workers</title><main><p>Please sign in to read on.</main>")
            message |= message_by(site)
            [report] = await kb.runs.refresh(["docs"])
            assert report.changed >= 1
            await kb.search.reindex()
            assert found_of(message, store.parent) == set()
        async with opened(store, {**log, **by(api)}) as kb:
            await kb.runs.refresh(["docs"])
            await kb.search.reindex()
            assert found_of(message, store.parent) == set()
            assert [hit.url for hit in (await kb.search.search("zebras graze", mode="text")).hits] == [site.at(EDITED)]
    assert found_of(message, store.parent) == set()
    assert rows(store, "select count(*) from documents where markdown is not null or former is not null") == [(0,)]
    assert rows(store, "select count(*) from changes where diff is not null") == [(0,)]
    assert_sound(store)


def test_the_check_above_can_fail(store: Path, site: TinySite) -> None:
    store.write_text("... the harbour.\nA **job** that fails is tried again ...")
    assert found_of({"job that fails", "that is not"}, store.parent) == {"job that fails"}


async def test_pages_are_found_by_words_and_by_meaning(store: Path, site: TinySite) -> None:
    async with opened(store) as kb:
        await kb.runs.crawl(site.url, name="docs")
    async with opened(store.with_name("none.db"), NONE) as kb:
        await kb.runs.crawl(site.url, name="docs")
        for mode in ("text", "vector", "hybrid"):
            answer = await kb.search.search("retry with a growing pause", mode=mode)
            assert site.at(EDITED) in [hit.url for hit in answer.hits[:3]], mode
            assert {(hit.text, hit.path, hit.context) for hit in answer.hits} == {("", (), None)}


async def test_what_needs_text_says_that_none_is_kept(store: Path, site: TinySite) -> None:
    async with opened(store, NONE) as kb:
        await kb.runs.crawl(site.url, name="docs")
        phrase = await kb.search.search('"growing pause"', mode="text")
        assert phrase.notes[-1] == ("docs stores no text (storage.body: none): quoted phrases find nothing there")
        around = await kb.search.search("retries", context=True)
        assert around.notes == ("docs stores no text (storage.body: none): results show none",)
        assert around.hits[0].context is None
        assert (await kb.search.search("retries")).notes == ()
        with pytest.raises(UsageError, match=r"no text of .* is stored, only its words \(storage"):
            await kb.pages.open(site.at(EDITED))
    async with opened(store.with_name("whole.db")) as kb:
        await kb.runs.crawl(site.url, name="docs")
        assert (await kb.search.search('"a job"', context=True)).notes == ()


async def test_another_model_reads_the_pages_again_and_then_answers(
    store: Path, site: TinySite, api: EmbeddingServer
) -> None:
    async with opened(store, NONE) as kb:
        await kb.runs.crawl(site.url, name="docs")
    site.requests.clear()
    async with opened(store, by(api)) as kb:
        [report] = await kb.search.reindex()
        assert (report.state, report.chunks_embedded) == ("partial", 0)
        [note] = report.notes
        assert "no stored text (`storage.body: none`): run `afresh refresh` to fetch such sources again" in note
        assert looks(site) == {}
        before = await kb.search.search("retry with a growing pause", mode="vector")
        assert before.hits, "the old vectors answer"
        plan = await kb.sources.plan("docs")
        assert plan.conditional == 0
        [refreshed] = await kb.runs.refresh(["docs"])
        assert refreshed.state == "completed"
        assert not any(each.conditional for each in site.requests if each.path in site.paths)
        assert (await kb.status.get()).model == name(api, "small"), "every chunk has a vector of it: it answers"
        assert len((await kb.search.search("retry with a growing pause", mode="vector")).hits) == 10
        assert [each.state for each in await kb.search.reindex()] == ["completed"]
        [again] = await kb.runs.refresh(["docs"])
        assert again.not_modified + again.unchanged == plan.known
    assert [name for (name,) in rows(store, "select name from models")] == [name(api, "small")]


@pytest.mark.parametrize("text", ["alpha beta gamma", "gamma beta alpha", "one two three four five six", "a b c b a"])
def test_signals_never_repeat_three_words_as_they_stood(text: str) -> None:
    assert sorted(signals(text).split()) == sorted(text.split())
    assert not threes(words_in(text)) & threes(signals(text).split())
