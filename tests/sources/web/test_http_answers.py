"""What each answer of a server means: statuses, media types, headers."""

import pytest
from tests.fakes.servers import answer, fetching, html, serving

from afresh.model.fetch import Body, Failed, Gone, Outcome, Refused, Request


@pytest.mark.parametrize("status", [404, 410])
async def test_F38_404_and_410_are_gone(status: int) -> None:
    async with serving({"/": answer(status, b"gone")}) as wire, fetching() as fetcher:
        assert await fetcher.fetch(Request(url=wire.url())) == Gone(status_code=status)


@pytest.mark.parametrize(
    ("status", "words"), [(401, "401 Unauthorized"), (403, "403 Forbidden"), (405, "405"), (416, "416"), (451, "451")]
)
async def test_F41_other_4xx_are_refused(status: int, words: str) -> None:
    async with serving({"/": answer(status)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Refused)
    assert seen.outcome is Outcome.BLOCKED_4XX
    assert seen.reason.startswith(words)
    assert seen.status_code == status


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
async def test_F32_5xx_may_pass(status: int) -> None:
    async with serving({"/": answer(status, retry_after="7")}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Failed)
    assert (seen.outcome, seen.status_code, seen.retry_after) == (Outcome.BLOCKED_5XX, status, 7.0)


async def test_F75_429_asks_for_a_pause() -> None:
    async with serving({"/": answer(429, retry_after="99999999")}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Failed)
    assert (seen.outcome, seen.retry_after) == (Outcome.BLOCKED_4XX, 3600.0)


async def test_408_is_a_timeout() -> None:
    async with serving({"/": answer(408)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Failed)
    assert seen.outcome is Outcome.TIMEOUT


@pytest.mark.parametrize(
    ("status", "kind"), [(201, Failed), (204, Refused), (205, Refused), (206, Failed), (300, Failed), (305, Failed)]
)
async def test_answers_that_are_not_content_keep_the_old(status: int, kind: type) -> None:
    async with serving({"/": answer(status)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Failed | Refused)
    assert type(seen) is kind
    assert (seen.outcome, seen.status_code) == (Outcome.FAILED, status)
    assert "unexpected status" in seen.reason


@pytest.mark.parametrize("media", ["image/png", "video/mp4", "font/woff2", "application/zip", "application/gzip"])
async def test_a_body_that_is_no_text_is_not_downloaded(media: str) -> None:
    head = answer(200, content_type=media, content_length="9999999")
    async with serving({"/": head}) as wire, fetching(idle_seconds=5.0) as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Refused)
    assert seen.outcome is Outcome.FAILED
    assert seen.reason == f"media type {media} is not supported"


async def test_F66_small_octet_stream_and_no_type_are_read() -> None:
    routes = {"/a": answer(200, b"x", content_type="application/octet-stream"), "/b": answer(200, b"y")}
    async with serving(routes) as wire, fetching() as fetcher:
        first = await fetcher.fetch(Request(url=wire.url("/a")))
        second = await fetcher.fetch(Request(url=wire.url("/b")))
    assert isinstance(first, Body)
    assert isinstance(second, Body)
    assert (second.media_type, second.charset) == ("", None)


async def test_headers_of_a_page_reach_the_body() -> None:
    page = html(
        content_type='Text/HTML; foo=bar; Charset="ISO-8859-1"',
        content_language="de-AT, en",
        etag='W/"x"',
        last_modified="Sun, 06 Nov 1994 08:49:37 GMT",
        retry_after="10",
    )
    async with serving({"/": page}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Body)
    assert (seen.media_type, seen.charset, seen.language) == ("text/html", "iso-8859-1", "de-AT")
    assert (seen.validators.etag, seen.validators.last_modified) == ('W/"x"', "Sun, 06 Nov 1994 08:49:37 GMT")
    assert seen.validators.url is None
    assert (seen.index, seen.follow, seen.status_code) == (True, True, 200)


@pytest.mark.parametrize(
    ("tag", "index", "follow"),
    [
        ("noindex", False, True),
        ("NoIndex, NoFollow", False, False),
        ("none", False, False),
        ("otherbot: noindex, nofollow", True, True),
        ("Afresh: nofollow", True, False),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", True, True),
        ("max-snippet: 20, noindex", False, True),
        ("noarchive, unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", True, False),
        ("all", True, True),
    ],
)
async def test_F71_x_robots_tag(tag: str, index: bool, follow: bool) -> None:
    async with serving({"/": html(x_robots_tag=tag)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Body)
    assert (seen.index, seen.follow) == (index, follow)


async def test_no_cookie_is_ever_sent_back_and_the_agent_is_named() -> None:
    async with serving({"/": html(set_cookie="a=b; Path=/")}) as wire, fetching(user_agent="me/1") as fetcher:
        await fetcher.fetch(Request(url=wire.url()))
        await fetcher.fetch(Request(url=wire.url()))
    assert [("cookie" in asked.headers, asked.headers["user-agent"]) for asked in wire.asked] == [(False, "me/1")] * 2
    assert wire.asked[0].headers["accept-encoding"] == "gzip, deflate"


async def test_the_canonical_address_goes_out_unchanged() -> None:
    path = "/a%2Fb/~c/%C3%A4;x=1?q=%20+&b=%2f&c"
    async with serving({path: html()}) as wire, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(Request(url=wire.url(path))), Body)
    assert wire.paths() == [path]
