"""Sitemaps (F76, F77): every format, every bomb, and what a site lists through them."""

import asyncio
import gzip
import itertools
import json
import random
import time
import tracemalloc
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.fakes.servers import Answer, answer, fetching, redirect, serving

from afresh.errors import ExtractError
from afresh.model.records import ListedUrl
from afresh.sources.web import sitemaps
from afresh.sources.web.hints import lines_in
from afresh.sources.web.lister import WebLister
from afresh.sources.web.robots import RobotsFiles
from afresh.sources.web.sitemaps import SitemapFile, SitemapListing, parse_lastmod, parse_sitemap, read_sitemaps
from afresh.urls.canonical import canonical
from afresh.urls.scope import CrawlScope, Rules

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*locs: str) -> bytes:
    inner = "".join(f"<url><loc>{x}</loc></url>" for x in locs)
    return f"<?xml version='1.0'?><urlset {XMLNS}>{inner}</urlset>".encode()


def index(*locs: str) -> bytes:
    inner = "".join(f"<sitemap><loc>{x}</loc></sitemap>" for x in locs)
    return f"<sitemapindex {XMLNS}>{inner}</sitemapindex>".encode()


async def _listing(routes: Mapping[str, Answer], *paths: str, **settings: Any) -> SitemapListing:
    async with serving(routes) as wire, fetching() as fetcher:
        found = await read_sitemaps(fetcher, [wire.url(path) for path in paths or ("/sitemap.xml",)], **settings)
    urls = {url.removeprefix(wire.origin): when for url, when in found.urls.items()}
    return SitemapListing(urls, found.dropped, found.errors, found.maps)


# ---- one file -----------------------------------------------------------------------------------


def _agrees(case: dict[str, Any], found: SitemapFile) -> bool:
    expect, base = case["expect"], case["sitemap_url"]
    locs = [canonical(entry.loc, base) for entry in found.entries]
    kinds = {"reject": ["none"], "reject_or_urlset": ["none", "urlset"], "reject_or_index": ["none", "index"]}
    if found.kind not in kinds.get(expect["kind"], [expect["kind"]]):
        return False
    wanted = [canonical(loc) for loc in expect["locs"]] if "locs" in expect else locs
    count = expect.get("count", expect.get("lenient_count", len(locs)))
    allowed = set(map(canonical, expect.get("locs_allowed", []))) or set(locs)
    dates = [entry.lastmod for entry in found.entries]
    if "lastmods" in expect and dates != [parse_lastmod(text or "") for text in expect["lastmods"]]:
        return False
    if "lastmods_unix" in expect and [d and d.timestamp() for d in dates] != expect["lastmods_unix"]:
        return False
    needed = expect.get("contains")
    return locs == wanted and len(locs) == count and set(locs) <= allowed and (not needed or needed in locs)


def test_F76_the_cases_of_crawler_commons(shared: Path) -> None:
    folder = shared / "data/crawler-commons"
    cases = [json.loads(row) for row in (folder / "sitemap_cases.jsonl").read_text().splitlines()]
    wrong = []
    for case in cases:
        data = case["body"].encode() if "body" in case else (folder / case["file"]).read_bytes()
        if not _agrees(case, parse_sitemap(data)):
            wrong.append((case["test"], case.get("file")))
    assert len(cases) >= 39
    assert wrong == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_and_xml_in_several_encodings(encoding: str) -> None:
    text = "http://x.org/ä\r\n\r\nhttp://x.org/b\nnot a url\n".encode(encoding)
    assert [entry.loc for entry in parse_sitemap(text).entries] == ["http://x.org/ä", "http://x.org/b"]
    xml = f'<?xml version="1.0" encoding="{encoding[:6].rstrip("-")}"?><urlset><url><loc>http://x.org/ä</loc></url></urlset>'
    assert [entry.loc for entry in parse_sitemap(xml.encode(encoding)).entries] == ["http://x.org/ä"]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"   ", b"<", b"<html><body><a href='http://x.org/'>x</a></body></html>", b"\x00" * 100, b"{}",
        b"\x1f\x8b", b"\x1f\x8bgarbage", gzip.compress(urlset("http://x.org/"), mtime=0)[:-10],
        b"<urlset", b"<!x>",
        b"<?xml version='1.0' encoding='nonsense'?><urlset><url><loc>http://x.org/</loc></url></urlset>",
    ],
)  # fmt: skip
def test_F76_what_is_no_sitemap_is_reported(data: bytes) -> None:
    found = parse_sitemap(data)
    assert found.kind == "none" or found.error or found.entries


