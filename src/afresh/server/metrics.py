"""`/metrics` in the text form of Prometheus: numbers of the store, and of this process's own answers."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable

from afresh.server.asgi import App, Message, Receive, Scope, Send, route_of
from afresh.services.status import Figures, StatusService

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
Labels = tuple[tuple[str, str], ...]


class Meter:
    """An ASGI application around another one, which counts answers and how long they took."""

    def __init__(self, app: App, clock: Callable[[], float] = time.perf_counter) -> None:
        self._app = app
        self._clock = clock
        self.answers: Counter[Labels] = Counter()
        self.spans = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; a stream is counted when it begins, not when it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"], self._clock() - began)
            await send(message)

        await self._app(scope, receive, counted)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = route_of(scope)
        self.answers[(("method", method), ("route", route), ("status", str(status)))] += 1
        self.spans[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


async def exposition(status: StatusService, meter: Meter | None = None) -> str:
    """All numbers, in the form that Prometheus reads."""
    figures = await status.figures()
    parts = [*_of_store(figures), *(_of_answers(meter) if meter else ())]
    return "".join(parts)


def _of_store(figures: Figures) -> Iterable[str]:
    totals = figures.totals
    waiting = {(("state", "waiting"),): totals["pending"], (("state", "held"),): totals["in_flight"]}
    yield _told("afresh_queue_pages", "gauge", "Pages to be looked at, waiting or in hand.", waiting.items())
    for name in ("sources", "pages", "chunks", "doubtful"):
        yield _told(f"afresh_{name}", "gauge", f"How many {name} are on record.", [((), totals[name])])
    looks = {(("outcome", name),): number for name, number in figures.outcomes.items()}
    yield _told("afresh_looks_total", "counter", "Looks at pages, by what they showed.", looks.items())
    sums = figures.sums
    for name, text in (
        ("bytes", "Bytes that were read."),
        ("ai_calls", "Calls of language models."),
        ("ai_tokens", "Tokens that those took."),
        ("chunks_embedded", "Chunks that were given vectors."),
        ("links_scored", "Links that were scored."),
    ):
        yield _told(f"afresh_{name}_total", "counter", text, [((), sums[name])])
    worked = sums["worked_ms"] / 1000
    yield _told("afresh_run_seconds_total", "counter", "Time that runs were worked on.", [((), worked)])
    runs = {(("state", state),): number for state, number in figures.runs.items()}
    yield _told("afresh_runs", "gauge", "Runs by state.", runs.items())
    copies = {(("sink", sink), ("state", state)): number for (sink, state), number in figures.copies.items()}
    yield _told("afresh_copies", "gauge", "Copies in external stores by state.", copies.items())
    letters = {(("state", state),): number for state, number in figures.letters.items()}
    yield _told("afresh_webhook_messages", "gauge", "Messages to others by state.", letters.items())


def _of_answers(meter: Meter) -> Iterable[str]:
    yield _told("afresh_http_answers_total", "counter", "Answers of this process.", meter.answers.items())
    name = "afresh_http_seconds"
    yield f"# HELP {name} Time until an answer began.\n# TYPE {name} histogram\n"
    so_far = 0
    for bound, number in zip((*map(str, BOUNDS), "+Inf"), meter.spans, strict=True):
        so_far += number
        yield f'{name}_bucket{{le="{bound}"}} {so_far}\n'
    yield f"{name}_sum {meter.seconds:.6f}\n{name}_count {so_far}\n"


def _told(name: str, kind: str, text: str, rows: Iterable[tuple[Labels, float]]) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {number}" for labels, number in rows]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
