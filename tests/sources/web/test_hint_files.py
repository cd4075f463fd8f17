"""llms.txt and feeds (F76): what they list, what is remembered of them, and the bombs they may be."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fakes.servers import Answer, answer, fetching, html, serving

from afresh.model.fetch import Body
from afresh.model.records import ListedUrl
from afresh.sources.web.hints import feeds_of, links_in, llms_txt_places
from afresh.sources.web.lister import ListerState, WebLister, mark_from
from afresh.sources.web.robots import RobotsFiles
from afresh.sources.web.sitemaps import (
    MAX_CACHED_CHARS,
    CachedSitemap,
    SitemapEntry,
    SitemapFile,
    has_room,
    parse_lastmod,
    parse_sitemap,
)
from afresh.urls.scope import Rules

LLMS = b"""\
# Jars

> All about [jars](https://x.org/jars.md).

## Docs

- [Lids](/lids.md): what covers them
- [Glass (old)](https://x.org/wiki/Glass_(old)): a name with brackets
* [Plums]( <plums.html.md> "ripe")

```
[code](/code.md)
```

## Optional

- [Elsewhere](https://y.org/)
"""
LOCS = ["https://x.org/jars.md", "/lids.md", "https://x.org/wiki/Glass_(old)", "plums.html.md", "https://y.org/"]
WHEN = datetime(2017, 1, 5, 12, 34, 51, tzinfo=UTC)


# ---- one file ------------------------------------------------------------------------------------


def test_llms_txt_is_a_list_of_its_links() -> None:
    found = parse_sitemap(b"\xef\xbb\xbf" + LLMS)
    assert (found.kind, [entry.loc for entry in found.entries], found.error) == ("urlset", LOCS, None)


@pytest.mark.parametrize("text", ["# Jars\n\nOnly prose.", "", "[a] (b)", "](", "```\n[a](/b)\n"])
def test_F76_a_text_without_links_is_no_list(text: str) -> None:
    assert parse_sitemap(text.encode()).kind == "none"


@pytest.mark.parametrize("bomb", ["](" * 1_000_000, "](a(" * 500_000, "[" * 2_000_000, "](" + "x" * 2_000_000])
def test_F76_brackets_without_end_are_read_in_good_time(bomb: str) -> None:
    started = time.process_time()
    parse_sitemap(bomb.encode())
    assert time.process_time() - started < 2


def test_F76_links_beyond_the_cap_are_counted() -> None:
    text = "\n".join(f"- [p](/{number})" for number in range(500))
    found = parse_sitemap(text.encode(), most=100)
    assert (len(found.entries), found.over) == (100, 100)
    assert len(list(links_in(text, 10))) == 10


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("https://x.org/", ("https://x.org/llms.txt",)),
        ("https://x.org/docs/", ("https://x.org/docs/llms.txt", "https://x.org/llms.txt")),
        ("https://x.org/docs", ("https://x.org/docs/llms.txt", "https://x.org/llms.txt")),
        ("https://x.org/docs/index.html?a=1", ("https://x.org/docs/llms.txt", "https://x.org/llms.txt")),
    ],
)
def test_llms_txt_is_looked_for_below_the_root_first(root: str, expected: tuple[str, ...]) -> None:
    assert llms_txt_places(root) == expected


@pytest.mark.parametrize(
    ("head", "feeds"),
    [
        ("<link rel=alternate type=application/rss+xml href=/rss>", ["/rss"]),
        ("<LINK REL='home Alternate' TYPE='application/atom+xml; x=y' HREF='a?b=1&amp;c=2'>", ["/d/a?b=1&c=2"]),
        ("<link rel=alternate type=application/rss+xml href=//y.org/rss>", []),
        ("<link rel=alternate type=text/html hreflang=de href=/de>", []),
        ("<link rel=alternate type=application/rss+xml href='javascript:1'>", []),
        ("<link rel=alternate type=application/rss+xml>", []),
        ("".join(f"<link rel=alternate type=application/rss+xml href=/{n}>" for n in range(9)), ["/0", "/1"]),
        ("x" * 70_000 + "<link rel=alternate type=application/rss+xml href=/late>", []),
    ],
)
def test_the_feeds_that_a_root_names(head: str, feeds: list[str]) -> None:
    body = Body(url="https://x.org/d/", data=f"<html><head>{head}</head>".encode())
    assert feeds_of(body) == tuple(f"https://x.org{feed}" for feed in feeds)
    assert feeds_of(Body(url=body.url, data=body.data, media_type="text/markdown")) == ()


def test_F76_a_head_full_of_links_is_read_in_good_time() -> None:
    started = time.process_time()
    for text in ("<link " * 20_000, "<link a" * 10_000, "<link rel=" + "'" * 60_000):
        feeds_of(Body(url="https://x.org/", data=text.encode()))
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        "tomorrow", "2026-13-45", "99999-01-01", "Thu, 99 Jan 2017 12:34:51 GMT", "0001-01-01T00:00:00+14:00",
        "Thu, 05 Jan 99999999999999999999 12:34:51 GMT", "Thu, 05 Jan 2017 12:34:51 +99999999", "1" * 10_000,
    ],
)  # fmt: skip
def test_F76_dates_that_are_none_are_ignored(text: str) -> None:
    assert parse_lastmod(text) is None


# ---- what is remembered --------------------------------------------------------------------------


def _remembered(*locs: str) -> CachedSitemap:
    entries = tuple(SitemapEntry(loc, WHEN if loc == "/dated" else None) for loc in locs)
    return CachedSitemap('"1"', None, "https://x.org/moved", "https://x.org/moved", "urlset", entries)


def test_a_mark_is_read_back() -> None:
    mark = ListerState(
        looked=True,
        llms=("https://x.org/llms.txt",),
        feeds=("https://x.org/f",),
        named=("https://x.org/g",),
        form=".html",
        files={"https://x.org/llms.txt": _remembered("/a", "/dated")},
    )
    assert mark_from(mark.text) == mark


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "abc", '{"looked": 1, "files": 3}', "1" * 2_000_000])
def test_a_mark_that_cannot_be_read_is_none(text: str | None) -> None:
    assert mark_from(text) == ListerState()


def test_F76_little_is_remembered_of_long_lists() -> None:
    assert has_room({}, _remembered("/a"))
    assert not has_room({}, _remembered("/" + "a" * MAX_CACHED_CHARS))
    assert not has_room({"x": _remembered(*(f"/{n}" for n in range(1_500)))}, _remembered(*map(str, range(500))))


# ---- a site's hints ------------------------------------------------------------------------------


async def _listed(
    routes: Mapping[str, Answer], *, root: str = "/docs/", **more: Any
) -> tuple[dict[str, ListedUrl], WebLister, list[str]]:
    async with serving(routes) as wire, fetching() as fetcher:
        gate = RobotsFiles(fetcher)
        more = {
            name: value.replace("{origin}", wire.origin) if name == "mark" else value for name, value in more.items()
        }
        lister = WebLister(Rules(root=wire.url(root)), gate, gate.sitemaps, **more)
        listed = {item.url.removeprefix(wire.origin): item async for item in lister.list()}
        return listed, lister, wire.paths()


async def test_a_lister_that_listed_nothing_leaves_no_mark() -> None:
    async with fetching() as fetcher:
        gate = RobotsFiles(fetcher)
        assert WebLister(Rules(root="http://127.0.0.1:1/"), gate, gate.sitemaps).mark is None


async def test_lastmod_and_feed_dates_are_read_and_the_newest_counts() -> None:
    sitemap = (
        "<urlset><url><loc>/docs/a</loc><lastmod>2017-01-05T12:34:51Z</lastmod></url>"
        "<url><loc>/docs/b</loc><lastmod>rubbish</lastmod></url></urlset>"
    )
    listed, _, _ = await _listed({"/sitemap.xml": answer(200, sitemap.encode())})
    assert {path: item.modified for path, item in listed.items()} == {
        "/docs/": None, "/docs/a": WHEN, "/docs/b": None,
    }  # fmt: skip
    feed = (
        "<feed xmlns='http://www.w3.org/2005/Atom'>"
        "<entry><link href='/docs/a'/><updated>2017-01-05T12:34:51Z</updated></entry>"
        "<entry><link href='/docs/a'/><updated>2016-01-05T12:34:51Z</updated></entry></feed>"
    )
    mark = ListerState(looked=True, named=("{origin}/feed",)).text
    listed, lister, asked = await _listed({"/feed": answer(200, feed.encode())}, mark=mark)
    assert listed["/docs/a"].modified == WHEN
    assert asked == ["/robots.txt", "/sitemap.xml", "/feed"]
    assert [url.endswith("/feed") for url in mark_from(lister.mark).feeds] == [True]


async def test_F77_foreign_and_private_links_of_hints_are_dropped() -> None:
    text = "[a](/docs/a) [b](https://y.org/) [c](http://10.0.0.1/) [d](/other) [e](mailto:x@y.org)"
    listed, lister, _ = await _listed({"/llms.txt": answer(200, text.encode())})
    assert list(listed) == ["/docs/", "/docs/a"]
    assert lister.dropped == {"private": 1, "not a web URL": 1}
    assert lister.listing_errors == []


@pytest.mark.parametrize(
    ("reply", "errors"),
    [
        (answer(404), 0),
        (answer(410), 0),
        (answer(403), 1),
        (answer(503), 1),
        (answer(200, b"<html>no</html>"), 1),
        (answer(200, b"x" * 10, content_length=str(6 * 1024 * 1024)), 1),
        (answer(304), 1),
    ],
)
async def test_F76_only_hints_that_were_there_are_missed(reply: bytes, errors: int) -> None:
    unknown, lister, _ = await _listed({"/docs/llms.txt": reply, "/llms.txt": reply})
    assert (len(unknown), lister.listing_errors) == (1, [])
    mark = ListerState(looked=True, llms=("{origin}/llms.txt",), feeds=("{origin}/feed",)).text
    known, lister, _ = await _listed({"/llms.txt": reply, "/feed": reply}, mark=mark)
    assert (len(known), len(lister.listing_errors)) == (1, 2 * errors)
    after = mark_from(lister.mark)
    assert (len(after.llms), len(after.feeds)) == (errors, errors), "what broke is expected still"


async def test_robots_may_forbid_hints() -> None:
    robots = answer(200, b"User-agent: *\nDisallow: /*llms.txt")
    listed, lister, asked = await _listed({"/robots.txt": robots, "/llms.txt": answer(200, LLMS)})
    assert (len(listed), lister.listing_errors, asked) == (1, [], ["/robots.txt", "/sitemap.xml"])


async def test_F76_a_large_feed_is_parsed_elsewhere() -> None:
    parsed: list[int] = []

    async def parse(data: bytes, largest: int) -> SitemapFile:
        parsed.append(len(data))
        return parse_sitemap(data)

    feed = b"<rss><channel>" + b"<item><link>/docs/a</link></item>" * 10_000 + b"</channel></rss>"
    mark = ListerState(looked=True, named=("{origin}/feed",)).text
    listed, _, _ = await _listed({"/feed": answer(200, feed)}, mark=mark, parse=parse)
    assert (parsed, list(listed)) == ([len(feed)], ["/docs/", "/docs/a"])


async def test_the_form_of_markdown_files_is_asked_for_once_or_seen_in_the_sitemap() -> None:
    text = b"- [a](/docs/a.md)\n- [b](/docs/b.md)\n"
    routes = {"/docs/llms.txt": answer(200, text), "/docs/a.html": html(), "/docs/b.html": html()}
    listed, lister, asked = await _listed(routes)
    assert list(listed) == ["/docs/", "/docs/a.html", "/docs/b.html"]
    assert asked[-2:] == ["/docs/a", "/docs/a.html"]
    assert mark_from(lister.mark).form == ".html"
    named: dict[str, Answer] = {
        "/robots.txt": answer(200, b"Sitemap: /map.txt\nSitemap: /docs/llms.txt"),
        "/map.txt": lambda asked: answer(200, f"http://{asked.headers['host']}/docs/b/".encode()),
    }
    listed, lister, asked = await _listed({**routes, **named})
    assert list(listed) == ["/docs/", "/docs/b/", "/docs/a/"]
    assert asked == ["/robots.txt", "/map.txt", "/docs/llms.txt"]
