"""Serve a scripted web site on loopback, log its requests, and provide the pages of the demo."""

import asyncio
import re
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urljoin

from jinja2 import Environment, Template

from afresh.crawl.plausibility import PROBE
from afresh.dataclass import dataclass, field
from afresh.testing.script import Answer, SiteScript, notice, unless_known

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
T = TypeVar("T")
SHUTDOWN_SECONDS = 0.01  # time for active answers at shutdown; not 0, which aiohttp treats as "forever"

HangUp = Callable[[], Awaitable[None]]
Listen = Callable[[socket.socket], Awaitable[HangUp]]  # starts to serve on a bound socket; returns how to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request that a site received; `status` is None if the site disconnected or answered with raw bytes."""

    method: str
    path: str  # as sent, with its query
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    visit: int = 1  # number of this request among those for its path; only HostileSite sets it
    body: bytes = b""  # only raw servers set it
    at: float = 0.0  # time.monotonic() on arrival

    @property
    def if_none_match(self) -> str | None:
        return self.headers.get("if-none-match")

    @property
    def if_modified_since(self) -> str | None:
        return self.headers.get("if-modified-since")

    @property
    def user_agent(self) -> str | None:
        return self.headers.get("user-agent")

    @property
    def conditional(self) -> bool:
        return bool(self.if_none_match or self.if_modified_since)


class RequestLog:
    """The requests in order of arrival, without those for URLs that cannot exist; can be read from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: list[RecordedRequest] = []
        self.probes: list[RecordedRequest] = []  # requests for a URL that cannot exist, to find error pages

    def add(self, asked: RecordedRequest) -> None:
        with self._lock:
            (self.probes if PROBE in asked.path else self._asked).append(asked)

    def clear(self) -> None:
        with self._lock:
            self._asked.clear()
            self.probes.clear()

    def count(self, path: str | None = None, *, status: int | None = None) -> int:
        return sum(1 for each in self if path in (None, each.path) and status in (None, each.status))

    def paths(self) -> list[str]:
        return [each.path for each in self]

    def __iter__(self) -> Iterator[RecordedRequest]:
        with self._lock:
            return iter(self._asked.copy())

    def __len__(self) -> int:
        with self._lock:
            return len(self._asked)

    def __getitem__(self, index: int) -> RecordedRequest:
        with self._lock:
            return self._asked[index]


class LoopbackServer:
    """Runs a server on 127.0.0.1 in its own thread and event loop."""

    def __init__(self, listen: Listen, port: int = 0) -> None:
        self.port = port
        self._listen = listen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tinysite", daemon=True)
        self._hang_up: HangUp | None = None
        self._place: socket.socket | None = None  # reserves the port while the server is down

    def start(self) -> None:
        self._thread.start()
        try:
            self.up()
        except OSError:
            self._end()
            raise

    def up(self) -> None:
        self._call(self._open())

    def down(self) -> None:
        """Disconnect all clients, and refuse connections until `up`."""
        self._call(self._shut())
        self._place = _bound(self.port)

    def close(self) -> None:
        self._call(self._shut())
        self._end()

    def _call(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _open(self) -> None:
        if self._hang_up is not None:
            return
        self._let_go()
        listener = _bound(self.port)
        self._hang_up = await self._listen(listener)
        self.port = listener.getsockname()[1]

    async def _shut(self) -> None:
        hang_up, self._hang_up = self._hang_up, None
        if hang_up is not None:
            await hang_up()
        self._let_go()

    def _let_go(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            place.close()


def _bound(port: int) -> socket.socket:
    """Return a bound socket that does not listen yet, so that it refuses connections."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        raise
    return sock


class ServedSite(SiteScript, ABC):
    """A scripted site on loopback, with its server in a thread; subclasses define the server."""

    def __init__(self, *, port: int = 0, etags: bool = True) -> None:
        super().__init__(etags=etags)
        self.requests = RequestLog()
        self._port = port
        self._server: LoopbackServer | None = None

    @abstractmethod
    def _listening(self) -> Listen:
        """Return the function that starts to serve on a socket."""

    def start(self) -> Self:
        if self._server is None:
            server = LoopbackServer(self._listening(), self._port)
            server.start()
            self._server = server
        return self

    def close(self) -> None:
        server, self._server = self._server, None
        for gate in list(self._gates.values()):
            gate.release()
        if server is not None:
            server.close()

    def down(self) -> None:
        self._running().down()

    def up(self) -> None:
        self._running().up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        return self._running().port

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"

    def at(self, path: str) -> str:
        return urljoin(self.url, path)

    async def _wait(self, path: str) -> None:
        gate, seconds = self.delays(path)
        if gate is not None:
            await gate.passed()
        if seconds:
            await asyncio.sleep(seconds)

    def _running(self) -> LoopbackServer:
        if self._server is None:
            raise RuntimeError(f"the site is not started: use `with {type(self).__name__}() as site:`")
        return self._server


