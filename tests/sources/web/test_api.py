"""The client for APIs: the operator's addresses and no others, bounded, without redirects."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.fakes.servers import Answer, Names, Raw, RecordedRequest, Wire, answer, redirect, serving

from afresh.errors import ApiError, ApiTimeout, ApiTooLarge
from afresh.ports import JsonReply
from afresh.sources.web.api_client import ApiClient

SECONDS = 5.0


@asynccontextmanager
async def calling(*addresses: str, **options: Any) -> AsyncIterator[ApiClient]:
    client = ApiClient(addresses, **options)
    try:
        yield client
    finally:
        await client.close()


async def ask(client: ApiClient, url: str, body: object = None, timeout: float = SECONDS) -> JsonReply:
    return await client.post_json(url, {"X-Key": "k"}, body, timeout)


async def test_json_goes_and_comes() -> None:
    def echo(asked: RecordedRequest) -> bytes:
        return answer(200, json.dumps({"got": json.loads(asked.body)}).encode(), x_mark="m")

    async with serving({"/v1/e?x=1": echo}) as wire, calling(wire.url("/v1")) as client:
        reply = await ask(client, wire.url("/v1/e?x=1"), {"text": "ü\ud800"})
        again = await ask(client, wire.url("/v1/e?x=1"), [1])
    assert again.json == {"got": [1]}
    assert reply.status == 200
    assert reply.json == {"got": {"text": "ü\ud800"}}
    assert reply.headers["x-mark"] == "m"
    sent = wire.asked[0]
    assert (sent.method, sent.headers["content-type"]) == ("POST", "application/json")
    assert (sent.headers["x-key"], sent.headers["accept"]) == ("k", "application/json")
    assert wire.connections == 1, "the connection is kept"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"\xff\xfe\xff", b"9" * 5_000])
async def test_what_is_no_json_is_none(body: bytes) -> None:
    async with serving({"/": answer(503, body)}) as wire, calling(wire.url()) as client:
        reply = await ask(client, wire.url())
    assert (reply.status, reply.json) == (503, None)


async def test_a_redirect_is_an_answer() -> None:
    async with serving({"/a": redirect("/b"), "/b": answer(200, b"{}")}) as wire, calling(wire.url()) as client:
        reply = await ask(client, wire.url("/a"))
    assert (reply.status, wire.paths()) == (302, ["/a"])


async def test_P15_only_what_the_operator_named_is_asked() -> None:
    async with serving({"/": answer(200, b"{}")}) as named, serving({"/": answer(200, b"{}")}) as other:
        async with calling(named.url("/v1")) as client:
            assert (await ask(client, named.url())).status == 200
            for url in (
                other.url(),
                named.url().replace("http:", "https:"),
                "http://127.0.0.1/",
                "file:///x",
                "//x",
                "",
            ):
                with pytest.raises(ApiError, match="not one of the APIs in the settings"):
                    await ask(client, url)
        assert not other.asked
        async with calling() as nothing:
            with pytest.raises(ApiError):
                await ask(nothing, named.url())


async def test_P15_a_name_may_be_private_but_never_a_cloud_service() -> None:
    """The operator's word opens a private host; whoever controls its DNS gets no metadata service."""
    async with serving({"/": answer(200, b"{}")}) as wire:
        url = f"http://models.internal:{wire.port}/"
        names = Names({"models.internal": ["127.0.0.1"]})
        async with calling(url, resolver=names) as client:
            assert (await ask(client, url)).status == 200
        names = Names({"models.internal": ["169.254.169.254"]})
        async with calling(url, resolver=names) as client:
            with pytest.raises(ApiError, match="address not allowed"):
                await ask(client, url)


async def test_an_answer_has_a_largest_size() -> None:
    async def endless(asked: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"1" * 4096)
            await writer.drain()

    bomb = answer(200, gzip.compress(b"0" * 1_000_000), content_encoding="gzip")
    routes: dict[str, Answer] = {"/endless": Raw(endless), "/bomb": bomb}
    async with serving(routes) as wire, calling(wire.url(), largest_answer=64 * 1024) as client:
        for path in routes:
            with pytest.raises(ApiError, match="larger than 64 KB"):
                await ask(client, wire.url(path))


async def test_S2_F165_a_large_answer_is_never_parsed_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"index": n, "embedding": [n / 7] * 3_072} for n in range(20)]
    body = json.dumps({"data": rows}).encode()
    whole: list[int] = []
    loads = json.loads

    def counted(text: bytes) -> object:
        whole.append(len(text))
        return loads(text)

    monkeypatch.setattr(json, "loads", counted)
    async with serving({"/": answer(200, body)}) as wire, calling(wire.url()) as client:
        reply = await ask(client, wire.url())
    assert reply.json == {"data": rows}
    assert len(body) > 512 * 1024
    assert not [size for size in whole if size > 256 * 1024]


async def test_compressed_answers_are_read_and_broken_ones_refused() -> None:
    routes = {
        "/good": answer(200, gzip.compress(b'{"a": 1}'), content_encoding="gzip"),
        "/bad": answer(200, b'{"a": 1}', content_encoding="gzip"),
        "/odd": answer(200, b"x", content_encoding="br"),
    }
    async with serving(routes) as wire, calling(wire.url()) as client:
        assert (await ask(client, wire.url("/good"))).json == {"a": 1}
        for path in ("/bad", "/odd"):
            with pytest.raises(ApiError):
                await ask(client, wire.url(path))


async def test_a_deadline_is_for_the_whole_call() -> None:
    async def drip(asked: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving({"/": Raw(drip)}) as wire, calling(wire.url()) as client:
        with pytest.raises(ApiTimeout, match=r"within 0\.2 s"):
            await ask(client, wire.url(), timeout=0.2)


async def test_no_connection_is_an_error_in_plain_words() -> None:
    async with serving() as wire:
        gone = Wire(origin=wire.origin)
    async with calling(gone.url()) as client:
        with pytest.raises(ApiError, match=r"no connection to 127\.0\.0\.1"):
            await ask(client, gone.url())


async def test_a_cancelled_call_is_cancelled() -> None:
    asked = asyncio.Event()

    async def hang(request: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with serving({"/": Raw(hang)}) as wire, calling(wire.url()) as client:
        call = asyncio.create_task(ask(client, wire.url()))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_what_is_asked_for_comes_as_bytes_up_to_a_limit_of_its_own() -> None:
    routes: dict[str, Answer] = {"/a": answer(200, b"x" * 2_000, etag='"1"'), "/b": answer(404, b"no")}
    async with serving(routes) as wire, calling(wire.url()) as client:
        found = await client.get(wire.url("/a"), {"If-None-Match": '"0"'}, SECONDS)
        missing = await client.get(wire.url("/b"), {}, SECONDS)
        with pytest.raises(ApiTooLarge, match="larger than 1 KB"):
            await client.get(wire.url("/a"), {}, SECONDS, largest=1_999)
        with pytest.raises(ApiError, match="not one of the APIs in the settings"):
            await client.get("http://127.0.0.1:1/a", {}, SECONDS)
    assert (found.status, found.data, found.headers["etag"]) == (200, b"x" * 2_000, '"1"')
    assert (missing.status, missing.data) == (404, b"no")
    assert (wire.asked[0].method, wire.asked[0].if_none_match) == ("GET", '"0"')
