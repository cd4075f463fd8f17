"""A command line over a small store, in which a test may answer some use cases itself."""

import asyncio
import functools
import inspect
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.records import NOW, report
from tests.store.crawler import ManualCrawler, read

from afresh.app import build
from afresh.cli import main
from afresh.cli.session import Session
from afresh.config import Config
from afresh.config.tree import default_store_url
from afresh.events import Listener, Notice, Progress
from afresh.kb import KnowledgeBase
from afresh.model.fetch import NotModified, Seen
from afresh.model.records import RunId, RunMode
from afresh.model.reports import RunReport
from afresh.ports import StoreAccess
from afresh.services.context import Service
from afresh.store.open import open_store
from afresh.testing import FrozenClock
from afresh.watch.watcher import WatchListener


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Afresh = Callable[..., Ended]


@dataclass
class Opened:
    """The knowledge base that commands open, and what they asked of it.

    It is a real one. `answers` has what a use case returns, raises or is replaced by instead of working;
    runs are always answered so, and nothing is fetched.
    """

    answers: dict[str, object] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, object]]] = field(default_factory=list)  # without what is the default
    config: Config | None = None
    access: StoreAccess | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    away: list[Exception] = field(default_factory=list)  # what opening meets first
    _inside: bool = False  # a use case, which may call others

    def __post_init__(self) -> None:
        self.let_runs_end_with(report())

    def let_runs_end_with(self, *reports: RunReport) -> None:
        """Give the reports of runs, which tell a little of their work."""

        async def work(listener: Listener, **_: object) -> list[RunReport]:
            listener(Notice(text="a run was resumed"))
            counts = {"new": 3, "failed": 1}
            listener(Progress(run=RunId(7), source="python-docs", done=4, queued=8, counts=counts, seconds=2.0))
            return list(reports)

        async def crawl(**given: Any) -> RunReport:
            return (await work(**given))[0]

        async def watch(on_report: WatchListener, **_: object) -> None:
            on_report(Notice(text="Watching python-docs"))
            for each in reports:
                on_report(each)

        self.answers |= {"runs.crawl": crawl, "runs.refresh": work, "runs.watch": watch}
        if reports:
            self.answers["runs.confirm"] = reports[0]

    async def open(self, config: Config, access: StoreAccess) -> KnowledgeBase:
        """Open the store and note the use cases that are called."""
        if self.away:
            raise self.away.pop()
        self.config, self.access = config, access
        words_alone = replace(config, embedding=replace(config.embedding, provider="none"))
        kb = await build(words_alone, access=access, clock=lambda: NOW)
        assert self.answers.keys() <= {f"{noun}.{name}" for noun, name in use_cases(kb)}
        for noun, name in use_cases(kb):
            service = getattr(kb, noun)
            setattr(service, name, self._noted(f"{noun}.{name}", getattr(service, name)))
        stop, close = kb.stop, kb.close

        def stopping() -> None:
            self.calls.append(("stop", {}))
            self.stopped.set()
            stop()

        async def closing() -> None:
            self.closed = True
            await close()

        kb.stop, kb.close = stopping, closing  # type: ignore[method-assign]
        return kb

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)

        @functools.wraps(method)
        async def call(*args: object, **kwargs: object) -> object:
            if self._inside:
                return await method(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            given |= given.pop("flags", {})  # of `**flags`, which are all off by default
            self.calls.append((name, {key: value for key, value in given.items() if is_asked(key, value)}))
            answer = self.answers.get(name, method)
            if isinstance(answer, BaseException):
                raise answer
            self._inside = True
            try:
                return await answer(**given) if callable(answer) else answer
            finally:
                self._inside = False

        def is_asked(key: str, value: object) -> bool:
            known = signature.parameters.get(key)
            return key != "listener" and value != (False if known is None else known.default)

        return call


def use_cases(kb: KnowledgeBase) -> list[tuple[str, str]]:
    """List what commands call, as service and method, apart from the note about a version."""
    nouns = [noun for noun, each in vars(KnowledgeBase).items() if isinstance(each, cached_property)]
    services: dict[str, Service] = {noun: getattr(kb, noun) for noun in nouns}
    return [
        (noun, name)
        for noun, service in services.items()
        for name, _ in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not name.startswith("_") and name != "version_note"
    ]


RETRIES = "# Retries\n\nA job that fails is retried.\n\n```make\nall:\n\techo  \n```"


async def fill(url: str) -> None:
    """Write three pages with four runs (read, changed, as it was, under way), and the versions of another."""
    clock = FrozenClock(NOW - timedelta(hours=3))
    store = await open_store(url)
    try:
        crawler = await ManualCrawler.at(store, clock, "harbor", "2")
        links = ("guide/retries/", "guide/queues/")
        first: dict[str, Seen] = {
            "": read("# Harbor\n\nAll about jobs.", *links, title="Harbor"),
            "guide/retries/": read(f"{RETRIES}\n\nafter 2 s", title="Retries", etag='"v0"', language="en"),
            "guide/queues/": read("# Queues\n\nA queue holds jobs.", title="Queues"),
        }
        changed = read(f"{RETRIES}\n\nafter 5 s", title="Retries", etag='"v1"', language="en")
        await crawler.crawl(first)
        await crawler.crawl({**first, "guide/retries/": changed}, RunMode.REFRESH)
        clock.advance(hours=2, minutes=54)
        await crawler.crawl({**first, "guide/retries/": NotModified()}, RunMode.REFRESH)
        await crawler.begin(RunMode.REFRESH)
        await crawler.enqueue("guide/retries/")
        for version in ("19.0.0", "18.2.0", "17.0.2", None):
            await ManualCrawler.at(store, clock, "react", version)
    finally:
        await store.close()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small store, to be copied."""
    file = tmp_path_factory.mktemp("template") / "kb.db"
    asyncio.run(fill(f"sqlite:///{file}"))
    return file


@pytest.fixture
def kb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, template: Path) -> Opened:
    """The knowledge base every command of this test opens; the folder is empty, the time stands still."""
    own = Path(default_store_url().removeprefix("sqlite:///"))
    own.parent.mkdir(parents=True)
    shutil.copy(template, own)
    opened = Opened()
    monkeypatch.setattr(Session, "open_kb", lambda _, config, access: opened.open(config, access))
    monkeypatch.setattr(Session, "now", NOW)
    monkeypatch.chdir(tmp_path)
    return opened


@pytest.fixture
def afresh(kb: Opened, capsys: pytest.CaptureFixture[str]) -> Afresh:
    """Calls the command line as a user would."""

    def call(*arguments: str) -> Ended:
        code = main(arguments)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call
