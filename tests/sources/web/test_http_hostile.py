"""Servers that are down, slow, broken or hostile (F30, F31, F53-F59)."""

import asyncio
import gzip
import socket
import ssl
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from tests.fakes.hostile import HostileSite, Script
from tests.fakes.lies import chain
from tests.fakes.servers import Names, fetching, html, serving
from tests.fakes.tricks import (
    MEGABYTE,
    bomb,
    both_framings,
    broken_chunks,
    coded,
    drip,
    endless,
    flood,
    giant,
    lengths,
    members,
    surplus,
    then_close,
    truncated,
)
from tests.fakes.wire import answer

from afresh.model.fetch import Body, Failed, Outcome, Refused, Request
from afresh.sources.web.client import request_failure


def _gzip(data: bytes) -> bytes:
    """Without the time of day: parameters name tests, and every worker must find the same names."""
    return gzip.compress(data, mtime=0)


async def _seen(script: Script, **options: float) -> object:
    with HostileSite() as site:
        site.put("/", "<p>a page</p>")
        site.say("/", script)
        async with fetching(**options) as fetcher:
            return await fetcher.fetch(Request(url=site.url))


async def _failure(script: Script, **options: float) -> Failed:
    seen = await _seen(script, **options)
    assert isinstance(seen, Failed), seen
    return seen


async def _refusal(script: Script, **options: float) -> Refused:
    """What is found again however often it is asked for: a failure would make every run partial."""
    seen = await _seen(script, **options)
    assert isinstance(seen, Refused), seen
    assert (seen.outcome, seen.status_code) == (Outcome.FAILED, 200)
    return seen


@contextmanager
def _silent_port() -> Iterator[int]:
    """A port that accepts connections by the kernel and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        yield listener.getsockname()[1]


async def test_F30_a_closed_port_fails_without_naming_the_address() -> None:
    names = Names({"docs.example.org": ["127.0.0.1"]})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with fetching(resolver=names) as fetcher:
        seen = await fetcher.fetch(Request(url=f"http://docs.example.org:{port}/"))
    assert isinstance(seen, Failed)
    assert (seen.outcome, seen.reason) == (Outcome.FAILED, "no connection to docs.example.org: connection refused")


async def test_F31_a_name_that_does_not_resolve() -> None:
    async with fetching(resolver=Names({})) as fetcher:
        seen = await fetcher.fetch(Request(url="http://nowhere.example/"))
    assert isinstance(seen, Failed)
    assert seen.reason == "the name nowhere.example cannot be resolved"


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout k.pem -out c.pem"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    return context


async def test_F31_a_self_signed_certificate_is_not_trusted(self_signed: ssl.SSLContext) -> None:
    async with serving({"/": html()}, tls=self_signed) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
        plain = await fetcher.fetch(Request(url=wire.url().replace("https", "http")))
    assert isinstance(seen, Failed)
    assert seen.reason == "the TLS certificate of 127.0.0.1 is not valid"
    assert isinstance(plain, Failed)


@asynccontextmanager
async def _listening(last_words: bytes) -> AsyncIterator[str]:
    """A server that hears a few bytes, says its last words and closes; its https address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(MEGABYTE)
        writer.write(last_words)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    ("last_words", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no TLS connection to 127.0.0.1 (does the host only support http?)"),
        (b"", "no TLS connection to 127.0.0.1 (does the host only support http?)"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "no TLS connection to 127.0.0.1"),  # the alert of one who speaks TLS
    ],
)
async def test_F31_tls_against_a_port_that_will_not(last_words: bytes, reason: str) -> None:
    async with _listening(last_words) as url, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=url))
    assert seen == Failed(outcome=Outcome.FAILED, reason=reason)


def test_F31_a_cause_that_is_not_known_is_not_made_up() -> None:
    for tls, reason in (
        (True, "no connection to x.org"),
        (ssl.create_default_context(), "no TLS connection to x.org (does the host only support http?)"),
    ):
        key = ConnectionKey("x.org", 80, tls is not True, tls, None, None, None)
        error = aiohttp.ClientConnectorError(key, ConnectionResetError())
        assert request_failure(error, "x.org", 1.0) == Failed(outcome=Outcome.FAILED, reason=reason)


