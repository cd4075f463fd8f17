"""What every external store has to do, whoever made it: one suite over all sinks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace

import pytest
from tests.fakes.gemini_hosted import FAILS, NEVER, after
from tests.sync.plain_stores import folder, scripted
from tests.sync.remote_stores import REMOTE_STORES, STORE, Plain, RemoteStore, SinkProblem, page

from afresh.errors import SinkBusy, SinkError, SinkFull, SinkMissing, SinkRefused, SinkUnauthorized
from afresh.ports import Remote, RemoteState, Sink, Upload
from afresh.sync.copy import display_name


@pytest.fixture(params=REMOTE_STORES)
async def digest_files(request: pytest.FixtureRequest) -> AsyncIterator[RemoteStore]:
    """An empty remote store of each kind; its sinks are closed in the end."""
    with REMOTE_STORES[request.param]() as made:
        yield made
        for sink in made.sinks:
            await sink.close()


@pytest.fixture(params=[*REMOTE_STORES, "folder", "scripted"])
async def plain(request: pytest.FixtureRequest) -> AsyncIterator[Plain]:
    """An empty store of every kind there is."""
    kinds: dict[str, Callable[[], AbstractContextManager[Plain]]] = {"folder": folder, "scripted": scripted}
    with (REMOTE_STORES.get(request.param) or kinds[request.param])() as made:
        yield made
        for sink in made.sinks:
            await sink.close()


async def listed(sink: Sink) -> list[Remote]:
    """All documents of a sink."""
    return [each async for each in sink.all()]


async def test_F96_a_page_is_put_looked_at_listed_and_dropped_twice(plain: Plain) -> None:
    sink = plain.sink()
    upload = page(7)
    put = await sink.put(upload)
    assert (put.name, put.state, put.mark) == (upload.name, RemoteState.ACTIVE, upload.mark)
    assert put.size >= len(upload.markdown.encode())
    assert [each.text for each in plain.held()] == [upload.markdown]
    assert await sink.look(put.id) == put
    assert await listed(sink) == [put]
    await sink.drop(put.id)
    assert (plain.held(), await sink.look(put.id)) == ([], None)
    await sink.drop(put.id)
    assert await listed(sink) == []


async def test_F96_a_new_version_outlives_the_drop_of_the_old_one_and_foreign_documents_stay(plain: Plain) -> None:
    sink = plain.sink()
    others = [await sink.put(page(number)) for number in range(plain.page_size + 1)]
    plain.add_foreign("Minutes.md")
    old = others.pop()
    new = await sink.put(_edited(page(plain.page_size)))
    assert new.id != old.id
    await sink.drop(old.id)
    assert {each.mark for each in await listed(sink)} == {None, new.mark, *(each.mark for each in others)}
    assert await sink.look(new.id) == new
    for each in (new, *others):
        await sink.drop(each.id)
    assert [each.name for each in await listed(sink)] == ["Minutes.md"]
    assert len(plain.held()) == 1


def _edited(upload: Upload) -> Upload:
    return replace(upload, markdown="# Ebb\n", mark=replace(upload.mark, hash="e" * 64))


async def test_odd_pages_arrive_whole_and_are_recognised(digest_files: RemoteStore) -> None:
    sink = digest_files.sink()
    odd = [
        replace(page(1), url="https://x/" + "y" * 600, title="t" * 600, name="n" * 600),
        replace(page(2, text="  \n"), title="", name='a "quoted"\r\nname; ünïcode/…'),
        replace(page(3, text="lone \ud800 half\r\n--afresh--\r\n", source="wiki · «x»"), language=None),
        page(4, text="# Large\n" + "words and words " * 100_000),
    ]
    put = [await sink.put(each) for each in odd]
    assert [each.mark for each in put] == [each.mark for each in odd]
    assert [each.mark for each in await listed(sink)] == [each.mark for each in odd]
    texts = [each.text for each in digest_files.held()]
    assert texts[1] == f"# {odd[1].url}\n"
    assert texts[2] == "lone ? half\r\n--afresh--\r\n"
    assert texts[3] == odd[3].markdown


async def test_R8_G19_the_name_of_a_document_is_its_title_and_its_url_is_in_the_metadata(plain: Plain) -> None:
    sink = plain.sink()
    title = "Gezeiten – 潮汐 " + "潮" * 300  # 512 characters would fit, 512 bytes do not
    upload = replace(page(7), name=display_name(title, page(7).url), title=title)
    put = await sink.put(upload)
    assert (put.name, put.url) == (upload.name, upload.url)
    assert put.name.startswith("Gezeiten – 潮汐 潮")
    assert len(put.name.encode()) <= 512
    assert [(each.name, each.url) for each in await listed(sink)] == [(upload.name, upload.url)]


async def test_the_state_of_a_document_is_returned_as_it_is(digest_files: RemoteStore) -> None:
    sink = digest_files.sink()
    for fate in (NEVER, FAILS, after(600, failing=10)):
        digest_files.next_fate(fate)
    never, fails, recovers = [await sink.put(page(number)) for number in (1, 2, 3)]
    assert [each.state.name for each in (never, fails, recovers)] == ["PROCESSING", "FAILED", "PROCESSING"]
    assert fails.reason
    digest_files.clock.advance(60)
    assert [each.state.name for each in await listed(sink)] == ["PROCESSING", "FAILED", "FAILED"]
    digest_files.clock.advance(600)
    seen = [await sink.look(each.id) for each in (never, fails, recovers)]
    assert [each and each.state.name for each in seen] == ["PROCESSING", "FAILED", "ACTIVE"]


async def test_a_listing_of_many_pages_separates_ours_from_those_of_others(digest_files: RemoteStore) -> None:
    sink = digest_files.sink()
    count = digest_files.page_size + 3
    await asyncio.gather(*(sink.put(page(number)) for number in range(count)))
    digest_files.add_foreign("Minutes of a meeting")
    await sink.put(page(1, store="install-2"))
    found = await listed(sink)
    assert {each.id for each in found} == {each.id for each in digest_files.held()}
    assert len(found) == count + 2
    marks = [each.mark for each in found if each.mark and each.mark.store == "install-1"]
    assert sorted(mark.page for mark in marks) == list(range(count))
    assert [each.name for each in found if each.mark is None] == ["Minutes of a meeting"]

    async with aclosing(sink.all()) as half:  # type: ignore[type-var]
        seen = 0
        async for each in half:
            await sink.drop(each.id)  # what is dropped on the way hides nothing that comes after
            seen += 1
    assert (seen, digest_files.held()) == (count + 2, [])


@pytest.mark.parametrize(
    ("problem", "kind", "wait"),
    [
        (SinkProblem.SLOW_DOWN, SinkBusy, 7.0),
        (SinkProblem.OUTAGE, SinkBusy, 120.0),
        (SinkProblem.CUT, SinkBusy, None),
        (SinkProblem.REFUSED, SinkBusy, None),
        (SinkProblem.REVOKED, SinkUnauthorized, None),
        (SinkProblem.MOVED, SinkRefused, None),
        (SinkProblem.GONE, SinkMissing, None),
    ],
    ids=lambda each: each.name if isinstance(each, SinkProblem) else "",
)
async def test_each_problem_says_what_to_do_and_passes(
    digest_files: RemoteStore, problem: SinkProblem, kind: type[SinkError], wait: float | None
) -> None:
    sink = digest_files.sink()
    kept = await sink.put(page(1))
    digest_files.suffer(problem)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: sink.put(page(2)),
        lambda: sink.look(kept.id),
        lambda: listed(sink),
    ]
    if problem is not SinkProblem.GONE:  # without its store a document may be there or not
        calls.append(lambda: sink.drop(kept.id))
    for call in calls:
        with pytest.raises(kind) as found_text:
            await call()
        assert type(found_text.value) is kind or kind is SinkMissing
        assert found_text.value.retry_after == wait
        assert digest_files.key not in str(found_text.value)
        assert "sinks.team." in str(found_text.value) or "later" in str(found_text.value)
    if problem is not SinkProblem.GONE:
        digest_files.recover()
        assert await sink.look(kept.id) == kept
        await sink.put(page(2))
        assert len(digest_files.held()) == 2
    assert digest_files.key not in digest_files.requests()
    assert digest_files.saw(digest_files.key)


async def test_a_full_store_still_drops_and_then_takes_again(digest_files: RemoteStore) -> None:
    sink = digest_files.sink()
    kept = await sink.put(page(1))
    digest_files.suffer(SinkProblem.FULL)
    with pytest.raises(SinkFull):
        await sink.put(page(2))
    await sink.drop(kept.id)
    digest_files.recover()
    await sink.put(page(2))
    assert [each.mark and each.mark.page for each in await listed(sink)] == [2]


async def test_F98_an_upload_whose_answer_is_lost_is_found_by_its_mark(digest_files: RemoteStore) -> None:
    sink = digest_files.sink()
    await sink.put(page(1))
    digest_files.lose_the_answer_to_an_upload()
    with pytest.raises(SinkBusy) as doubt:
        await sink.put(page(2))
    assert doubt.value.retry_after is None
    found = [each for each in await listed(sink) if each.mark == page(2).mark]
    assert len(found) == 1
    assert await sink.look(found[0].id) == found[0]
    await sink.drop(found[0].id)
    assert [each.name for each in digest_files.held()] == [page(1).name]


async def test_a_store_is_made_once_and_found_by_its_name_or_id(digest_files: RemoteStore) -> None:
    first, second = digest_files.sink(), digest_files.sink()
    await asyncio.gather(*(first.put(page(number)) for number in range(3)))
    assert len(await listed(second)) == 3
    other = digest_files.make_store("Another")
    by_id = digest_files.sink(other)
    assert await listed(by_id) == []
    digest_files.make_store(STORE)
    unsure = digest_files.sink()
    with pytest.raises(SinkRefused, match=r'2 stores are called "Team docs": set sinks\.team\.store to one of'):
        await unsure.put(page(4))
    missing = digest_files.sink(other.replace("0", "9"))
    with pytest.raises(SinkMissing, match="404"):
        await missing.put(page(4))
