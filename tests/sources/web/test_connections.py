"""Requests over kept connections."""

import asyncio

import pytest
from tests.fakes.servers import Raw, fetching, html, serving

from afresh.model.fetch import Body, Failed, Refused, Request, Validators
from afresh.testing import RecordedRequest


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_request_is_sent_again_once_if_the_server_had_closed_the_connection(failures: int) -> None:
    async def handle(_: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal failures
        failures -= 1
        if failures < 0:
            writer.write(html("answered"))

    lasting = failures == 2
    async with serving({"/": html("first"), "/next": Raw(handle)}) as wire, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(Request(url=wire.url())), Body)
        seen = await fetcher.fetch(Request(url=wire.url("/next")))
        assert wire.paths() == ["/", "/next", "/next"]
    assert isinstance(seen, Failed if lasting else Body)


async def test_requests_share_a_connection_until_a_body_is_left_unread() -> None:
    picture = html("x" * 200_000, content_type="image/png")
    async with serving({"/": html("page"), "/picture": picture}) as wire, fetching() as fetcher:
        for path in ("/", "/", "/picture"):
            await fetcher.fetch(Request(url=wire.url(path)))
        assert wire.connections == 1
        assert isinstance(await fetcher.fetch(Request(url=wire.url())), Body)
        assert wire.connections == 2


async def test_a_validator_cannot_add_a_header() -> None:
    known = Validators(etag='"a"\r\nX-Added: yes')
    async with serving({"/": html("page")}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url(), validators=known))
        assert isinstance(seen, Failed)
        assert wire.asked == []


@pytest.mark.parametrize("url", ["ftp://docs.test/", "http://user@docs.test/", "file:///etc/passwd", "http:///", "x"])
async def test_P15_only_web_addresses_are_requested(url: str) -> None:
    async with fetching() as fetcher:
        assert isinstance(await fetcher.read(url, limit=1000), Refused)


@pytest.mark.parametrize("path", ["/a b", "/a\nHost: other", "/a\x00"])
async def test_an_address_cannot_add_to_a_request(path: str) -> None:
    async with serving({"/": html("page")}) as wire, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(Request(url=wire.url(path))), Failed)
        assert wire.asked == []
