"""P2, P3: run many workers on one run of many hosts, with kills, pauses and database restarts."""

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.postgres import mortal

from afresh.app import build
from afresh.config import load
from afresh.kb import KnowledgeBase
from soak.hosts import WINDOW, Hosts
from soak.kills import AFRESH

SETTINGS = """\
store: {{url: "{url}"}}
network: {{allow: ["127.0.0.1/32"]}}
crawl: {{probe: false, scope: domain, max_pages: 100000, delay_seconds: {delay}}}
policy: {{lease_seconds: 4, heartbeat_seconds: 1, backoff_base_seconds: 0.01, backoff_max_seconds: 0.02}}
embedding: {{provider: none}}
"""
SLACK = 0.02  # seconds beside what the hosts themselves were late
ASLEEP = 8.0  # seconds: two leases
BLOWS = ("kill", "restart", "sleep", "kill", "restart", "kill", "sleep")


class Gang:
    """The worker processes on one store."""

    def __init__(self, command: Sequence[str], settings: Path, number: int) -> None:
        self._command = [*command, "worker", "--quiet", "--config", str(settings)]
        self.processes = [self._start() for _ in range(number)]
        self.disruptions = 0  # kills and sleeps

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, chance: random.Random) -> None:
        """Kill a worker and start another one."""
        place = chance.randrange(len(self.processes))
        self.processes[place].kill()
        self.processes[place].wait()
        self.processes[place] = self._start()
        self.disruptions += 1

    def put_to_sleep(self, chance: random.Random) -> None:
        """Pause a worker for longer than its lease."""
        process = chance.choice(self.processes)
        process.send_signal(signal.SIGSTOP)
        threading.Timer(ASLEEP, process.send_signal, (signal.SIGCONT,)).start()
        self.disruptions += 1

    def exit_codes(self) -> list[int]:
        """Return how the workers ended; nothing while one of them is alive."""
        codes = [process.poll() for process in self.processes]
        return [] if None in codes else [code for code in codes if code is not None]

    def leave(self) -> list[int]:
        """Stop all workers; return their exit codes."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        return [process.wait(60) for process in self.processes]


@dataclass
class Outcome:
    """The results of a run."""

    index: dict[str, str | None]
    seconds: float
    disruptions: int
    wrong: list[str]


async def crawl(
    hosts: Hosts, settings: Path, command: Sequence[str], workers: int, blows: Sequence[Callable[[Gang], None]] = ()
) -> Outcome:
    """Queue a run, disturb its workers several times, and return what the store has at the end."""
    root, wanted = f"http://127.0.0.1:{hosts.ports[0]}/", hosts.number * hosts.pages
    hosts.forget()
    kb = await build(load(settings, {}, {}, settings.parent))
    began = time.monotonic()
    gang = Gang(command, settings, workers)
    try:
        await kb.runs.crawl(root, name="docs", queue=True)
        for number, blow in enumerate(blows, 1):
            await _until(kb, hosts, gang, number * wanted // (len(blows) + 2))
            await asyncio.to_thread(blow, gang)
        await _until(kb, hosts, gang)
        seconds = time.monotonic() - began
        pages = await kb.pages.of_source("docs")
        index = {page.url: page.content_hash for page in pages}
        codes = gang.leave()
        hosts.listen()
        status = await kb.status.get()
    finally:
        gang.leave()
        await kb.close()
    wrong = [f"{len(index)} of {wanted} pages"] if len(index) != wanted else []
    wrong += ["a page twice"] if len(pages) != len(index) else []
    wrong += [f"{status.in_flight} pages are still held"] if status.in_flight else []
    wrong += [f"workers ended with {codes}"] if any(codes) else []
    return Outcome(index, seconds, gang.disruptions, [*wrong, *_asked_too_often(hosts, gang.disruptions)])


async def _until(kb: KnowledgeBase, hosts: Hosts, gang: Gang, pages: int | None = None) -> None:
    """Wait until a number of pages was requested or the run has ended; raise if no worker is left."""
    while (await kb.sources.view("docs")).last_state != "completed":
        if codes := gang.exit_codes():
            raise RuntimeError(f"all workers have ended, with {codes}")
        hosts.listen()
        if pages is not None and len(hosts.looks()) > pages:
            return
        await asyncio.sleep(0.05)


def _asked_too_often(hosts: Hosts, disruptions: int) -> list[str]:
    root = f"{hosts.ports[0]}/"  # whoever goes on with a run asks for it again
    often = {page: n for page, n in hosts.looks().items() if n > 1 + disruptions and page != root}
    repeated = sum(n - 1 for page, n in hosts.looks().items() if page != root)
    if not disruptions and repeated:
        return [f"{repeated} looks too many"]
    return [f"asked {n} times for {page}" for page, n in often.items()]


def written(folder: Path, url: str, delay: float) -> Path:
    """Write the settings file of the workers; return its path."""
    file = folder / f"{'many' if delay else 'one'}.yaml"
    file.write_text(SETTINGS.format(url=url, delay=delay))
    return file


def compare(
    workers: int, hosts: Hosts, delay: float, blows: Sequence[str], seed: int, command: Sequence[str] = AFRESH
) -> list[str]:
    """Run one undisturbed worker, then many disturbed ones; return what is wrong with the results."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="afresh-soak-")))
        server, restart = stack.enter_context(mortal(connections=20 + 8 * workers))
        stack.enter_context(hosts.serving(folder))
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
    looks, (haste, hastiest) = hosts.looks(), hosts.haste(delay)
    print(
        f"{workers} workers: {len(found.index)} pages in {found.seconds:.1f} s, "
        f"{found.disruptions} killed or asleep, {sum(looks.values()) - len(looks)} looks repeated, "
        f"{WINDOW} looks at most {haste:.3f} s too close (stamped at most {hosts.late:.3f} s late)",
        flush=True,
    )
    wrong = [*clean.wrong, *found.wrong]
    wrong += ["the index differs from that of one worker"] if clean.index != found.index else []
    if haste > hosts.late + SLACK:
        wrong.append(f"a host was asked {haste:.3f} s too early: {hastiest}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the test and print the results; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m soak workers", description=__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--pages", type=int, default=200, help="pages of each host")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds between two requests to a host")
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
