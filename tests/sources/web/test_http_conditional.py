"""Conditional requests (F44-F48), by the rows of standards/conditional.jsonl."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.servers import Answer, Wire, answer, fetching, html, redirect, serving

from afresh.model.fetch import Body, Failed, Fetched, NotModified, Refused, Request, Validators

DATE = "Sat, 29 Oct 1994 19:43:31 GMT"


def _stored(stored: Any) -> Validators | None:
    if stored is None:
        return None
    return Validators(**stored) if isinstance(stored, dict) else Validators(etag=stored)


def _scripted(response: dict[str, Any]) -> bytes:
    headers = {name.lower().replace("-", "_"): value for name, value in response.items() if name[0].isupper()}
    return answer(response["status"], response.get("body", "").encode(), **headers)


async def _looked(row: dict[str, Any]) -> tuple[Fetched, Wire]:
    response = row["response"]
    chain = response.get("chain")
    routes = {"/": redirect("/end"), "/end": answer(304)} if chain else {"/": _scripted(response)}
    async with serving(routes) as wire, fetching() as fetcher:
        validators = _stored(row["stored"])
        if chain and validators:
            validators = Validators(etag=validators.etag, url=wire.url("/end"))
        return await fetcher.fetch(Request(url=wire.url("/"), validators=validators)), wire


def _validators_of(row: dict[str, Any], seen: Fetched) -> bool:
    """Whether what was seen is what the row expects of a fetcher; hashes are decided elsewhere."""
    status = row["response"].get("status", 304)
    if status == 304 and "body" in row["response"]:
        return not isinstance(seen, Body)  # see test_F48_a_304_with_a_body…
    if status == 304:
        return isinstance(seen, NotModified) if row["stored"] else isinstance(seen, Failed)
    if status in (200, 203):
        return isinstance(seen, Body) and seen.validators.etag == row["response"].get("ETag")
    return isinstance(seen, Refused if status in (204, 205, 405) else Failed)


async def test_F44_F46_F48_every_row_of_conditional(shared: Path) -> None:
    rows = [json.loads(row) for row in (shared / "data/standards/conditional.jsonl").read_text().splitlines()]
    assert len(rows) == 24
    for row in rows:
        seen, wire = await _looked(row)
        assert _validators_of(row, seen), (row, seen)
        for name, value in row["request_must_have"].items():
            assert wire.asked[-1].headers[name.lower()] == value, row


@pytest.mark.parametrize("etag", ['"v1"', 'W/"v1"', "abc", '"a, b"', '"café"', '"v1-gzip"'])
async def test_F44_an_etag_is_sent_back_byte_for_byte(etag: str) -> None:
    async with serving({"/": answer(304)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url(), validators=Validators(etag=etag)))
    assert wire.asked[0].headers["if-none-match"] == etag
    assert seen == NotModified(validators=Validators(etag=etag))


async def test_F48_a_304_renews_the_validators() -> None:
    newer = "Sun, 06 Nov 1994 08:49:37 GMT"
    routes = {"/a": answer(304, etag='"v2"'), "/b": answer(304, last_modified=newer)}
    async with serving(routes) as wire, fetching() as fetcher:
        known = Validators(etag='"v1"', last_modified=DATE)
        first = await fetcher.fetch(Request(url=wire.url("/a"), validators=known))
        second = await fetcher.fetch(Request(url=wire.url("/b"), validators=known))
    assert first == NotModified(validators=Validators(etag='"v2"', last_modified=DATE))
    assert second == NotModified(validators=Validators(etag='"v1"', last_modified=newer))


async def test_F48_a_304_nobody_asked_for_is_a_failure() -> None:
    async with serving({"/": answer(304)}) as wire, fetching() as fetcher:
        plain = await fetcher.fetch(Request(url=wire.url()))
        empty = await fetcher.fetch(Request(url=wire.url(), validators=Validators()))
        only_garbage = await fetcher.fetch(Request(url=wire.url(), validators=Validators(last_modified="soon")))
    assert isinstance(plain, Failed)
    assert isinstance(empty, Failed)
    assert isinstance(only_garbage, Failed)


async def test_F48_a_304_with_a_body_does_not_leak_into_the_next_answer() -> None:
    """aiohttp drops an answer with surplus bytes whole, so the page is asked for again without conditions."""
    evil = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nEVIL!"
    routes: dict[str, Answer] = {
        "/a": lambda asked: evil if "if-none-match" in asked.headers else html("whole"),
        "/b": html("good"),
    }
    async with serving(routes) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url("/a"), validators=Validators(etag='"1"')))
        following = await fetcher.fetch(Request(url=wire.url("/b")))
    assert isinstance(seen, Body)
    assert isinstance(following, Body)
    assert (seen.data, following.data) == (b"whole", b"good")
    assert wire.connections == 2


@pytest.mark.parametrize("date", ["garbage", "2024-01-01", "Fri, 31 Dec 2099 00:00:00 GMT", "0"])
async def test_a_date_that_is_garbage_or_ahead_is_not_sent(date: str) -> None:
    async with serving({"/": html()}) as wire, fetching() as fetcher:
        await fetcher.fetch(Request(url=wire.url(), validators=Validators(etag='"1"', last_modified=date)))
    assert "if-modified-since" not in wire.asked[0].headers
    assert wire.asked[0].headers["if-none-match"] == '"1"'


async def test_validators_go_only_to_the_address_that_issued_them() -> None:
    async with serving({"/a": redirect("/b"), "/b": html(etag='"b1"')}) as wire, fetching() as fetcher:
        first = await fetcher.fetch(Request(url=wire.url("/a")))
        assert isinstance(first, Body)
        assert first.url == first.validators.url == wire.url("/b")
        wire.routes["/b"] = answer(304)
        second = await fetcher.fetch(Request(url=wire.url("/a"), validators=first.validators))
        assert second == NotModified(validators=first.validators)
        wire.routes["/a"] = redirect("/c")
        wire.routes["/c"] = html("new", etag='"c1"')
        third = await fetcher.fetch(Request(url=wire.url("/a"), validators=first.validators))
        assert isinstance(third, Body)
        wire.routes["/a"] = html("a itself", etag='"a1"')
        fourth = await fetcher.fetch(Request(url=wire.url("/a"), validators=first.validators))
        assert isinstance(fourth, Body)
        assert fourth.validators.url is None
    conditional = [(asked.path, asked.headers.get("if-none-match")) for asked in wire.asked]
    assert [pair for pair in conditional if pair[1]] == [("/b", '"b1"')]


async def test_a_412_is_asked_again_without_conditions() -> None:
    async with (
        serving({"/": lambda asked: answer(412) if "if-none-match" in asked.headers else html("fresh")}) as wire,
        fetching() as fetcher,
    ):
        seen = await fetcher.fetch(Request(url=wire.url(), validators=Validators(etag='"1"')))
    assert isinstance(seen, Body)
    assert len(wire.asked) == 2


@pytest.mark.parametrize("etag", [b'"\xff\xfe"', b'"' + b"x" * 2000 + b'"'])
async def test_an_etag_that_cannot_be_kept_is_dropped(etag: bytes) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: " + etag + b"\r\n\r\nok"
    async with serving({"/": page}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Body)
    assert not seen.validators
