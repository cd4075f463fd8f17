"""Servers that are down, slow, broken or hostile (F30, F31, F53-F59)."""

import asyncio
import gzip
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest
from aiohttp.client_reqrep import ConnectionKey
from tests.adapters.servers import Asked, Names, Raw, answer, fetching, html, serving

from afresh.core.looks import Body, Failed, Outcome, Refused, Request
from afresh.fetchers.trouble import trouble

MEGABYTE = 1024 * 1024


def _gzip(data: bytes) -> bytes:
    """Without the time of day: parameters name tests, and every worker must find the same names."""
    return gzip.compress(data, mtime=0)


async def _seen(raw: bytes | Raw, **options: float) -> object:
    async with serving({"/": raw}) as wire, fetching(**options) as fetcher:
        return await fetcher.fetch(Request(url=wire.url()))


async def _failure(raw: bytes | Raw, **options: float) -> Failed:
    seen = await _seen(raw, **options)
    assert isinstance(seen, Failed), seen
    return seen


async def _refusal(raw: bytes | Raw, **options: float) -> Refused:
    """What is found again however often it is asked for: a failure would make every run partial."""
    seen = await _seen(raw, **options)
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


async def test_F30_a_closed_port_fails_without_telling_the_address() -> None:
    names = Names({"docs.example.org": ["127.0.0.1"]})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with fetching(resolver=names) as fetcher:
        seen = await fetcher.fetch(Request(url=f"http://docs.example.org:{port}/"))
    assert isinstance(seen, Failed)
    assert (seen.outcome, seen.reason) == (
        Outcome.FAILED,
        "no connection to docs.example.org: connection refused",
    )


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
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no TLS connection to 127.0.0.1 (does it speak plain http?)"),
        (b"", "no TLS connection to 127.0.0.1 (does it speak plain http?)"),
        (
            b"\x15\x03\x03\x00\x02\x02\x28",
            "no TLS connection to 127.0.0.1",
        ),  # the alert of one who speaks TLS
    ],
)
async def test_F31_tls_against_a_port_that_will_not(last_words: bytes, reason: str) -> None:
    async with _listening(last_words) as url, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=url))
    assert seen == Failed(outcome=Outcome.FAILED, reason=reason)


def test_F31_a_cause_that_is_not_known_is_not_made_up() -> None:
    for tls, reason in (
        (True, "no connection to x.org"),
        (ssl.create_default_context(), "no TLS connection to x.org (does it speak plain http?)"),
    ):
        key = ConnectionKey("x.org", 80, tls is not True, tls, None, None, None)
        error = aiohttp.ClientConnectorError(key, ConnectionResetError())
        assert trouble(error, "x.org", 1.0) == Failed(outcome=Outcome.FAILED, reason=reason)


async def test_F31_a_silent_server_is_left_after_the_idle_deadline() -> None:
    with _silent_port() as port:
        async with fetching(idle_seconds=0.1) as fetcher:
            seen = await fetcher.fetch(Request(url=f"http://127.0.0.1:{port}/"))
    assert seen == Failed(outcome=Outcome.TIMEOUT, reason="nothing came for 0.1 s")


