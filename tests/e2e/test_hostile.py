"""Hostile answers through the whole walk: what was known stays searchable, and the evidence says why."""

import json
import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from tests.e2e.library import assert_sound, counts, found, index_of, opened, rows
from tests.e2e.sites import page, sentence, word
from tests.fakes.hostile import HostileSite, Script
from tests.fakes.lies import chain, hop, in_turn, status
from tests.fakes.tricks import (
    MEGABYTE,
    bomb,
    broken_chunks,
    coded,
    drip,
    endless,
    flood,
    giant,
    lengths,
    members,
    then_close,
    truncated,
)
from tests.fakes.wire import answer

from afresh.extract.pool.pool import ParserPool
from afresh.model.fetch import Body

P = ParamSpec("P")
R = TypeVar("R")

TROUBLES: dict[str, tuple[Script, str]] = {
    "F49-loop": (hop("/F49-back"), "redirect loop"),
    "F49-back": (hop("/F49-loop"), "redirect loop"),
    "F49-self": (hop("/F49-self"), "redirect loop"),
    "F50-chain": (hop("/hop/1"), "more than 5 redirects"),
    "F50-file": (hop("file:///etc/passwd"), "which is not an http URL"),
    "F50-host": (hop("http://other.example/"), "outside the scope"),
    "F50-private": (hop("http://169.254.169.254/latest/meta-data/"), "outside the scope"),
    "F53-slow-head": (drip("head"), "not complete within"),
    "F53-slow-body": (drip("body"), "not complete within"),
    "F54-endless-head": (flood("endless"), "valid HTTP"),
    "F54-giant-header": (flood("giant"), "valid HTTP"),
    "F54-many-headers": (flood("many"), "valid HTTP"),
    "F54-no-answer": (then_close(b""), "closed the connection"),
    "F55-truncated": (truncated(), "ended early or is malformed"),
    "F55-unended": (broken_chunks("unended"), "ended early or is malformed"),
    "F56-bad-chunks": (broken_chunks("size"), "valid HTTP"),
    "F56-two-lengths": (lengths("5", "9"), "valid HTTP"),
    "F57-endless": (endless(), "body larger than 10 MB"),
    "F57-giant": (giant(1024 * MEGABYTE), "body larger than 10 MB"),
    "F58-bomb": (bomb("gzip", 9_000), "body larger than 10 MB"),
    "F58-raw-bomb": (bomb("raw", 9_000), "body larger than 10 MB"),
    "F58-nested": (bomb("nested", 500, named="gzip"), "the body is gzip data"),
    "F58-parts": (members(), "too many parts"),
    "F59-plain": (coded("gzip", b"<p>plain</p>"), "not valid gzip"),
    "F59-unknown": (coded("br", b"<p>plain</p>"), "content coding br is not supported"),
    "F66-pdf": (answer(200, b"%PDF-1.7\n%\xe2\xe3", content_type="text/html"), "the body is PDF"),
    "F66-binary": (answer(200, bytes(range(256)) * 9, content_type="text/html"), "binary data"),
    "F66-image": (answer(200, b"\x89PNG", content_type="image/png"), "media type image/png is not supported"),
}
QUICK = {"network.timeout_seconds": 3, "policy.retries": 0}


def _lay(site: HostileSite, paths: list[str]) -> None:
    site.put("/", page("/", paths))
    for path in paths:
        site.put(path, page(path, ["/"]))


async def test_F49_F50_F53_F54_F55_F56_F57_F58_F59_F66_old_content_stays_searchable(store: Path, work: object) -> None:
    paths = [f"/{name}" for name in TROUBLES]
    with HostileSite() as site:
        _lay(site, paths)
        async with opened(store, QUICK) as kb:
            first = await kb.runs.crawl(site.url, name="docs")
            assert (first.state, first.new) == ("completed", len(paths) + 1)
            before = index_of(store)
            site.say("/hop/*", chain("/hop/"))
            for name, (script, _) in TROUBLES.items():
                site.say(f"/{name}", script)
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.deleted, report.missing, report.changed) == (0, 0, 0)
            assert report.state in ("failed", "partial")
            assert index_of(store) == before
            for name in TROUBLES:
                assert await found(kb, word(f"/{name}")) == {site.at(f"/{name}")}
            reported = dict(
                rows(
                    store,
                    "select p.url, c.error_message from page_crawls c join pages p on p.id = c.page_id "
                    "where c.outcome is not null and c.error_message is not null",
                )
            )
            reasons = {name: reported[site.at(f"/{name}")] for name in TROUBLES}
            assert {name: each for name, each in reasons.items() if TROUBLES[name][1] not in each} == {}
            site.behave()
            (healthy,) = await kb.runs.refresh(["docs"])
            assert (healthy.state, counts(healthy)) == ("completed", {"not_modified": len(paths) + 1})
    assert_sound(store)


