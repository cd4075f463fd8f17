"""What the use cases are given: the tools of each run, and the models."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from afresh.crawl.heartbeat import Vigil
from afresh.crawl.tools import Kit, RunOptions
from afresh.digest.update import Desk
from afresh.events import Listener
from afresh.model.records import Policy, Source, Worker
from afresh.model.store_reports import Finding
from afresh.ports import Embedder, Lookout
from afresh.search.reindex import Remake
from afresh.search.request import Mode
from afresh.store.store import Store
from afresh.urls.scope import Rules

if TYPE_CHECKING:
    from afresh.config.kb import KbSettings
    from afresh.crawl.fetched_page import Glimpse
    from afresh.model.charts import Politeness
    from afresh.model.overview import Contents
    from afresh.model.retention import Retention
    from afresh.notify.outbox import Target
    from afresh.notify.sender import Postman
    from afresh.schedule.rules import Schedule
    from afresh.sync.sync import Syncs
    from afresh.sync.sync_pass import Outlet


class Tools(Protocol):
    """What makes the tools of each run."""

    def bounds(self, source: Source) -> tuple[Rules, Policy]: ...

    def open(
        self, source: Source, options: RunOptions, listener: Listener, stopping: asyncio.Event
    ) -> AbstractAsyncContextManager[tuple[Kit, Rules]]: ...

    def why_left_out(self, source: Source, url: str) -> str | None:
        """Why a file is no part of a folder, or None if it is, or stands elsewhere."""
        ...

    def recognise(self, target: str) -> tuple[str, str]:
        """The kind and the root of the source that is meant by what was typed."""
        ...

    def address(self, typed: str) -> str:
        """The address of a page that is meant by what was typed."""
        ...

    def recognise_from_afar(self, target: str) -> tuple[str, str]:
        """The same for a target that a caller of the server names: files only where the settings allow."""
        ...

    def recognise_on_the_web(self, target: str) -> tuple[str, str]:
        """The same for a target that an agent names: what is on the web alone."""
        ...

    def page_address(self, typed: str) -> str:
        """The address of a page on record that a caller names; UsageError if it is not whole."""
        ...

    def web_address(self, typed: str) -> str:
        """The address of a page that a caller of the server names; UsageError if it is none of the web."""
        ...

    def check_settings(self, rules: Mapping[str, object], policy: Mapping[str, object]) -> None:
        """ConfigError, if a source cannot have these settings and no others."""
        ...

    def keeps_text(self, source: Source) -> bool:
        """Whether the text of its pages is stored."""
        ...

    def keywords(self, source: Source) -> Mapping[str, float]:
        """What its links are scored by, with weights."""
        ...

    def manners(self, source: Source | None) -> "Politeness":
        """How hosts are asked for a source, or where none is named."""
        ...

    def schedule(self, source: Source) -> "Schedule | None":
        """When a source is looked at by itself, if its settings name times."""
        ...

    def identity(self) -> tuple[Worker, float]:
        """Who this process is as a worker, and how long a silent one counts as alive."""
        ...

    def standing(self, listener: Listener, stopping: asyncio.Event) -> tuple[Store, Vigil]:
        """The store and the life of a process that works until it is told to stop."""
        ...

    def sees(self, source: Source) -> bool:
        """Whether a source can be read from this machine; may block."""
        ...

    def sinks_of(self, source: Source) -> Mapping[str, str]:
        """The external stores that are to hold a source, with their kinds."""
        ...

    def syncing(
        self, names: Sequence[str], listener: Listener, stopping: asyncio.Event
    ) -> "AbstractAsyncContextManager[tuple[Syncs, list[Outlet]]]":
        """What syncs, and the external stores of these names, or all; UsageError if there is none."""
        ...

    def targets(self) -> "Sequence[Target]":
        """Who is told of events."""
        ...

    def post_office(self) -> "AbstractAsyncContextManager[Postman]":
        """What sends messages to them."""
        ...

    def retention(self) -> "Retention":
        """How long records stay that nothing needs any more."""
        ...

    async def examine(self) -> list[Finding]: ...

    async def glance(self, url: str) -> "Glimpse":
        """The text at a web address as it is now; SourceError says why there is none."""
        ...

    async def contents(self, source: Source) -> "Contents":
        """What a source of files, links or a repository lists now; SourceError says why nothing."""
        ...

    def lookout(self, source: Source) -> Lookout:
        """What hears of changes at the root of a source on this machine."""
        ...

    def desk(self) -> "tuple[Desk, KbSettings]":
        """Where the knowledge base of files and links is, and its settings; ConfigError if there is none."""
        ...

    def kept_warm(self) -> AbstractAsyncContextManager[None]:
        """While it is open, what a run starts up is there for the next one."""
        ...


class Models(Protocol):
    """The models that the store works with."""

    def wanted(self) -> str | None:
        """The model that the settings name; None where search goes by words alone."""
        ...

    def for_questions(
        self, mode: Mode = Mode.HYBRID
    ) -> AbstractAsyncContextManager[tuple[Embedder | None, Sequence[str]]]:
        """What turns questions into vectors, and what there is to say about it."""
        ...

    def for_remake(
        self, listener: Listener, stopping: asyncio.Event
    ) -> AbstractAsyncContextManager[Remake]: ...