def test_F76_entities_and_files_stay_outside(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("http://x.org/secret")
    for declared in (f'<!ENTITY a SYSTEM "file://{secret}">', f'<!ENTITY % a SYSTEM "file://{secret}"> %a;'):
        data = f"<!DOCTYPE urlset [{declared}]><urlset><url><loc>&a;</loc></url></urlset>".encode()
        assert "secret" not in str(parse_sitemap(data))
        assert "secret" not in str(parse_sitemap(data.decode().encode("utf-16")))
    remote = f'<!DOCTYPE urlset SYSTEM "file://{secret}"><urlset><url><loc>http://x.org/</loc></url></urlset>'
    assert [entry.loc for entry in parse_sitemap(remote.encode()).entries] == ["http://x.org/"]


def _bombs() -> dict[str, bytes]:
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(12))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "lol">{laughs}]><urlset><url><loc>&l12;</loc></url></urlset>'
    return {
        "laughs": bomb.encode(),
        "laughs in utf-16": bomb.encode("utf-16"),
        "gzip": gzip.compress(bytes(60 * 1024 * 1024), 1),
        "gzip of gzip": gzip.compress(gzip.compress(bytes(60 * 1024 * 1024), 1)),
        "deep": b"<urlset>" + b"<url>" * 100_000,
    }


@pytest.mark.parametrize("name", ["laughs", "laughs in utf-16", "gzip", "gzip of gzip", "deep"])
def test_F76_bombs_are_inert(name: str) -> None:
    data = _bombs()[name]
    before, started = psutil.Process().memory_info().rss, time.process_time()
    found = parse_sitemap(data)
    assert time.process_time() - started < 1
    assert psutil.Process().memory_info().rss - before < 150 * 1024 * 1024
    assert not found.entries


def test_F76_entries_beyond_the_cap_are_counted() -> None:
    found = parse_sitemap(urlset(*(f"http://x.org/{n}" for n in range(120))), most=100)
    assert (len(found.entries), found.over) == (100, 20)
    endless = parse_sitemap(urlset(*(f"http://x.org/{n}" for n in range(5_000))), most=100)
    assert (len(endless.entries), endless.over, endless.error) == (100, 100, None)
    text = parse_sitemap("\n".join(f"http://x.org/{n}" for n in range(120)).encode(), most=100)
    assert (len(text.entries), text.over) == (100, 20)
    assert parse_sitemap(urlset("http://x.org/"), largest=10).error == "larger than 0 MB"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2005", datetime(2005, 1, 1, tzinfo=UTC)),
        ("2005-03", datetime(2005, 3, 1, tzinfo=UTC)),
        (" 2005-03-04 ", datetime(2005, 3, 4, tzinfo=UTC)),
        ("2005-03-04T05:06Z", datetime(2005, 3, 4, 5, 6, tzinfo=UTC)),
        ("Thu, 05 Jan 2017 12:34:51 GMT", datetime(2017, 1, 5, 12, 34, 51, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
        ("0000-00-00", None),
    ],
)
def test_lastmod(text: str, moment: datetime | None) -> None:
    assert parse_lastmod(text) == moment


# ---- a site's sitemaps ---------------------------------------------------------------------------


async def test_F76_indexes_to_a_depth_of_three_each_file_once() -> None:
    routes: dict[str, Answer] = {
        "/sitemap.xml": answer(200, index("/two.xml", "/sitemap.xml", "/leaf.txt", "/two.xml")),
        "/two.xml": answer(200, index("/three.xml.gz", "/sitemap.xml")),
        "/three.xml.gz": answer(200, gzip.compress(urlset("/c")), content_type="application/gzip"),
        "/leaf.txt": answer(200, b"http://x.org/leaf"),
    }
    found = await _listing(routes)
    assert list(found.urls) == ["http://x.org/leaf", "/c"]
    assert (found.maps, found.errors) == (4, [])
    routes["/three.xml.gz"] = answer(200, index("/four.xml"))
    deep = await _listing(routes)
    assert len(deep.errors) == 1
    assert "deeper than 3" in deep.errors[0]


async def test_F76_a_thousand_maps_and_no_more() -> None:
    routes: dict[str, Answer] = {"/sitemap.xml": answer(200, index(*(f"/m{n}.txt" for n in range(1500))))}
    found = await _listing(routes)
    assert found.errors == ["501 sitemap files were not read: a limit per site was reached"]