async def test_F53_a_slow_page_costs_one_worker_and_not_the_run(store: Path, work: object) -> None:
    with HostileSite() as site:
        _lay(site, [f"/p{number}" for number in range(12)])
        site.say("/p3", drip("body"))
        async with opened(store, {"network.timeout_seconds": 2, "policy.retries": 0}) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
    assert (report.new, report.failed) == (12, 1)
    slow = next(asked.at for asked in site.requests if asked.path == "/p3")
    others = [asked.at for asked in site.requests if asked.path.startswith("/p")]
    assert max(others) - slow < 2  # all others were asked for while it dripped


async def test_F55_a_page_that_broke_off_is_whole_after_the_retry(store: Path, work: object) -> None:
    with HostileSite() as site:
        _lay(site, ["/a"])
        site.say("/a", in_turn(truncated(), None))
        async with opened(store) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
            assert (report.state, report.new) == ("completed", 2)
            assert await found(kb, word("/a")) == {site.at("/a")}


async def test_F66_html_as_octet_stream_is_parsed(store: Path, work: object) -> None:
    with HostileSite() as site:
        _lay(site, ["/a", "/b"])
        for path, media in (("/a", "application/octet-stream"), ("/b", "")):
            site.put(path, page(path), media_type=media)
        async with opened(store) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
            assert (report.state, report.new) == ("completed", 3)
            assert await found(kb, word("/a")) == {site.at("/a")}


ENCODED = {
    "utf-8-sig": ("text/html", "<meta charset=latin-1>"),
    "utf-16": ("text/html; charset=utf-8", ""),
    "shift_jis": ("text/html; charset=Shift_JIS", "<meta charset=utf-8>"),
    "euc_jp": ("text/html", "<meta charset=euc-jp>"),
    "iso2022_jp": ("text/html; charset=iso-2022-jp", ""),
    "utf-8": ("text/html; charset=no-such-thing", ""),
}


async def test_F60_F61_encodings_and_odd_characters_are_stored_and_stay_the_same(store: Path, work: object) -> None:
    with HostileSite(etags=False) as site:
        for name, (media, head) in ENCODED.items():
            html = f"<html><head>{head}<title>t</title></head><body><p>日本 {word(name)}</p>"
            site.say(f"/{name}", answer(200, html.encode(name), content_type=media))
        odd = b"<title>a\0b\x1b[31m</title><p>oddities \0 &#0; &#xD800; \xed\xa0\x80 \x07 "
        odd += "\u202eltr\u202c \ufeff \u200b \U0010ffff".encode()
        site.say("/odd", answer(200, odd, content_type="text/html; charset=utf-8"))
        site.put("/", page("/", [f"/{name}" for name in (*ENCODED, "odd")]))
        async with opened(store) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
            assert (report.state, report.new) == ("completed", len(ENCODED) + 2)
            before = index_of(store)
            for name in ENCODED:
                assert (before[site.at(f"/{name}")].markdown or "").startswith("日本")
                assert await found(kb, word(name)) == {site.at(f"/{name}")}
            assert await found(kb, "oddities") == {site.at("/odd")}
            texts = [text for held in before.values() for text in (held.title, *held.chunks)]
            assert not any("\0" in text for text in texts)
            (again,) = await kb.runs.refresh(["docs"], full=True)
            assert (again.changed, again.unchanged) == (0, len(ENCODED) + 2)
            assert index_of(store) == before


ODD_HEADERS = {
    "/coding": b"Content-Encoding: \xff\xfe\x01",
    "/media": b"Content-Type: image/\xff\x80",
    "/type": b"Content-Type: \xc3\x28/\xff",
    "/charset": b"Content-Type: text/html; charset=\xff\xfe",
    "/language": b"Content-Type: text/html\r\nContent-Language: \xff\xfe",
    "/etag": b'Content-Type: text/html\r\nETag: "\xff\xfe"\r\nLast-Modified: \xff',
    "/robots": b"Content-Type: text/html\r\nX-Robots-Tag: \xff, \x80: noindex",
}
ODD_TARGETS = {"/location": b"\xff\xfe://\xff", "/path": b"/\xff\xfe", "/host": b"http://\xff\xfe.example/"}