async def test_F31_a_silent_server_is_left_after_the_idle_deadline() -> None:
    with _silent_port() as port:
        async with fetching(idle_seconds=0.1) as fetcher:
            seen = await fetcher.fetch(Request(url=f"http://127.0.0.1:{port}/"))
    assert seen == Failed(outcome=Outcome.TIMEOUT, reason="nothing received for 0.1 s")


@pytest.mark.parametrize("part", ["head", "body"])
async def test_F53_a_slow_loris_is_cut_at_the_total_deadline(part: Literal["head", "body"]) -> None:
    started = time.monotonic()
    seen = await _failure(drip(part), timeout_seconds=0.3)
    assert (seen.outcome, seen.reason) == (Outcome.TIMEOUT, "not complete within 0.3 s")
    assert time.monotonic() - started < 2


async def test_F53_the_total_deadline_spans_all_hops() -> None:
    with HostileSite() as site:
        site.say("/*", chain("/"))
        for number in range(9):
            site.slow(f"/{number}", 0.15)
        async with fetching(timeout_seconds=0.4) as fetcher:
            seen = await fetcher.fetch(Request(url=site.at("/0")))
    assert isinstance(seen, Failed)
    assert seen.outcome is Outcome.TIMEOUT
    assert len(site.requests) <= 3


async def test_F53_interim_answers_without_end_are_cut_too() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"HTTP/1.1 103 Early Hints\r\n\r\n"

    seen = await _failure(lambda asked, own: pieces(), timeout_seconds=0.3)
    assert seen.outcome is Outcome.TIMEOUT


@pytest.mark.parametrize(
    "head",
    [
        flood("endless"),
        flood("giant"),
        flood("many"),
        then_close(b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"y" * 15_000 + b"\r\n") * 6 + b"Content-Length: 0\r\n\r\n"),
        then_close(b"HTTP/1.1 200 " + b"O" * MEGABYTE + b"\r\n\r\n"),
        then_close(b"nonsense\r\n\r\n"),
        then_close(b"HTTP/1.1 999999 Odd\r\n\r\n"),
        then_close(b"\x00\x01\x02"),
        then_close(b""),
    ],
    ids=["endless", "giant", "many", "large in all", "phrase", "nonsense", "status", "binary", "nothing"],
)
async def test_F54_heads_that_are_endless_huge_or_broken(head: Script) -> None:
    seen = await _failure(head, timeout_seconds=20.0)
    assert seen.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "script",
    [
        truncated(),
        broken_chunks("short"),
        broken_chunks("unended"),
        broken_chunks("size"),
        broken_chunks("negative"),
        broken_chunks("huge"),
        lengths("5", "9"),
        lengths("-5"),
        lengths("5x"),
        lengths("99"),
        then_close(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + _gzip(b"x" * 500)[:20]),
    ],
    ids=["truncated", "short", "unended", "size", "negative", "huge", "two", "minus", "odd", "more", "gzip"],
)
async def test_F55_F56_a_body_that_breaks_off_or_is_framed_wrongly_is_no_content(script: Script) -> None:
    await _failure(script)


@pytest.mark.parametrize("raw", [surplus, both_framings])
async def test_F56_surplus_bytes_never_reach_the_next_answer(raw: Callable[[bytes], bytes]) -> None:
    with HostileSite() as site:
        site.say("/a", raw(answer(200, b"EVIL"))).say("/b", answer(200, b"good"))
        async with fetching() as fetcher:
            first = await fetcher.fetch(Request(url=site.at("/a")))
            following = await fetcher.fetch(Request(url=site.at("/b")))
    assert isinstance(following, Body)
    assert following.data == b"good"
    assert not isinstance(first, Body) or first.data == b"hello"  # the exact length, or an error


@pytest.mark.parametrize(
    "script",
    [endless(), giant(1024 * MEGABYTE, announced=False), giant(11 * MEGABYTE), giant(1024 * MEGABYTE)],
    ids=["endless", "unannounced", "11 MB", "1 GB"],
)
async def test_F57_a_giant_is_cut_at_the_cap(script: Script) -> None:
    assert (await _refusal(script)).reason == "body larger than 10 MB"


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_F57_an_announced_giant_is_not_downloaded(coding: str) -> None:
    """The body never comes: whoever waits for it meets the deadline."""
    head = answer(200, content_length=str(1024 * MEGABYTE), content_encoding=coding)
    seen = await _refusal(head, idle_seconds=5.0)
    assert seen.reason == "body larger than 10 MB"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw"])
