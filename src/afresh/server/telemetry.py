"""Metrics in the Prometheus text format, and a span for each request."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afresh.ops.tracing import Spans
from afresh.server.asgi import route_of
from afresh.services.status import Metrics, StatusService

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
Labels = tuple[tuple[str, str], ...]
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class MetricsMiddleware:
    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.perf_counter) -> None:
        self._app = app
        self._clock = clock
        self.answers: Counter[Labels] = Counter()
        self.spans = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        self.answers[(("method", method), ("route", route_of(scope)), ("status", str(status)))] += 1
        self.spans[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


async def exposition(status: StatusService, meter: MetricsMiddleware | None = None) -> str:
    return "".join((*_of_store(await status.figures()), *(_of_answers(meter) if meter else ())))


def _of_store(figures: Metrics) -> Iterable[str]:
    totals, sums = figures.totals, figures.sums
    waiting = {"waiting": totals["pending"], "held": totals["in_flight"]}
    yield _by("state", "afresh_queue_pages", "gauge", "Queued pages: waiting, or claimed by a worker.", waiting)
    for name, text in (
        ("sources", "Sources."),
        ("pages", "Indexed pages."),
        ("chunks", "Indexed passages."),
        ("doubtful", "Doubtful pages: their latest response looks like an error, login or empty page."),
    ):
        yield _metric(f"afresh_{name}", "gauge", text, [((), totals[name])])
    yield _by("outcome", "afresh_looks_total", "counter", "Page fetches by outcome.", figures.outcomes)
    for name, text in (
        ("bytes", "Bytes downloaded."),
        ("ai_calls", "Calls to language models."),
        ("ai_tokens", "Tokens used by language models."),
        ("chunks_embedded", "Passages embedded."),
        ("links_scored", "Links scored."),
    ):
        yield _metric(f"afresh_{name}_total", "counter", text, [((), sums[name])])
    worked = sums["worked_ms"] / 1000
    yield _metric("afresh_run_seconds_total", "counter", "Working time of runs in seconds.", [((), worked)])
    yield _by("state", "afresh_runs", "gauge", "Runs by state.", figures.runs)
    copies = {(("sink", sink), ("state", state)): number for (sink, state), number in figures.copies.items()}
    yield _metric("afresh_copies", "gauge", "Copies in external stores by state.", copies.items())
    yield _by("state", "afresh_webhook_messages", "gauge", "Outgoing webhook messages by state.", figures.messages)


def _of_answers(meter: MetricsMiddleware) -> Iterable[str]:
    yield _metric("afresh_http_answers_total", "counter", "HTTP responses of this process.", meter.answers.items())
    name = "afresh_http_seconds"
    yield f"# HELP {name} Time to the start of the response in seconds.\n# TYPE {name} histogram\n"
    so_far = 0
    for bound, number in zip((*map(str, BOUNDS), "+Inf"), meter.spans, strict=True):
        so_far += number
        yield f'{name}_bucket{{le="{bound}"}} {so_far}\n'
    yield f"{name}_sum {meter.seconds:.6f}\n{name}_count {so_far}\n"


def _by(label: str, name: str, kind: str, text: str, counts: Mapping[str, float]) -> str:
    return _metric(name, kind, text, [(((label, key),), number) for key, number in counts.items()])


def _metric(name: str, kind: str, text: str, rows: Iterable[tuple[Labels, float]]) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, number in rows:
        pairs = ",".join(f'{key}="{value.translate(_ESCAPED)}"' for key, value in labels)
        lines.append(f"{name}{f'{{{pairs}}}' if pairs else ''} {number}")
    return "\n".join(lines) + "\n"


class TracingMiddleware:
    """An ASGI middleware that records a span for each request, from its start to the last byte of the response."""

    def __init__(self, app: ASGIApp, recorder: Spans) -> None:
        self._app = app
        self._recorder = recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "other"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        caller = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        with self._recorder.span(method, {"http.request.method": method}, caller) as note:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status, route = message["status"], route_of(scope)
                    note.add({"http.response.status_code": status, "http.route": route})
                    note.rename(f"{method} {route}", failed=status >= 500)
                await send(message)

            await self._app(scope, receive, noted)