async def test_F77_foreign_addresses_are_dropped_with_counts() -> None:
    locs = ["/in", *(f"http://foreign{n}.example/" for n in range(2000)), "file:///etc/passwd", "http://u:p@x/"]
    found = await _listing(
        {"/sitemap.xml": answer(200, urlset(*locs))}, refusal=lambda url: "foreign" if "foreign" in url else None
    )
    assert list(found.urls) == ["/in"]
    assert found.dropped == {"foreign": 2000, "not a web URL": 2}


async def test_addresses_beyond_the_cap_are_counted() -> None:
    found = await _listing({"/sitemap.xml": answer(200, urlset(*(f"/{n}" for n in range(30))))}, most_urls=10)
    assert len(found.urls) == 10
    assert found.errors == ["sitemaps list more than 10 URLs: 20 left out"]


async def test_F76_a_large_map_is_parsed_elsewhere_and_judged_in_steps() -> None:
    """Whoever shares the event loop gets a turn every few hundred addresses."""
    parsed: list[int] = []
    turns = turns_at_last = 0

    async def parse(data: bytes, largest: int) -> SitemapFile:
        parsed.append(len(data))
        return parse_sitemap(data)

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += bool(parsed)

    def refusal(url: str) -> None:
        nonlocal turns_at_last
        turns_at_last = turns

    data = urlset(*(f"/{number:030}" for number in range(10_000)))
    task = asyncio.create_task(others())
    found = await _listing({"/sitemap.xml": answer(200, data)}, parse=parse, refusal=refusal, most_urls=5_000)
    task.cancel()
    assert turns_at_last >= 20
    assert parsed == [len(data)]
    assert len(found.urls) == 5_000
    assert found.errors == ["sitemaps list more than 5,000 URLs: 5,000 left out"]


