"""Runs with progress, and what Ctrl-C means while one is under way."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from afresh.cli import opening
from afresh.cli.progress import Watch, watching
from afresh.cli.session import Session
from afresh.config import Config
from afresh.errors import StoreDown
from afresh.events import Listener
from afresh.ports import Access

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase

Answer = TypeVar("Answer")
INTERRUPTED = 130
UP_SECONDS = 60.0  # that a service waits for a store that is away when it starts
UP_PAUSE = 0.5


def run(
    session: Session,
    work: Callable[["KnowledgeBase", Listener], Awaitable[Answer]],
    config: Config | None = None,
    *,
    access: Access = Access.CREATE,
    shown: Callable[[Session], AbstractContextManager[Watch]] = watching,
    stays: bool = False,
) -> Answer:
    """The answer of a run, shown while it works; the first Ctrl-C asks it to end, the second quits.

    One that stays, as a service does, waits at its start for a store that is away.
    """

    async def going() -> Answer:
        def opened() -> "Awaitable[KnowledgeBase]":
            return opening.open_kb(config or session.config, access)

        kb = await (when_up(opened) if stays else opened())
        try:
            await session.tell_versions(kb)
            with shown(session) as watch, signals(Brake(kb.stop, watch)):
                return await work(kb, watch.hear)
        finally:
            await kb.close()

    with session.logged(config):
        return asyncio.run(going())


async def when_up(opened: Callable[[], Awaitable[Answer]]) -> Answer:
    """What is opened, as soon as its store answers: a database and a service may start together."""
    deadline = asyncio.get_running_loop().time() + UP_SECONDS
    told = False
    while True:
        try:
            return await opened()
        except StoreDown as away:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            if not told:
                print(f"afresh: {away} (waiting)", file=sys.stderr, flush=True)
            told = True
            await asyncio.sleep(UP_PAUSE)


class Brake:
    """Turns signals into a gentle stop first and an immediate end second."""

    def __init__(self, stop: Callable[[], None], watch: Watch) -> None:
        self._stop = stop
        self._watch = watch
        self._pressed = False

    def interrupt(self) -> None:
        """Ctrl-C: asks the run to end, and the second time ends the process."""
        if self._pressed:
            self._watch.close()
            quit_now()
        self._pressed = True
        self._watch.say("stopping … (press Ctrl-C again to quit at once)")
        self._stop()

    def terminate(self) -> None:
        """SIGTERM: asks the run to end, however often it comes."""
        if not self._pressed:
            self._watch.say("stopping …")
        self._pressed = True
        self._stop()


def quit_now() -> None:
    """Ends the process at once; what it had claimed is free again when its lease ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


@contextmanager
def signals(brake: Brake) -> Iterator[None]:
    """Lets SIGINT and SIGTERM press the brake while a run is under way."""
    loop = asyncio.get_running_loop()
    handlers = {signal.SIGINT: brake.interrupt, signal.SIGTERM: brake.terminate}
    try:
        for number, press in handlers.items():
            loop.add_signal_handler(number, press)
    except (
        NotImplementedError,
        RuntimeError,
    ):  # Windows, or not the main thread: Ctrl-C then cancels the run
        yield
        return
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