class TinySite(ServedSite):
    """A scripted web site, served by aiohttp."""

    @classmethod
    def docs(cls) -> Self:
        """Return a site with about thirty pages of documentation of a fictional product, Harbor."""
        site = cls()
        for path, html in pages().items():
            site.put(path, html, listed=path not in UNLISTED)
        site.robots(ROBOTS)
        site.sitemap(True)
        return site

    def _listening(self) -> Listen:
        async def listen(listener: socket.socket) -> HangUp:
            from aiohttp import web

            runner = web.ServerRunner(web.Server(self._respond, access_log=None), shutdown_timeout=SHUTDOWN_SECONDS)
            await runner.setup()
            await web.SockSite(runner, listener, backlog=128).start()
            return runner.cleanup

        return listen

    async def _respond(self, request: "web.BaseRequest") -> "web.StreamResponse":
        from aiohttp import web

        arrived, status = time.monotonic(), None
        try:
            await self._wait(request.path_qs)
            answer = self._answer(request)
            status = answer.status
            return web.Response(status=status, headers=answer.headers, body=answer.body)
        finally:
            headers = {name.lower(): value for name, value in request.headers.items()}
            method, path = request.method, request.path_qs
            self.requests.add(RecordedRequest(method=method, path=path, status=status, headers=headers, at=arrived))

    def _answer(self, request: "web.BaseRequest") -> Answer:
        if request.method not in ("GET", "HEAD"):
            return notice(405, {"Allow": "GET, HEAD"})
        headers = request.headers
        found = self.find(request.path_qs, self.url)
        return unless_known(found, headers.get("If-None-Match"), headers.get("If-Modified-Since"))


ROBOTS = "User-agent: *\nDisallow: /private/\n\nSitemap: {url}sitemap.xml\n"
UNLISTED = frozenset({"/private/runbook/"})  # linked from other pages, but not in the sitemap
ORPHAN = "/guide/migrating-from-1x/"  # in the sitemap, but not linked from any page


@dataclass(frozen=True, slots=True)
class _Entry:
    section: str
    path: str
    label: str


@cache
def pages() -> Mapping[str, str]:
    folder = files("afresh.testing") / "harbor"
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)  # noqa: S701 - all of it is our own HTML
    template = environment.from_string((folder / "_template.html").read_text("utf-8"))
    entries = _navigation((folder / "_nav.txt").read_text("utf-8"))
    fragments = dict(sorted(_fragments(folder, "/")))
    return MappingProxyType({path: _render(template, entries, path, body) for path, body in fragments.items()})


def _fragments(folder: Traversable, base: str) -> list[tuple[str, str]]:
    """Return path and HTML of each article below a folder; `guide/retries.html` gets the path `/guide/retries/`."""
    found = []
    for each in folder.iterdir():
        name = each.name.removesuffix(".html")
        if each.is_dir():
            found += _fragments(each, f"{base}{name}/")
        elif each.name.endswith(".html") and not name.startswith("_"):
            found.append((base if name == "index" else f"{base}{name}/", each.read_text("utf-8")))
    return found


def _navigation(text: str) -> list[_Entry]:
    entries, section = [], ""
    for line in text.splitlines():
        if line.startswith(" "):
            path, label = line.split(maxsplit=1)
            entries.append(_Entry(section, path, label))
        elif line:
            section = line
    return entries


def _render(template: Template, entries: list[_Entry], path: str, body: str) -> str:
    return template.render(
        title=re.sub(r"<[^>]+>", "", _first(r"<h1[^>]*>(.*?)</h1>", body)),
        description=re.sub(r"<[^>]+>|\s+", " ", _first(r"<p>(.*?)</p>", body)).strip()[:150].replace('"', ""),
        path=path,
        entries=entries,
        headings=re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', body),
        body=_with_anchors(body),
    )


def _first(pattern: str, body: str) -> str:
    found = re.search(pattern, body, re.DOTALL)
    return found[1] if found else "Harbor"


def _with_anchors(body: str) -> str:
    link = r'<h\1 id="\2">\3<a class="headerlink" href="#\2" title="Permanent link">¶</a></h\1>'
    return re.sub(r'<h([23]) id="([^"]+)">(.*?)</h\1>', link, body)