@pytest.mark.parametrize("kind", ["sitemap", "llms.txt"])
@pytest.mark.parametrize("end", ["?" + "&" * 7_900, "/" + "😀" * 7_900, "/" + "a" * 1_900])
async def test_S2_F180_long_addresses_are_judged_in_turns_by_their_length(
    kind: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = unbroken = most_unbroken = before = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def judge(raw_url: str, base: str | None = None) -> str | None:
        nonlocal unbroken, most_unbroken, before
        unbroken = len(raw_url) + (unbroken if turns == before else 0)
        most_unbroken, before = max(most_unbroken, unbroken), turns
        return canonical(raw_url, base)

    monkeypatch.setattr("afresh.sources.web.sitemaps.canonical", judge)
    urls = [f"http://x.org/{number}{end}" for number in range(60)]
    lines = urls if kind == "sitemap" else [f"- [a page]({url})" for url in urls]
    task = asyncio.create_task(others())
    await _listing({"/sitemap.xml": answer(200, "\n".join(lines).encode())})
    task.cancel()
    assert 0 < most_unbroken <= 16 * 1024


async def test_F76_a_sitemap_that_breaks_its_parser_is_reported() -> None:
    async def parse(data: bytes, largest: int) -> SitemapFile:
        raise ExtractError("parsing the page took longer than 60 s")

    found = await _listing({"/sitemap.xml": answer(200, b" " * 300_000 + urlset("/a"))}, parse=parse)
    assert (len(found.urls), len(found.errors)) == (0, 1)
    assert found.errors[0].endswith("took longer than 60 s")


async def test_F76_too_many_broken_maps_end_the_walk() -> None:
    names = [f"/m{number}.xml" for number in range(100)]
    routes: dict[str, Answer] = {"/sitemap.xml": answer(200, index(*names)), **dict.fromkeys(names, answer(503))}
    found = await _listing(routes)
    assert (found.maps, len(found.errors)) == (1, 21)
    assert found.errors[-1] == "80 sitemap files were not read: a limit per site was reached"


@pytest.mark.parametrize(
    ("reply", "errors", "errors_if_optional"),
    [
        (answer(404), 0, 0),
        (answer(410), 0, 0),
        (answer(403), 1, 0),
        (answer(503), 1, 1),
        (answer(429), 1, 1),
        (answer(200, b"<html>no</html>"), 1, 0),
        (answer(200, b"<urlset><url><loc>/a</loc></url><url><lo"), 1, 1),
        (redirect("/sitemap.xml"), 1, 1),
        (answer(200, content_length=str(60 * 1024 * 1024)), 1, 1),
        (answer(200, b"x", content_encoding="br"), 1, 1),
    ],
)
async def test_a_map_that_cannot_be_read_makes_the_listing_incomplete(
    reply: bytes, errors: int, errors_if_optional: int
) -> None:
    assert len((await _listing({"/sitemap.xml": reply})).errors) == errors
    assert len((await _listing({"/sitemap.xml": reply}, optional=True)).errors) == errors_if_optional


async def test_a_map_that_moved_is_read_and_its_own_address_is_the_base() -> None:
    routes = {"/sitemap.xml": redirect("/deep/map.xml", 301), "/deep/map.xml": answer(200, urlset("page"))}
    found = await _listing(routes)
    assert list(found.urls) == ["/deep/page"]


def test_a_large_map_is_read_in_good_time() -> None:
    data = urlset(*(f"http://x.org/page/{n}" for n in range(50_000)))
    started = time.process_time()
    assert len(parse_sitemap(data).entries) == 50_000
    assert time.process_time() - started < 3


# ---- S2: what a packed or crafted file may cost --------------------------------------------------


class _Elsewhere:
    """Stands for the parser processes: notes what it is given."""

    def __init__(self) -> None:
        self.given: list[tuple[int, int]] = []

    async def __call__(self, data: bytes, largest: int) -> SitemapFile:
        self.given.append((len(data), largest))
        return parse_sitemap(data, largest)


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(urlset("/a")),
        gzip.compress(b"<urlset>" + b"<a/>" * 100_000 + b"</urlset>"),
        gzip.compress(b"](a\n" * 100_000),
        urlset(*(f"/{n}" for n in range(1_000))),
        b"http://x.org/a\n" * 2_000,
    ],
    ids=["tiny gzip", "gzip of elements", "gzip of lines", "plain xml", "plain text"],
)
async def test_S2_F118_what_is_packed_or_not_tiny_is_never_parsed_on_the_loop(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packed size says nothing about the work: 50 KB took the loop for 68 s."""
    inline: list[int] = []

    def parse_inline(*given: Any) -> SitemapFile:
        inline.append(len(given[0]))
        return parse_sitemap(*given)

    monkeypatch.setattr("afresh.sources.web.sitemaps.parse_sitemap", parse_inline)
    elsewhere = _Elsewhere()
    await _listing({"/sitemap.xml": answer(200, data)}, parse=elsewhere, largest=5_000_000)
    assert inline == []
    assert elsewhere.given == [(len(data), 5_000_000)]


@pytest.mark.parametrize("inside", ["<a/>", "<url/>", "<url><a><b/></a></url>", "<x><y/><y/></x>"])
def test_S2_elements_are_bounded_and_freed_as_they_are_read(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of the tree is ever held than the parser reads ahead (32 KB, of four bytes each)."""
    held: list[int] = []
    free = sitemaps._free
    frees = itertools.count()
    monkeypatch.setattr(sitemaps, "MAX_ELEMENTS", 40_000)

    def counted(element: Any, parent: Any) -> None:
        free(element, parent)
        if next(frees) % 1_000 == 0:
            held.append(sum(1 for _ in element.getroottree().iter()))

    monkeypatch.setattr(sitemaps, "_free", counted)
    found = parse_sitemap(f"<urlset><url><loc>http://x.org/1</loc></url>{inside * 41_000}</urlset>".encode())
    assert [entry.loc for entry in found.entries] == ["http://x.org/1"]
    assert found.error == "more than 40,000 elements; the rest was not read"
    assert 0 < max(held) < 9_000


def test_S2_unpacked_bytes_ratio_and_members_are_bounded() -> None:
    assert parse_sitemap(gzip.compress(b" " * 2_000_000)).error == "possible zip bomb"
    many = gzip.compress(b"") * 1_001
    assert parse_sitemap(many).error == "more than 1,000 gzip members"
    whole = gzip.compress(urlset("http://x.org/1")) + gzip.compress(b"\n")
    assert len(parse_sitemap(whole).entries) == 1
    noise = gzip.compress(random.Random(1).randbytes(3_000), 0)
    assert parse_sitemap(noise, largest=2_000).error == "larger than 0 MB"
    assert parse_sitemap(gzip.compress(urlset("http://x.org/1"))).size == len(urlset("http://x.org/1"))


def test_S2_the_text_form_is_bounded_in_lines_links_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    one_line = "".join(f"[x](/{n}) " for n in range(1_000)).encode()
    links = parse_sitemap(one_line, most=100)
    assert (len(links.entries), links.over) == (100, 100)
    monkeypatch.setattr(sitemaps, "MAX_LINES", 100)
    lines = parse_sitemap(b"http://x.org/a\n" + b"-\n" * 200)
    assert lines.error == "more than 100 lines; the rest was not read"
    monkeypatch.setattr(sitemaps, "MAX_LISTED_CHARACTERS", 1_000)
    long = parse_sitemap(urlset(*(f"http://x.org/{n}/{'a' * 400}" for n in range(10))))
    assert (len(long.entries), long.over) == (2, 8)
    assert [len(entry.loc) for entry in parse_sitemap(urlset(f"http://x.org/{'a' * 900}")).entries] == [913]


@pytest.mark.slow
def test_S2_no_list_of_lines_is_ever_made() -> None:
    """50 million lines as a list are 2.5 GB; one after the other they are nothing."""
    assert list(lines_in("a\r\nb\u2028\n\nc\nd", 3)) == ["a", "b", "c"]
    tracemalloc.start()
    parse_sitemap(b"a\n" * 500_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000


async def test_S2_all_files_together_are_counted_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.web.sitemaps.MAX_TOTAL_BYTES", 3_000)
    names = [f"/m{n}.xml.gz" for n in range(10)]
    routes: dict[str, Answer] = {"/sitemap.xml": answer(200, index(*names))}
    routes |= dict.fromkeys(names, answer(200, gzip.compress(urlset("/a") + b"\n" * 2_000)))
    found = await _listing(routes)
    assert found.maps == 3
    assert found.errors == ["8 sitemap files were not read: a limit per site was reached"]


# ---- the source ----------------------------------------------------------------------------------


async def _listed(routes: Mapping[str, Answer], **rules: Any) -> tuple[list[ListedUrl], WebLister, str]:
    async with serving(routes) as wire, fetching() as fetcher:
        gate = RobotsFiles(fetcher)
        root = wire.url("/docs/")
        lister = WebLister(Rules(root=root, **rules), gate, gate.sitemaps)
        return [listed async for listed in lister.list()], lister, wire.origin


async def test_the_root_comes_first_and_once() -> None:
    routes = {"/sitemap.xml": answer(200, urlset("/docs/", "/docs/a", "/other", "/docs/a#x", "http://x.example/"))}
    listed, lister, origin = await _listed(routes)
    assert listed == [ListedUrl(f"{origin}/docs/", 0), ListedUrl(f"{origin}/docs/a", 1)]
    assert lister.listing_errors == []
    assert lister.dropped == {"other host": 1}
    assert lister.kind == "web"
    assert lister.refusal(f"{origin}/docs/b", 1) is None
    assert lister.refusal(f"{origin}/other", 1)


async def test_sitemaps_that_robots_names_are_read_instead_of_the_usual_one() -> None:
    routes = {
        "/robots.txt": answer(200, b"Sitemap: /named.xml\n"),
        "/named.xml": answer(200, urlset("/docs/n?a=1&amp;b=2")),
        "/sitemap.xml": answer(200, urlset("/docs/s")),
    }
    listed, _, origin = await _listed(routes, max_params=1)
    assert [one.url for one in listed] == [f"{origin}/docs/", f"{origin}/docs/n?a=1"]


@pytest.mark.parametrize(
    ("routes", "complete"),
    [
        ({}, True),
        ({"/sitemap.xml": answer(503)}, False),
        ({"/robots.txt": answer(503)}, False),
        ({"/robots.txt": answer(200, b"User-agent: *\nDisallow: /sitemap.xml")}, True),
        ({"/robots.txt": answer(200, b"Sitemap: /a.xml"), "/a.xml": answer(500)}, False),
        ({"/robots.txt": answer(200, b"Sitemap: /a.xml")}, True),
    ],
)
async def test_F72_a_listing_knows_when_it_is_incomplete(routes: Mapping[str, Answer], complete: bool) -> None:
    listed, lister, _ = await _listed(routes)
    assert len(listed) == 1
    assert (lister.listing_errors == []) is complete


async def test_the_root_is_listed_before_any_request() -> None:
    async with fetching() as fetcher:
        gate = RobotsFiles(fetcher)
        lister = WebLister(Rules(root="http://127.0.0.1:1/", scope=CrawlScope.HOSTNAME), gate, gate.sitemaps)
        first = await anext(aiter(lister.list()))
    assert first == ListedUrl("http://127.0.0.1:1/", 0)
