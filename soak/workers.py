"""P2, P3: many workers on one run of many hosts; some are killed or sleep, the server is restarted."""

import argparse
import asyncio
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.postgres import mortal

from afresh.app import build
from afresh.config import load
from afresh.kb import KnowledgeBase
from soak.kills import AFRESH

SETTINGS = """\
store: {{url: "{url}"}}
network: {{allow: ["127.0.0.1/32"]}}
crawl: {{probe: false, scope: domain, max_pages: 100000, delay_seconds: {delay}}}
policy: {{lease_seconds: 4, heartbeat_seconds: 1, backoff_base_seconds: 0.01, backoff_max_seconds: 0.02}}
embedding: {{provider: none}}
"""
SERVICE = ("/robots.txt", "/sitemap.xml", "/llms.txt")
ANSWER = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
WINDOW = 10  # looks at a host that are measured together: single ones arrive early or late
SLACK = 0.25  # seconds by which a busy machine tells late of a look
ASLEEP = 8.0  # seconds: two leases
BLOWS = ("kill", "restart", "sleep", "kill", "restart", "kill", "sleep")


@dataclass
class Hosts:
    """Hosts on loopback, told apart by their port, that note when they are asked for what."""

    number: int
    pages: int  # of each
    ports: list[int] = field(default_factory=list)
    asked: list[tuple[float, int, str]] = field(default_factory=list)
    callers: list[asyncio.BaseTransport] = field(default_factory=list)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve from a thread; the address of the page that leads to all hosts."""
        loop, sockets = asyncio.new_event_loop(), [_bound() for _ in range(self.number)]
        self.ports = [each.getsockname()[1] for each in sockets]
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        opening = (
            loop.create_server(lambda port=port: _Answers(self, port), sock=each)  # type: ignore[misc]
            for port, each in zip(self.ports, sockets, strict=True)
        )
        servers = [asyncio.run_coroutine_threadsafe(each, loop).result(30) for each in opening]
        try:
            yield f"http://127.0.0.1:{self.ports[0]}/"
        finally:
            for each in [server.close for server in servers] + [caller.close for caller in self.callers]:
                loop.call_soon_threadsafe(each)
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(30)
            loop.close()

    def body(self, port: int, path: str) -> bytes | None:
        """A page; the first of each host leads to the others of it."""
        if path in SERVICE:
            return None
        links = [f"/p{page}" for page in range(1, self.pages)] if path == "/" else []
        if path == "/" and port == self.ports[0]:
            links += [f"http://127.0.0.1:{other}/" for other in self.ports[1:]]
        listed = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
        name = f"Page {path} of host {self.ports.index(port)}"
        text = f"<main><h1>{name}</h1><p>All about {name}.</p>{listed}"
        return f"<html lang=en><title>{name}</title>{text}".encode()

    def looks(self) -> Counter[str]:
        """How often each page was asked for."""
        return Counter(f"{port}{path}" for _, port, path in self.asked if path not in SERVICE)

    def haste(self, delay: float) -> float:
        """How much shorter than allowed the shortest time was in which a host was asked so many times."""
        times: dict[int, list[float]] = defaultdict(list)
        for at, port, path in sorted(self.asked):
            if path not in SERVICE:
                times[port].append(at)
        spans = [
            late - early
            for each in times.values()
            for early, late in zip(each, each[WINDOW - 1 :], strict=False)
        ]
        return max(0.0, (WINDOW - 1) * delay - min(spans, default=float("inf")))


def _bound() -> socket.socket:
    each = socket.socket()
    each.bind(("127.0.0.1", 0))
    return each


class _Answers(asyncio.Protocol):
    def __init__(self, hosts: Hosts, port: int) -> None:
        self._hosts, self._port = hosts, port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._hosts.callers.append(transport)

    def data_received(self, data: bytes) -> None:
        path = data.split(b" ", 2)[1].decode()
        self._hosts.asked.append((time.monotonic(), self._port, path))
        body = self._hosts.body(self._port, path)
        status = b"404 Not Found" if body is None else b"200 OK"
        assert isinstance(self._transport, asyncio.WriteTransport)
        self._transport.write(ANSWER % (status, len(body or b"")) + (body or b""))


class Gang:
    """Worker processes on one store."""

    def __init__(self, command: Sequence[str], settings: Path, number: int) -> None:
        self._command = [*command, "worker", "--quiet", "--config", str(settings)]
        self.processes = [self._start() for _ in range(number)]
        self.trouble = 0  # kills and sleeps

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, chance: random.Random) -> None:
        """End one at once and let another take its place."""
        place = chance.randrange(len(self.processes))
        self.processes[place].kill()
        self.processes[place].wait()
        self.processes[place] = self._start()
        self.trouble += 1

    def put_to_sleep(self, chance: random.Random) -> None:
        """Let one sleep past its lease."""
        process = chance.choice(self.processes)
        process.send_signal(signal.SIGSTOP)
        threading.Timer(ASLEEP, process.send_signal, (signal.SIGCONT,)).start()
        self.trouble += 1

    def leave(self) -> list[int]:
        """Tell all to go; how they ended."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        return [process.wait(60) for process in self.processes]


