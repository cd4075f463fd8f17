"""External stores as the tests see them from behind: what they hold, and what happens to those who ask."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import NamedTuple, Protocol

from tests.fakes import gemini_server, vector_store_server
from tests.fakes.faults import HttpFault
from tests.fakes.gemini_hosted import Fate
from tests.fakes.gemini_server import GeminiServer
from tests.fakes.vector_store_server import VectorStoreServer

from afresh.config.server import SinkSettings
from afresh.ports import OwnerTag, Sink, Upload
from afresh.sources.web.api_client import ApiClient
from afresh.sync.sinks.gemini import GeminiSink
from afresh.sync.sinks.openai import OpenAISink
from afresh.testing import FrozenClock

STORE = "Team docs"


class SinkProblem(Enum):
    """What can happen to every request."""

    SLOW_DOWN = "429 with a time"
    OUTAGE = "503"
    CUT = "no answer"
    REFUSED = "connections refused"
    REVOKED = "the key is no longer taken"
    GONE = "the store is gone"
    FULL = "the quota is used up"
    MOVED = "a redirect to elsewhere"


class Held(NamedTuple):
    """One document of the remote store."""

    id: str
    name: str
    text: str


class Plain(Protocol):
    """An external store of any kind, and the way to it."""

    page_size: int
    sinks: list[Sink]  # that were made

    def sink(self) -> Sink: ...
    def held(self) -> list[Held]: ...
    def add_foreign(self, name: str) -> None: ...


class RemoteStore(Plain, Protocol):
    """A store that is reached by an API."""

    clock: FrozenClock
    key: str

    def sink(self, store: str = STORE) -> Sink: ...
    def make_store(self, name: str) -> str: ...
    def next_fate(self, fate: Fate) -> None: ...
    def suffer(self, problem: SinkProblem) -> None: ...
    def recover(self) -> None: ...
    def lose_the_answer_to_an_upload(self) -> None: ...
    def requests(self) -> str: ...
    def saw(self, key: str) -> bool: ...


class _Served:
    """What both servers share."""

    server: GeminiServer | VectorStoreServer
    key: str
    clock: FrozenClock

    def _client(self) -> ApiClient:
        return ApiClient([self.server.base_url], connections=10)

    def requests(self) -> str:
        return repr(list(self.server.requests))

    def saw(self, key: str) -> bool:
        return self.server.saw(key)

    def suffer(self, problem: SinkProblem) -> None:
        outages = {
            SinkProblem.SLOW_DOWN: HttpFault(status=429, retry_after="7"),
            SinkProblem.OUTAGE: HttpFault(status=503, retry_after="120"),
            SinkProblem.CUT: HttpFault(status=None),
            SinkProblem.MOVED: HttpFault(status=302),
        }
        match problem:
            case SinkProblem.REFUSED:
                self.server.down()
            case SinkProblem.REVOKED:
                self.server.keys.clear()
            case SinkProblem.FULL | SinkProblem.GONE:
                self._lose(problem)
            case _:
                self.server.script.outage = outages[problem]

    def recover(self) -> None:
        self.server.up()
        self.server.script.clear()
        self.server.keys.add(self.key)

    def _lose(self, problem: SinkProblem) -> None:
        raise NotImplementedError


class GeminiRemote(_Served):
    """Gemini File Search on loopback, asked by the official SDK."""

    key = gemini_server.KEY
    page_size = 20

    def __init__(self, server: GeminiServer, clock: FrozenClock) -> None:
        self.gemini = self.server = server
        self.clock = clock
        self.sinks: list[Sink] = []

    def sink(self, store: str = STORE) -> Sink:
        settings = SinkSettings(kind="gemini", api_key=self.key, store=store, base_url=self.server.base_url)
        made = GeminiSink("team", settings, self._client(), sleep=self._sleep)
        self.sinks.append(made)
        return made

    async def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def held(self) -> list[Held]:
        return [Held(each.name, each.display_name, each.text) for each in self.gemini.documents]

    def add_foreign(self, name: str) -> None:
        meta = {"displayName": name, "customMetadata": [{"key": "team", "stringValue": "other"}]}
        self.gemini.hosted.add(self.gemini.store(STORE), meta, b"foreign")

    def make_store(self, name: str) -> str:
        return self.gemini.hosted.make_store(name).name

    def next_fate(self, fate: Fate) -> None:
        self.gemini.hosted.fates.append(fate)

    def lose_the_answer_to_an_upload(self) -> None:
        self.server.script.add(HttpFault(status=None, on="upload.bytes", done=True))

    def _lose(self, problem: SinkProblem) -> None:
        if problem is SinkProblem.GONE:
            self.gemini.hosted.stores.clear()
        else:
            self.gemini.hosted.storage_limit = 0

    def recover(self) -> None:
        super().recover()
        self.gemini.hosted.storage_limit = 1_000_000


class OpenAIRemote(_Served):
    """Vector stores in OpenAI's form on loopback."""

    key = vector_store_server.KEY
    page_size = 20

    def __init__(self, server: VectorStoreServer, clock: FrozenClock) -> None:
        self.openai = self.server = server
        self.clock = clock
        self.sinks: list[Sink] = []

    def sink(self, store: str = STORE) -> Sink:
        settings = SinkSettings(kind="openai", api_key=self.key, store=store, base_url=self.server.base_url)
        made = OpenAISink("team", settings, self._client())
        made.page_size = self.page_size
        self.sinks.append(made)
        return made

    def held(self) -> list[Held]:
        return [Held(each.id, str(each.attributes.get("name", each.id)), each.text) for each in self.openai.documents]

    def add_foreign(self, name: str) -> None:
        store = next(iter(self.openai.stores))
        self.openai.add(store, name, b"foreign", {"team": "other", "name": name})

    def make_store(self, name: str) -> str:
        return self.openai.make_store(name)

    def next_fate(self, fate: Fate) -> None:
        self.openai.fates.append(fate)

    def lose_the_answer_to_an_upload(self) -> None:
        self.server.script.add(
            HttpFault(status=None, on="POST vector_stores/files", done=True), HttpFault(status=503, on="DELETE files")
        )

    def _lose(self, problem: SinkProblem) -> None:
        if problem is SinkProblem.GONE:
            self.openai.stores.clear()
        else:
            self.openai.storage_limit = 0

    def recover(self) -> None:
        super().recover()
        self.openai.storage_limit = 1_000_000


@contextmanager
def gemini() -> Iterator[RemoteStore]:
    """Gemini File Search."""
    clock = FrozenClock()
    with GeminiServer(clock) as server:
        yield GeminiRemote(server, clock)


@contextmanager
def openai() -> Iterator[RemoteStore]:
    """An OpenAI vector store."""
    clock = FrozenClock()
    with VectorStoreServer(clock) as server:
        yield OpenAIRemote(server, clock)


REMOTE_STORES: dict[str, Callable[[], AbstractContextManager[RemoteStore]]] = {"gemini": gemini, "openai": openai}


def page(number: int, *, text: str = "", source: str = "harbor@2", store: str = "install-1") -> Upload:
    """A page to upload."""
    return Upload(
        mark=OwnerTag(store=store, source=source, page=number, hash=f"{number:064x}"),
        url=f"https://docs.example/tides/{number}",
        title=f"Tides “{number}”",
        name=f"docs.example/tides/{number}",
        markdown=text or f"# Tides {number}\n\nHigh at noon, naïve — 潮.\n",
        language="en",
    )