async def test_F58_a_bomb_of_10_GB_is_cut_at_the_decoded_cap(coding: str) -> None:
    body = bomb(coding, 9_000)
    started = time.process_time()
    assert (await _refusal(body)).reason == "body larger than 10 MB"
    assert time.process_time() - started < 2


async def test_F58_a_bomb_in_a_bomb_is_refused_or_stays_packed() -> None:
    twice = await _refusal(bomb("nested", 9_000))
    assert twice.reason == "content coding gzip, gzip is not supported"
    other = await _refusal(bomb("nested", 9_000, named="br"))
    assert other.reason == "content coding br is not supported"
    once = await _seen(bomb("nested", 500, named="gzip"))
    assert isinstance(once, Body)
    assert once.data[:2] == b"\x1f\x8b"  # what is inside is not undone: F66 calls it gzip data


async def test_F58_endless_empty_gzip_members_are_cut() -> None:
    started = time.process_time()
    seen = await _failure(members())
    assert seen.reason == "the gzip body has too many parts"
    assert time.process_time() - started < 2


PEAKS = """
import asyncio, pathlib, sys
from tests.fakes.servers import fetching
from afresh.model.fetch import Request

async def main():
    async with fetching() as fetcher:
        for url in sys.argv[1:]:
            await fetcher.fetch(Request(url=url))
            print(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

asyncio.run(main())
"""


async def test_F57_F58_P11_a_hostile_body_costs_no_more_than_its_cap_and_30_MB() -> None:
    """Peaks of a process that does nothing else; the first page is a good one and gives the level."""
    scripts = {
        "/": answer(200, b"good"),
        "/endless": endless(),
        "/giant": giant(1024 * MEGABYTE, announced=False),
        "/bomb": bomb("gzip", 9_000),
        "/raw": bomb("raw", 9_000),
        "/members": members(),
        "/flood": flood("endless"),
        "/huge": flood("giant"),
    }
    with HostileSite() as site:
        for path, script in scripts.items():
            site.say(path, script)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PEAKS, *(site.at(path) for path in scripts), stdout=asyncio.subprocess.PIPE
        )
        message, _ = await process.communicate()
    level, *peaks = (int(line) * 1024 for line in message.split())
    assert len(peaks) == len(scripts) - 1
    assert max(peaks) - level <= 40 * MEGABYTE


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", _gzip(b"hello")),
        ("x-gzip", _gzip(b"hello")),
        ("GZIP", _gzip(b"hel") + _gzip(b"lo")),
        ("gzip", _gzip(b"hello") + b"\0\0\0garbage"),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello", wbits=-15)),
        ("identity", b"hello"),
        ("", b"hello"),
    ],
)
async def test_F59_what_is_offered_is_decoded(coding: str, body: bytes) -> None:
    seen = await _seen(coded(coding, body))
    assert isinstance(seen, Body)
    assert seen.data == b"hello"


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"plain text under a gzip header"),
        ("gzip", _gzip(b"hello")[:-3]),
        ("deflate", b"\x78\x9cnot deflate at all"),
    ],
)
async def test_F59_bodies_that_are_not_coded_as_they_say_fail(coding: str, body: bytes) -> None:
    await _failure(coded(coding, body))


@pytest.mark.parametrize("coding", ["br", "zstd", "nonsense", "gzip, gzip"])
async def test_F59_a_coding_that_was_not_offered_is_refused(coding: str) -> None:
    seen = await _refusal(coded(coding, b"hello"))
    assert seen.reason == f"content coding {coding} is not supported"


async def test_F57_F58_a_coded_body_that_exceeds_its_cap_unannounced_is_refused() -> None:
    stuffed = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"x" * 11 * MEGABYTE  # a file name that never ends

    raw = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + stuffed
    assert (await _refusal(then_close(raw))).reason == "body larger than 10 MB"


async def test_an_empty_gzip_body_is_empty() -> None:
    seen = await _seen(answer(200, b"", content_encoding="gzip"))
    assert isinstance(seen, Body)
    assert seen.data == b""


async def test_large_pages_arrive_whole() -> None:
    text = bytes(range(256)) * 12_000
    for raw in (answer(200, text), answer(200, gzip.compress(text), content_encoding="gzip")):
        seen = await _seen(raw)
        assert isinstance(seen, Body)
        assert seen.data == text
