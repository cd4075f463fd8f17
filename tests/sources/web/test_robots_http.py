"""robots.txt over HTTP (F72): one check for every row of standards/robots_http.jsonl."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.fakes.servers import Answer, Names, Raw, RecordedRequest, answer, fetching, html, redirect, serving

from afresh.model.fetch import Body, Failed, Refused, Request
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.robots import RobotsFiles

CLOSED = b"User-agent: *\nDisallow: /"
CHECKS: dict[str, Callable[[], Awaitable[None]]] = {}


def row(case: str) -> Callable[[Callable[[], Awaitable[None]]], None]:
    """Marks the check of a row."""

    def keep(check: Callable[[], Awaitable[None]]) -> None:
        CHECKS[case] = check

    return keep


async def verdict(robots: Answer, path: str = "/page", more: Mapping[str, Answer] | None = None) -> str:
    """Whether a page behind this robots.txt is fetched: "open", "closed" by a rule, or "unreachable"."""
    routes = {"/robots.txt": robots, path: html(), **(more or {})}
    async with serving(routes) as wire, fetching(timeout_seconds=0.5) as fetcher:
        gate = WebFetcher(fetcher, RobotsFiles(fetcher))
        seen = await gate.fetch(Request(url=wire.url(path)))
        assert isinstance(seen, Body) == (path in wire.paths())
        if isinstance(seen, Body):
            return "open"
        return "unreachable" if gate.state(wire.origin) == "unreachable" else "closed"


async def text(body: bytes, path: str = "/page") -> str:
    """The verdict of a robots.txt that is this text."""
    return await verdict(answer(200, body), path)


@row("200 text/plain")
async def _() -> None:
    assert await verdict(answer(200, CLOSED, content_type="text/plain")) == "closed"


@row("301/302/307/308 up to five hops")
async def _() -> None:
    for status in (301, 302, 307, 308):
        hops = {f"/r{n}": redirect(f"/r{n + 1}", status) for n in range(1, 5)}
        end = {"/r5": answer(200, CLOSED)}
        assert await verdict(redirect("/r1", status), more=hops | end) == "closed"


@row("six or more hops")
async def _() -> None:
    hops = {f"/r{n}": redirect(f"/r{n + 1}") for n in range(1, 6)}
    assert await verdict(redirect("/r1"), more=hops | {"/r6": answer(200)}) == "unreachable"


@row("400-499 (401, 403, 404, 410, 429 included)")
async def _() -> None:
    for status in (400, 401, 403, 404, 410, 418, 451, 499):
        assert await verdict(answer(status, CLOSED)) == "open"
    assert await verdict(answer(429)) == "unreachable"  # our own rule: asked again after a while


@row("500-599")
async def _() -> None:
    for status in (500, 502, 503, 504, 599):
        assert await verdict(answer(status)) == "unreachable"


@row("connect timeout / DNS error / TLS error")
async def _() -> None:
    async def hang(asked: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    assert await verdict(Raw(hang)) == "unreachable"
    async with serving({"/robots.txt": answer(404), "/": html()}) as wire:
        async with fetching(resolver=Names({}), timeout_seconds=0.5) as fetcher:
            for origin in ("http://nowhere.example", wire.origin.replace("http:", "https:")):
                gate = WebFetcher(fetcher, RobotsFiles(fetcher))
                assert isinstance(await gate.fetch(Request(url=f"{origin}/")), Failed)
                assert gate.state(origin) == "unreachable"
        assert wire.asked == []


@row("unreachable for a reasonably long time (30 days)")
async def _() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    async with serving({"/robots.txt": answer(503), "/": html()}) as wire, fetching() as fetcher:
        gate = WebFetcher(fetcher, RobotsFiles(fetcher, clock=lambda: now))
        for _ in range(2):  # it may be treated as absent then; we stay outside
            assert isinstance(await gate.fetch(Request(url=wire.url())), Failed)
            now += timedelta(days=31)
        assert wire.paths() == ["/robots.txt"] * 2


@row("cached copy older than 24 h")
async def _() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    async with serving({"/robots.txt": answer(200, CLOSED), "/": html()}) as wire, fetching() as fetcher:
        gate = WebFetcher(fetcher, RobotsFiles(fetcher, clock=lambda: now))
        for robots, kind in ((CLOSED, Refused), (None, Refused), (b"", Body)):
            wire.routes["/robots.txt"] = answer(503) if robots is None else answer(200, robots)
            assert isinstance(await gate.fetch(Request(url=wire.url())), kind)
            now += timedelta(hours=24)
        assert wire.paths().count("/robots.txt") == 3


@row("body over 500 KiB")
async def _() -> None:
    full = 500 * 1024
    assert await text(CLOSED + b"\n#" + b"x" * full) == "closed"
    assert await text(b"#" + b"x" * (full - 200) + b"\n" + CLOSED + b"\n#" + b"x" * 100_000) == "closed"
    assert await text(b"#" + b"x" * full + b"\n" + CLOSED) == "open"


@row("body is HTML")
async def _() -> None:
    assert await text(b"<!doctype html><html><body>User-agent: * Disallow: /</body></html>") == "open"


@row("UTF-8 BOM")
async def _() -> None:
    assert await text(b"\xef\xbb\xbf" + CLOSED) == "closed"


@row("CR, LF, CRLF, no final newline")
async def _() -> None:
    for end in (b"\r", b"\n", b"\r\n"):
        assert await text(CLOSED.replace(b"\n", end)) == "closed"
        assert await text(CLOSED.replace(b"\n", end) + end) == "closed"


@row("no group for us, no *")
async def _() -> None:
    assert await text(b"User-agent: otherbot\nDisallow: /") == "open"


@row("two groups for the same agent")
async def _() -> None:
    two = b"User-agent: afresh\nDisallow: /x\nUser-agent: *\nAllow: /\nUser-agent: AFRESH\nDisallow: /page"
    assert (await text(two), await text(two, "/x"), await text(two, "/y")) == ("closed", "closed", "open")


@row("/robots.txt itself")
async def _() -> None:
    async with serving({"/robots.txt": answer(200, CLOSED)}) as wire, fetching() as fetcher:
        assert await RobotsFiles(fetcher).refusal(wire.url("/robots.txt")) is None


@row("allow and disallow of equal length")
async def _() -> None:
    assert await text(b"User-agent: *\nDisallow: /page\nAllow: /page") == "open"
    assert await text(b"User-agent: *\nAllow: /page\nDisallow: /page") == "open"
    assert await text(b"User-agent: *\nAllow: /page\nDisallow: /page*") == "closed"


@row("port or scheme differs")
async def _() -> None:
    async with (
        serving({"/robots.txt": answer(200, CLOSED)}) as one,
        serving({"/": html()}) as two,
        fetching() as fetcher,
    ):
        gate = WebFetcher(fetcher, RobotsFiles(fetcher))
        assert isinstance(await gate.fetch(Request(url=one.url())), Refused)
        assert isinstance(await gate.fetch(Request(url=two.url())), Body)
        assert gate.state(one.origin.replace("http:", "https:")) == "unknown"


@row("gzip-encoded robots.txt")
async def _() -> None:
    assert await verdict(answer(200, gzip.compress(CLOSED), content_encoding="gzip")) == "closed"
    bomb = gzip.compress(CLOSED + b"\n#" + b"x" * 50_000_000)
    assert await verdict(answer(200, bomb, content_encoding="gzip")) == "closed"


@row("empty 200")
async def _() -> None:
    assert await text(b"") == "open"


async def test_F72_every_row_of_robots_http(shared: Path) -> None:
    rows = (shared / "data/standards/robots_http.jsonl").read_text().splitlines()
    assert CHECKS.keys() == {json.loads(each)["case"] for each in rows}
    for check in CHECKS.values():
        await check()
