"""`/metrics`: numbers that Prometheus reads, and that add up."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened
from tests.server.asking import ask

from afresh.server.asgi import RequestRefused, refuse
from afresh.server.telemetry import MetricsMiddleware, exposition
from afresh.testing import TinySite

LINE = re.compile(r'([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\.)*"(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*\})? (\d+(?:\.\d+)?)')


def numbers(text: str) -> dict[str, float]:
    """Every row of an exposition; each stands once, below the type of its name."""
    found: dict[str, float] = {}
    kinds: set[str] = set()
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            assert line.split()[2] not in kinds
            kinds.add(line.split()[2])
        elif not line.startswith("# HELP "):
            row = LINE.fullmatch(line)
            assert row, line
            assert re.sub("_(bucket|sum|count)$", "", row[1]) in kinds
            assert line.rpartition(" ")[0] not in found
            found[line.rpartition(" ")[0]] = float(row[3])
    return found


async def test_the_store_and_the_answers_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    time = iter((0.0, 0.02, 1.0, 1.3, 2.0, 99.0))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/no":
            await refuse(send, RequestRefused(401, "no"))
        else:
            scope["route"] = SimpleNamespace(path='/"x"/{id}\\')
            await JSONResponse({}, 200)(scope, receive, send)

    meter = MetricsMiddleware(app, lambda: next(time))
    await ask(meter, "GET", "/api/v1/7")
    await ask(meter, "BREW", "/no")
    await ask(meter, "GET", "/api/v1/8")
    with TinySite() as site:
        site.put("/", '<h1>Root</h1><p>Some text.</p><a href="/a">a</a>')
        site.put("/a", "<h1>A</h1><p>Other text.</p>")
        async with opened(tmp_path / "kb.db", {"crawl.probe": False}) as kb:
            await kb.runs.crawl(site.url, name="docs")
            await kb.runs.refresh(["docs"])
            first = numbers(await exposition(kb.status, meter))
            site.edit("/a", "Other text", "New text")
            await kb.runs.refresh(["docs"])
            second = numbers(await exposition(kb.status))
    assert first['afresh_looks_total{outcome="new"}'] == 2
    assert first['afresh_looks_total{outcome="not_modified"}'] == 2
    assert second['afresh_looks_total{outcome="not_modified"}'] == 3
    assert second['afresh_looks_total{outcome="changed"}'] == 1
    assert second['afresh_runs{state="completed"}'] == 3
    assert (second["afresh_pages"], second['afresh_queue_pages{state="waiting"}']) == (2, 0)
    assert first['afresh_http_answers_total{method="GET",route="/api/v1/\\"x\\"/{id}\\\\",status="200"}'] == 2
    assert first['afresh_http_answers_total{method="other",route="other",status="401"}'] == 1
    spans = [first[f'afresh_http_seconds_bucket{{le="{le}"}}'] for le in ("0.01", "0.025", "0.5", "10.0", "+Inf")]
    assert spans == [0, 1, 2, 2, 3]
    assert first["afresh_http_seconds_count"] == 3