async def _drip(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _drip_head(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("drip", [_drip, _drip_head])
async def test_F53_a_slow_loris_is_cut_at_the_total_deadline(drip: object) -> None:
    started = time.monotonic()
    seen = await _failure(Raw(drip), total_seconds=0.3)  # type: ignore[arg-type]
    assert (seen.outcome, seen.reason) == (Outcome.TIMEOUT, "not finished within 0.3 s")
    assert time.monotonic() - started < 2


async def test_F53_the_total_deadline_spans_all_hops() -> None:
    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        to = int(asked.path[1:]) + 1
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: /{to}\r\nContent-Length: 0\r\n\r\n".encode())

    async with (
        serving({f"/{n}": Raw(slow) for n in range(9)}) as wire,
        fetching(total_seconds=0.4) as fetcher,
    ):
        seen = await fetcher.fetch(Request(url=wire.url("/0")))
    assert isinstance(seen, Failed)
    assert seen.outcome is Outcome.TIMEOUT
    assert len(wire.asked) <= 3


async def _endless_head(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"X-Header: y\r\n" * 100)
        await writer.drain()


@pytest.mark.parametrize(
    "head",
    [
        Raw(_endless_head),
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * MEGABYTE + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"y" * 15_000 + b"\r\n") * 6 + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 " + b"O" * MEGABYTE + b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 999999 Odd\r\n\r\n",
        b"\x00\x01\x02",
        b"",
    ],
)
async def test_F54_heads_that_are_endless_huge_or_broken(head: bytes | Raw) -> None:
    async def write(asked: Asked, writer: asyncio.StreamWriter) -> None:
        assert isinstance(head, bytes)
        writer.write(head)

    seen = await _failure(head if isinstance(head, Raw) else Raw(write), total_seconds=5.0)
    assert seen.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nhello1234",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + _gzip(b"x" * 500)[:20],
    ],
)
async def test_F55_F56_a_body_that_breaks_off_or_is_framed_wrongly_is_no_content(raw: bytes) -> None:
    async def write(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    await _failure(Raw(write))


async def test_F56_surplus_bytes_never_reach_the_next_answer() -> None:
    surplus = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
    )
    both = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n0\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
    )
    for raw in (surplus, both):
        async with serving({"/a": raw, "/b": html("good")}) as wire, fetching() as fetcher:
            await fetcher.fetch(Request(url=wire.url("/a")))
            following = await fetcher.fetch(Request(url=wire.url("/b")))
        assert isinstance(following, Body)
        assert following.data == b"good"


async def _endless_body(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    while not writer.is_closing():
        writer.write(chunk)
        await writer.drain()


async def test_F57_an_endless_body_is_cut_at_the_cap() -> None:
    before = psutil.Process().memory_info().rss
    seen = await _refusal(Raw(_endless_body))
    assert seen.reason == "body larger than 10 MB"
    assert psutil.Process().memory_info().rss - before < 40 * MEGABYTE  # P11


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("length", [10 * MEGABYTE + 1, 1024 * MEGABYTE])
async def test_F57_an_announced_giant_is_not_downloaded(length: int, coding: str) -> None:
    """The body never comes: whoever waits for it meets the deadline."""
    head = answer(200, content_length=str(length), content_encoding=coding)
    seen = await _refusal(head, idle_seconds=5.0)
    assert seen.reason == "body larger than 10 MB"


def _bomb(coding: str) -> bytes:
    packer = zlib.compressobj(1, wbits={"gzip": 31, "deflate": 15, "raw": -15}[coding])
    zeros = bytes(MEGABYTE)
    return b"".join(packer.compress(zeros) for _ in range(64)) + packer.flush()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw"])
async def test_F58_a_bomb_is_cut_at_the_decoded_cap(coding: str) -> None:
    body = _bomb(coding)
    before, started = psutil.Process().memory_info().rss, time.process_time()
    seen = await _refusal(answer(200, body, content_encoding="gzip" if coding == "gzip" else "deflate"))
    assert seen.reason == "body larger than 10 MB"
    assert time.process_time() - started < 2
    assert psutil.Process().memory_info().rss - before < 40 * MEGABYTE


async def test_F58_endless_empty_gzip_members_are_cut() -> None:
    empty = gzip.compress(b"")

    async def members(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
        while not writer.is_closing():
            writer.write(empty * 3000)
            await writer.drain()

    started = time.process_time()
    seen = await _failure(Raw(members))
    assert seen.reason == "the gzip body has too many parts"
    assert time.process_time() - started < 2


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
    seen = await _seen(answer(200, body, content_encoding=coding))
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
    await _failure(answer(200, body, content_encoding=coding))


@pytest.mark.parametrize("coding", ["br", "zstd", "nonsense", "gzip, gzip"])
async def test_F59_a_coding_that_was_not_offered_is_refused(coding: str) -> None:
    seen = await _refusal(answer(200, b"hello", content_encoding=coding))
    assert seen.reason == f"content coding {coding} is not supported"


async def test_F57_F58_a_coded_body_that_exceeds_its_cap_unannounced_is_refused() -> None:
    stuffed = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"x" * 11 * MEGABYTE  # a file name that never ends

    async def write(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + stuffed)

    assert (await _refusal(Raw(write))).reason == "body larger than 10 MB"


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