@dataclass
class Outcome:
    """What came of a run."""

    index: dict[str, str | None]
    seconds: float
    trouble: int
    wrong: list[str]


async def crawl(
    hosts: Hosts,
    settings: Path,
    command: Sequence[str],
    workers: int,
    blows: Sequence[Callable[[Gang], None]] = (),
) -> Outcome:
    """Queue a run, let workers do it, strike blow by blow as it goes on, and look at what is on record."""
    root, wanted = f"http://127.0.0.1:{hosts.ports[0]}/", hosts.number * hosts.pages
    hosts.asked.clear()
    kb = await build(load(settings, {}, {}, settings.parent))
    began = time.monotonic()
    gang = Gang(command, settings, workers)
    try:
        await kb.queue_crawl(root, name="docs")
        for number, blow in enumerate(blows, 1):
            await _until(kb, hosts, number * wanted // (len(blows) + 2))
            await asyncio.to_thread(blow, gang)
        await _until(kb, hosts)
        seconds = time.monotonic() - began
        pages = await kb.pages("docs")
        index = {page.url: page.content_hash for page in pages}
        codes = gang.leave()
        status = await kb.status()
    finally:
        gang.leave()
        await kb.close()
    wrong = [f"{len(index)} of {wanted} pages"] if len(index) != wanted else []
    wrong += ["a page twice"] if len(pages) != len(index) else []
    wrong += [f"{status.in_flight} pages are still held"] if status.in_flight else []
    wrong += [f"workers ended with {codes}"] if any(codes) else []
    return Outcome(index, seconds, gang.trouble, [*wrong, *_asked_too_often(hosts, gang.trouble)])


async def _until(kb: KnowledgeBase, hosts: Hosts, pages: int | None = None) -> None:
    """Wait until so many pages were asked for, or the run is over."""
    while (await kb.show("docs")).last_state != "completed":
        if pages is not None and len(hosts.looks()) > pages:
            return
        await asyncio.sleep(0.05)


def _asked_too_often(hosts: Hosts, trouble: int) -> list[str]:
    root = f"{hosts.ports[0]}/"  # whoever goes on with a run asks for it again
    often = {page: n for page, n in hosts.looks().items() if n > 1 + trouble and page != root}
    repeated = sum(n - 1 for page, n in hosts.looks().items() if page != root)
    if not trouble and repeated:
        return [f"{repeated} looks too many"]
    return [f"asked {n} times for {page}" for page, n in often.items()]


def written(folder: Path, url: str, delay: float) -> Path:
    """A file of settings for workers on a store."""
    file = folder / f"{'many' if delay else 'one'}.yaml"
    file.write_text(SETTINGS.format(url=url, delay=delay))
    return file


def compare(
    workers: int,
    hosts: Hosts,
    delay: float,
    blows: Sequence[str],
    seed: int,
    command: Sequence[str] = AFRESH,
) -> list[str]:
    """One undisturbed worker, then many disturbed ones; what is wrong with what they made."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="afresh-soak-")))
        server, restart = stack.enter_context(mortal(connections=20 + 8 * workers))
        stack.enter_context(hosts.serving())
        strike = {
            "kill": lambda gang: gang.kill(chance),
            "sleep": lambda gang: gang.put_to_sleep(chance),
            "restart": lambda gang: restart("immediate"),
        }
        alone = written(folder, f"sqlite:///{folder / 'alone.db'}", 0.0)
        clean = asyncio.run(crawl(hosts, alone, command, 1))
        print(f"1 worker: {len(clean.index)} pages in {clean.seconds:.1f} s", flush=True)
        shared = written(folder, server.url, delay)
        found = asyncio.run(crawl(hosts, shared, command, workers, [strike[blow] for blow in blows]))
    looks, haste = hosts.looks(), hosts.haste(delay)
    print(
        f"{workers} workers: {len(found.index)} pages in {found.seconds:.1f} s, "
        f"{found.trouble} killed or asleep, {sum(looks.values()) - len(looks)} looks repeated, "
        f"at most {haste:.3f} s too hasty",
        flush=True,
    )
    wrong = [*clean.wrong, *found.wrong]
    wrong += ["the index differs from that of one worker"] if clean.index != found.index else []
    wrong += [f"a host was asked {haste:.3f} s too early"] if haste > SLACK else []
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it and print what came of it; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m soak workers", description=__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--pages", type=int, default=200, help="of each host")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds between two looks at a host")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--blows", nargs="*", choices=sorted({*BLOWS}), default=BLOWS)
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}", flush=True)
    hosts = Hosts(given.hosts, given.pages)
    wrong = compare(given.workers, hosts, given.delay, given.blows, given.seed)
    print("\n".join(f"breach: {each}" for each in wrong) or "nothing lost, nothing twice, nobody too hasty")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
