"""Webhooks that go out: signed, tried again, never to private places, never by redirects."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened
from tests.fakes.servers import Wire, answer, redirect, serving

from afresh.errors import StoreBusy
from afresh.kb import KnowledgeBase
from afresh.notify.outbox import MessageState
from afresh.notify.sender import Outcome, WebhookTransport
from afresh.notify.signatures import signed
from afresh.store.messages import MessageRepository
from afresh.store.repository import retried
from afresh.testing import FrozenClock, TinySite

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAGE = "<h1>{0}</h1><p>Some text about word{0} and other things.</p>"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 5, 1, tzinfo=UTC))


@pytest.fixture
async def wire(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    async with serving({}) as wire:
        yield wire


def settings(wire: Wire, path: str = "/hook", **more: object) -> dict[str, object]:
    return {
        "crawl.probe": False,
        "webhooks.ops.secret": SECRET,
        "webhooks.ops.url": wire.url(path),
        **{f"webhooks.ops.{name}": value for name, value in more.items()},
    }


def filled(site: TinySite, names: str) -> None:
    site.put("/", PAGE.format("root") + "".join(f'<a href="/{name}">{name}</a> ' for name in names))
    for name in names:
        site.put(f"/{name}", PAGE.format(name))


async def one(kb: KnowledgeBase, state: MessageState | None = None) -> Any:
    (message,) = await kb.webhooks.messages(state=state)
    return message


async def test_F101_a_run_its_pages_and_the_brake_are_sent_and_signed(
    wire: Wire, tmp_path: Path, clock: FrozenClock
) -> None:
    wire.routes["/hook"] = answer(204)
    names = "abcdefghijklmnop"
    with TinySite() as site:
        filled(site, names)
        async with opened(tmp_path / "kb.db", settings(wire), clock=clock) as kb:
            await kb.runs.crawl(site.url, name="docs")
            assert await kb.webhooks.send() == 2
            assert await kb.webhooks.send() == 0
            finished, pages = (json.loads(asked.body) for asked in wire.asked)
            assert (finished["event"], finished["state"], finished["source"]) == ("run.finished", "completed", "docs")
            assert finished["counts"]["new"] == 17
            assert {page["event"] for page in pages["pages"]} == {"page.new"}
            assert sorted(page["url"] for page in pages["pages"])[1] == f"{site.url}a"
            for asked in wire.asked:
                head = [asked.headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")]
                assert signed(SECRET, head[0], head[1], asked.body, head[2], clock())

            wire.asked.clear()
            filled(site, "")  # everything but the root is gone
            for name in names:
                site.delete(f"/{name}")
            (report,) = await kb.runs.refresh(["docs"])
            assert report.state == "needs_confirmation"
            clock.advance(1)
            await kb.webhooks.send()
            braked, pages = (json.loads(asked.body) for asked in wire.asked)
            assert (braked["event"], braked["counts"]["held"]) == ("run.braked", 16)
            assert [(page["event"], page["url"]) for page in pages["pages"]] == [("page.changed", site.url)]

            wire.asked.clear()
            await kb.runs.confirm(report.run)
            await kb.webhooks.send()
            finished, pages = (json.loads(asked.body) for asked in wire.asked)
            assert finished["counts"]["deleted"] == 16
            assert [page["event"] for page in pages["pages"]] == ["page.deleted"] * 16


async def test_F101_a_target_that_is_down_is_tried_again_for_a_day(
    wire: Wire, tmp_path: Path, clock: FrozenClock
) -> None:
    wire.routes["/hook"] = answer(503)
    with TinySite() as site:
        filled(site, "a")
        given = settings(wire, events=["run.finished"], sources=["docs"])
        async with opened(tmp_path / "kb.db", given, clock=clock) as kb:
            await kb.runs.crawl(f"{site.url}a", name="other")
            await kb.runs.crawl(site.url, name="docs")
            start, tries = clock(), []
            while (message := await one(kb)).state is MessageState.WAITING:
                clock.set(message.next_try_at)
                tries.append(clock() - start)
                assert await kb.webhooks.send() == 0
            assert tries[:6] == [timedelta(seconds=each) for each in (0, 10, 70, 370, 2170, 9370)]
            assert timedelta(hours=20) < tries[-1] <= timedelta(days=1)
            assert (message.state, message.error) == ("dead", "the receiver answered 503")
            assert len({asked.headers["webhook-id"] for asked in wire.asked}) == 1
            assert len(wire.asked) == len(tries)

            wire.routes["/hook"] = answer(200)  # one that comes back gets what waits
            await kb.runs.refresh(["docs"])
            assert await kb.webhooks.send() == 1


async def test_F101_a_lock_after_a_message_was_sent_does_not_send_it_again(
    wire: Wire, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.routes["/hook"] = answer(204)
    record, locked = MessageRepository.record_attempt, [True]

    async def busy(*args: object, **more: object) -> None:
        if locked:
            locked.clear()
            raise StoreBusy("another process writes")
        await record(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(MessageRepository, "record_attempt", retried(busy, busy))
    with TinySite() as site:
        filled(site, "a")
        given = settings(wire, events=["run.finished"])
        async with opened(tmp_path / "kb.db", given, clock=clock) as kb:
            await kb.runs.crawl(site.url, name="docs")
            assert await kb.webhooks.send() == 1
            assert (locked, (await one(kb)).state) == ([], MessageState.SENT)
            clock.advance(hours=1)
            assert await kb.webhooks.send() == 0
    assert wire.paths() == ["/hook"]


async def test_F101_no_redirects_and_no_private_targets(wire: Wire, tmp_path: Path, clock: FrozenClock) -> None:
    wire.routes["/hook"] = redirect(wire.url("/inside"), 307)
    with TinySite() as site:
        filled(site, "a")
        store, given = tmp_path / "kb.db", settings(wire, events=["run.finished"])
        async with opened(store, given, clock=clock) as kb:
            await kb.runs.crawl(site.url, name="docs")
            await kb.webhooks.send()
            message = await one(kb)
            assert (message.state, wire.paths()) == ("waiting", ["/hook"])
            assert "redirects are not followed" in message.error
        wire.asked.clear()
        clock.advance(60)
        async with opened(store, {**given, "network.allow": []}, clock=clock) as kb:
            await kb.webhooks.send()
            message = await one(kb)
            assert (message.state, wire.asked) == ("dead", [])
            assert "network.allow" in message.error
            assert SECRET not in message.error


async def test_F101_the_server_sends_by_itself_until_it_is_stopped(
    wire: Wire, tmp_path: Path, clock: FrozenClock
) -> None:
    with TinySite() as site:
        filled(site, "a")
        async with opened(tmp_path / "kb.db", settings(wire, events=["run.finished"]), clock=clock) as kb:

            def last(asked: object) -> bytes:
                kb.stop()
                return answer(200)

            wire.routes["/hook"] = last
            await kb.runs.crawl(site.url, name="docs")
            async with asyncio.timeout(20):
                await kb.webhooks.keep_sending()
            assert (await one(kb)).state is MessageState.SENT


async def test_U4_F170_a_target_that_never_answers_does_not_keep_the_server_from_ending(
    wire: Wire, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TinySite() as site:
        filled(site, "a")
        async with opened(tmp_path / "kb.db", settings(wire, events=["run.finished"]), clock=clock) as kb:

            async def never(*_: object) -> Outcome:
                kb.stop()
                await asyncio.Event().wait()
                raise AssertionError

            monkeypatch.setattr(WebhookTransport, "send", never)
            monkeypatch.setattr("afresh.services.webhooks.SENDING_GRACE_SECONDS", 0.0, raising=False)
            await kb.runs.crawl(site.url, name="docs")
            async with asyncio.timeout(20):
                await kb.webhooks.keep_sending()
            message = await one(kb)
            assert (message.state, message.next_try_at) == (MessageState.WAITING, clock())