async def test_F61_bytes_in_headers_that_are_no_text_reach_no_store(store: Path, work: object) -> None:
    body = page("odd headers").encode()
    with HostileSite() as site:
        for path, header in ODD_HEADERS.items():
            length = b"Content-Length: %d" % len(body)
            site.say(path, b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + header + b"\r\n\r\n" + body)
        for path, target in ODD_TARGETS.items():
            for code in (301, 302):
                head = b"HTTP/1.1 %d Found\r\nContent-Length: 0\r\nLocation: " % code
                site.say(f"{path}{code}", head + target + b"\r\n\r\n")
        paths = [*ODD_HEADERS, *(f"{path}{code}" for path in ODD_TARGETS for code in (301, 302))]
        site.put("/", page("/", paths))
        async with opened(store, QUICK) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
            reported = dict(rows(store, "select url, error_message from page_crawls where outcome is not null"))
            assert not [reason for reason in reported.values() if "internal error" in (reason or "")]
            assert reported[site.at("/coding")] == "content coding \ufffd\ufffd\x01 is not supported"
            read = {site.at(path) for path in ("/", "/charset", "/language", "/etag", "/robots")}
            assert set(index_of(store)) == read
            assert report.new == len(read)
            assert await kb.pages.of_source("docs")
    assert_sound(store)


async def test_F61_naughty_strings_are_stored_found_and_asked_for(shared: Path, store: Path, work: object) -> None:
    strings: list[str] = json.loads((shared / "data/naughty/blns.json").read_text("utf-8"))
    with HostileSite() as site:
        groups = [strings[start : start + 20] for start in range(0, len(strings), 20)]
        for number, group in enumerate(groups):
            text = "".join(f"<p>{escape(each)}</p>" for each in group)
            html = f"<title>{escape(group[0])}</title><main><h1>Part {number}</h1>{text}</main>"
            site.put(f"/{number}", html)
        site.put("/", page("/", [f"/{number}" for number in range(len(groups))]))
        async with opened(store) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
            assert (report.state, report.new) == ("completed", len(groups) + 1)
            for text in strings:
                await kb.search.search(text, within=["docs"])
            (again,) = await kb.runs.refresh(["docs"], full=True)
            assert (again.changed, again.unchanged) == (0, len(groups) + 1)
    assert_sound(store)


class Poisoned(ParserPool):
    """An Offload whose process dies whenever it is handed the body of a page called /poison."""

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of the function, or a crash of the real process."""
        if any(isinstance(each, Body) and each.url.endswith("/poison") for each in args):
            return await super().call(os._exit, 139)
        return await super().call(function, *args, **kwargs)


async def test_F27_F63_a_page_that_kills_the_parser_is_kept_and_the_rest_goes_on(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostileSite(etags=False) as site:
        _lay(site, ["/poison", *(f"/p{number}" for number in range(12))])
        async with opened(store) as kb:
            await kb.runs.crawl(site.url, name="docs")
            for path in site.paths:
                site.edit(path, "little else", "much more")
            monkeypatch.setattr("afresh.crawl.factory.ParserPool", Poisoned)
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.changed, report.deleted) == (13, 0)
            assert await found(kb, word("/poison")) == {site.at("/poison")}
            held = index_of(store)
            assert sentence("/poison") in (held[site.at("/poison")].markdown or "")
            reported = rows(store, "select error_message from page_crawls where error_message like '%parser crashed%'")
            assert len(reported) == 3  # and then it is left alone
            assert all("exit code 139" in reason for (reason,) in reported)
    assert_sound(store)


async def test_F36_a_flapping_page_is_found_whenever_it_is_there(store: Path, work: object) -> None:
    with HostileSite() as site:
        _lay(site, [f"/p{number}" for number in range(12)])
        async with opened(store, {"policy.gone_after": 3}) as kb:
            await kb.runs.crawl(site.url, name="docs")
            site.say("/p3", in_turn(status(404), None))
            for _ in range(6):
                (report,) = await kb.runs.refresh(["docs"])
                assert report.deleted == 0
                assert await found(kb, word("/p3")) == {site.at("/p3")}
