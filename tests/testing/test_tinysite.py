"""The shipped test site behaves like a real web server, and does what its script says."""

import asyncio
import http.client
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from tests.fakes.attempts import Attempts

from afresh.model.fetch import Body, Gone, NotModified, Outcome, Request
from afresh.ports import Clock, Fetcher
from afresh.testing import FrozenClock, ScriptedFetcher, TinySite
from afresh.testing.site import ORPHAN, UNLISTED, pages

PAGE = "<!doctype html><title>T</title><main><article><p>One.</p></article></main>"


@pytest.fixture
def tiny() -> Iterator[TinySite]:
    with TinySite() as site:
        site.put("/", PAGE)
        yield site


def ask(site: TinySite, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    try:
        connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


# ---- pages and validators ---------------------------------------------------------------------


def test_serves_a_page_with_its_validators(tiny: TinySite) -> None:
    status, headers, body = ask(tiny, "/")
    assert (status, body) == (200, PAGE)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Length"] == str(len(PAGE))
    assert re.fullmatch(r'"[0-9a-f]{20}"', headers["ETag"])
    assert headers["Last-Modified"].endswith("GMT")


def test_head_has_the_headers_and_no_body(tiny: TinySite) -> None:
    _, full, _ = ask(tiny, "/")
    status, headers, body = ask(tiny, "/", "HEAD")
    assert (status, body, headers["Content-Length"]) == (200, "", full["Content-Length"])
    assert headers["ETag"] == full["ETag"]


def test_other_methods_and_unknown_paths_are_refused(tiny: TinySite) -> None:
    status, headers, _ = ask(tiny, "/", "POST")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert ask(tiny, "/nothing")[0] == 404


def test_etag_gives_304_until_the_content_changes(tiny: TinySite) -> None:
    """A24: the ETag changes together with the content."""
    etag = ask(tiny, "/")[1]["ETag"]
    status, headers, body = ask(tiny, "/", If_None_Match=etag)
    assert (status, headers["ETag"], body) == (304, etag, "")
    tiny.edit("/", "One.", "Two.")
    status, headers, body = ask(tiny, "/", If_None_Match=etag)
    assert status == 200
    assert headers["ETag"] != etag
    assert "Two." in body
    tiny.edit("/", "Two.", "One.")
    assert ask(tiny, "/", If_None_Match=etag)[0] == 304


@pytest.mark.parametrize("form", ["W/{}", '"other", {}', '"other",W/{}', "*"])
def test_if_none_match_compares_weakly_and_takes_lists(tiny: TinySite, form: str) -> None:
    etag = ask(tiny, "/")[1]["ETag"]
    assert ask(tiny, "/", If_None_Match=form.format(etag))[0] == 304


def test_if_none_match_wins_over_the_date(tiny: TinySite) -> None:
    date = ask(tiny, "/")[1]["Last-Modified"]
    assert ask(tiny, "/", If_Modified_Since=date)[0] == 304
    assert ask(tiny, "/", If_Modified_Since=date, If_None_Match='"other"')[0] == 200
    assert ask(tiny, "/", If_Modified_Since="no date")[0] == 200


def test_without_etags_two_edits_in_one_second_differ_by_date() -> None:
    with TinySite(etags=False) as site:
        site.put("/", PAGE)
        headers = ask(site, "/")[1]
        assert "ETag" not in headers
        site.edit("/", add_paragraph="More.")
        assert ask(site, "/", If_Modified_Since=headers["Last-Modified"])[0] == 200


def test_touch_changes_the_date_but_not_the_etag(tiny: TinySite) -> None:
    before = ask(tiny, "/")[1]
    tiny.touch("/")
    after = ask(tiny, "/")[1]
    assert before["ETag"] == after["ETag"]
    assert before["Last-Modified"] != after["Last-Modified"]


def test_content_headers_and_media_type_are_sent_as_put(tiny: TinySite) -> None:
    tiny.put("/a.md", "# Ä", media_type="text/markdown", headers={"X-Robots-Tag": "noindex"})
    status, headers, body = ask(tiny, "/a.md")
    assert (status, headers["X-Robots-Tag"], body) == (200, "noindex", "# Ä")
    assert headers["Content-Type"] == "text/markdown; charset=utf-8"
    numbers = iter(range(9))
    tiny.put("/fresh", lambda: f"<p>{next(numbers)}</p>")
    assert ask(tiny, "/fresh")[2] != ask(tiny, "/fresh")[2]


def test_a_query_finds_its_own_page_first(tiny: TinySite) -> None:
    tiny.put("/list", "all")
    tiny.put("/list?page=2", "second")
    assert [ask(tiny, path)[2] for path in ("/list?page=2", "/list?page=3")] == ["second", "all"]


# ---- the script ---------------------------------------------------------------------------------


def test_edit_replaces_text_or_adds_a_paragraph(tiny: TinySite) -> None:
    tiny.edit("/", add_paragraph="a < b")
    assert "<p>a &lt; b</p>\n</article>" in ask(tiny, "/")[2]
    with pytest.raises(ValueError, match="does not contain 'Nine'"):
        tiny.edit("/", "Nine", "Ten")
    with pytest.raises(KeyError, match="no page at /none"):
        tiny.edit("/none", "a", "b")


def test_delete_gone_and_restore(tiny: TinySite) -> None:
    tiny.delete("/")
    assert ask(tiny, "/")[0] == 404
    assert tiny.paths == []
    tiny.gone("/")
    assert ask(tiny, "/")[0] == 410
    tiny.restore("/")
    assert ask(tiny, "/")[2] == PAGE


def test_move_takes_the_content_along(tiny: TinySite) -> None:
    tiny.move("/", "/new/")
    status, headers, _ = ask(tiny, "/")
    assert (status, headers["Location"]) == (301, "/new/")
    assert ask(tiny, "/new/")[2] == PAGE
    tiny.move("/new/", "/newer/", permanent=False)
    assert ask(tiny, "/new/")[0] == 302


def test_redirect_can_loop(tiny: TinySite) -> None:
    tiny.redirect("/a", "/b", status=307)
    tiny.redirect("/b", "/a", status=308)
    assert [ask(tiny, path)[:2][0] for path in ("/a", "/b")] == [307, 308]


def test_fail_for_some_requests_and_for_good(tiny: TinySite) -> None:
    tiny.fail("/", 429, times=2, retry_after=7)
    first, second, third = (ask(tiny, "/") for _ in range(3))
    assert (first[0], first[1]["Retry-After"]) == (429, "7")
    assert (second[0], third[0]) == (429, 200)
    tiny.fail("/")
    assert [ask(tiny, "/")[0] for _ in range(4)] == [503] * 4


def test_slow_answers_late(tiny: TinySite) -> None:
    tiny.slow("/", 0.05)
    ask(tiny, "/")
    tiny.restore("/")
    ask(tiny, "/")
    slow, quick = tiny.requests
    assert quick.at - slow.at >= 0.05


def test_hold_keeps_requests_until_release_while_others_pass(tiny: TinySite) -> None:
    tiny.put("/other", "passes")
    gate = tiny.hold("/")
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(ask, tiny, "/") for _ in range(2)]
        gate.wait(2)
        assert ask(tiny, "/other")[2] == "passes"
        assert not any(each.done() for each in waiting)
        tiny.release("/")
        assert [each.result()[0] for each in waiting] == [200, 200]
    assert ask(tiny, "/")[0] == 200


async def test_hold_from_async_code(tiny: TinySite) -> None:
    gate = tiny.hold("/")
    async with aiohttp.ClientSession() as session:
        task = asyncio.create_task(session.get(tiny.url))
        await gate.arrived()
        assert not task.done()
        gate.release()
        async with await task as answer:
            assert answer.status == 200


def test_a_gate_says_when_nobody_comes(tiny: TinySite) -> None:
    with pytest.raises(TimeoutError, match="0 of 1 requests"):
        tiny.hold("/").wait(timeout=0.01)


async def test_down_hangs_up_and_refuses_then_up_is_the_same_address(tiny: TinySite) -> None:
    url = tiny.url
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert answer.status == 200
        tiny.down()
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)
        tiny.up()
        assert tiny.url == url
        async with session.get(url) as answer:
            assert answer.status == 200


def test_down_cuts_a_request_that_is_held(tiny: TinySite) -> None:
    gate = tiny.hold("/")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(ask, tiny, "/")
        gate.wait()
        tiny.down()
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            waiting.result()
    assert [each.status for each in tiny.requests] == [None]


def test_start_and_close_repeat_and_leave_no_thread() -> None:
    before = threading.active_count()
    site = TinySite()
    with pytest.raises(RuntimeError, match="not started"):
        _ = site.url
    for _ in range(3):
        assert site.start() is site.start()
        site.close()
        site.close()
    assert threading.active_count() == before


def test_a_taken_port_is_an_error_and_leaves_no_thread(tiny: TinySite) -> None:
    before = threading.active_count()
    with pytest.raises(OSError, match="in use"):
        TinySite(port=tiny.port).start()
    assert threading.active_count() == before


def test_robots_and_sitemap(tiny: TinySite) -> None:
    assert [ask(tiny, path)[0] for path in ("/robots.txt", "/sitemap.xml")] == [404, 404]
    tiny.robots("Sitemap: {url}sitemap.xml")
    tiny.sitemap(True)
    tiny.put("/a?x=1&y=2", PAGE)
    tiny.put("/hidden", PAGE, listed=False)
    tiny.put("/deleted", PAGE)
    tiny.delete("/deleted")
    assert ask(tiny, "/robots.txt")[2] == f"Sitemap: {tiny.url}sitemap.xml"
    found = re.findall("<loc>(.*?)</loc>", ask(tiny, "/sitemap.xml")[2])
    assert found == [tiny.url, f"{tiny.url}a?x=1&amp;y=2"]


def test_requests_are_recorded_in_order(tiny: TinySite) -> None:
    ask(tiny, "/", If_None_Match='"x"', User_Agent="test/1")
    ask(tiny, "/no?q=1", "HEAD", If_Modified_Since="Mon, 05 Jan 2026 09:00:00 GMT")
    first, second = tiny.requests
    assert (first.method, first.path, first.status, first.if_none_match) == ("GET", "/", 200, '"x"')
    assert (first.user_agent, first.conditional) == ("test/1", True)
    assert (second.method, second.path, second.status) == ("HEAD", "/no?q=1", 404)
    assert second.if_modified_since == "Mon, 05 Jan 2026 09:00:00 GMT"
    assert second.at >= first.at
    assert (len(tiny.requests), tiny.requests.count("/"), tiny.requests.count(status=404)) == (2, 1, 1)
    tiny.requests.clear()
    assert tiny.requests.paths() == []


def test_changes_from_many_threads_are_whole(tiny: TinySite) -> None:
    tiny.put("/n", "<p>0</p>")

    def add(number: int) -> int:
        tiny.edit("/n", add_paragraph=str(number))
        return ask(tiny, "/n")[0]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(add, range(40))) == {200}
    assert len(re.findall("<p>", tiny.read("/n"))) == 41


# ---- the documentation of Harbor ------------------------------------------------------------------


def links(html: str) -> set[str]:
    return set(re.findall(r'<a[^>]* href="([^"#]+)', html))


def words(html: str) -> int:
    article = re.search(r"<article[^>]*>(.*)</article>", html, re.DOTALL)
    assert article
    return len(re.sub(r"<[^>]+>", " ", article[1]).split())


def test_harbor_has_pages_of_a_real_size() -> None:
    assert len(pages()) >= 24
    odd = {path: words(html) for path, html in pages().items() if not 150 <= words(html) <= 700}
    assert odd == {}


def test_harbor_links_lead_somewhere_and_all_but_one_page_is_linked(site: TinySite) -> None:
    linked = {link for html in pages().values() for link in links(html) if link.startswith("/")}
    assert linked - set(pages()) == set()
    assert set(pages()) - linked == {ORPHAN}
    assert all("://" in link or link.startswith("/") for html in pages().values() for link in links(html))
    assert {ask(site, path)[0] for path in pages()} == {200}


def test_harbor_keeps_robots_and_sitemap_apart(site: TinySite) -> None:
    assert "Disallow: /private/" in ask(site, "/robots.txt")[2]
    listed = set(re.findall("<loc>(.*?)</loc>", ask(site, "/sitemap.xml")[2]))
    assert site.at(ORPHAN) in listed
    assert listed == {site.at(path) for path in set(pages()) - UNLISTED}


def test_harbor_shows_every_kind_of_content() -> None:
    everything = "".join(pages().values())
    languages = set(re.findall(r'class="language-(\w+)"', everything))
    assert {"python", "go", "bash", "yaml", "json"} <= languages
    for kind in ("<table>", "<dl>", 'class="admonition warning"', 'class="admonition note"', "<ol>"):
        assert kind in everything


# ---- the other fakes ------------------------------------------------------------------------------


def test_frozen_clock_moves_only_on_request() -> None:
    clock = FrozenClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    as_port: Clock = clock
    assert as_port() == as_port()
    assert clock.advance(90) == datetime(2026, 3, 1, 12, 1, 30, tzinfo=UTC)
    clock.advance(days=-1)
    assert clock() == datetime(2026, 2, 28, 12, 1, 30, tzinfo=UTC)
    with pytest.raises(ValueError, match="no time zone"):
        clock.set(datetime(2026, 1, 1))  # noqa: DTZ001


def test_B14_factories_for_attempts() -> None:
    attempts = Attempts("https://docs.example.org/a", page_id=7)
    done, bad = attempts.successful(), attempts.failed("connection reset")
    later = attempts.scheduled_at(attempts.now + timedelta(hours=1))
    held = attempts.locked("worker-9")
    assert [each.id for each in (done, bad, later, held)] == [1, 2, 3, 4]
    assert (done.outcome, done.status_code, done.completed_at) == (Outcome.SUCCESS, 200, attempts.now)
    assert (bad.outcome, bad.error_message) == (Outcome.FAILED, "connection reset")
    assert (later.outcome, later.scheduled_for, later.locked_at) == (None, attempts.now + timedelta(hours=1), None)
    assert (held.outcome, held.locked_by, held.locked_at) == (None, "worker-9", attempts.now)
    assert {each.domain for each in (done, bad, later, held)} == {"docs.example.org"}


async def test_scripted_fetcher_gives_its_answers_in_turn() -> None:
    body = Body(url="http://x/", data=b"one")
    scripted = ScriptedFetcher({"http://x/": [body, NotModified()]})
    fetcher: Fetcher = scripted
    request = Request(url="http://x/")
    assert [await fetcher.fetch(request) for _ in range(3)] == [body, NotModified(), NotModified()]
    assert await fetcher.fetch(Request(url="http://y/")) == Gone()
    scripted.say("http://y/", body)
    assert await fetcher.fetch(Request(url="http://y/")) == body
    await fetcher.close()
    assert (scripted.count("http://x/"), len(scripted.requests), scripted.closed) == (3, 5, True)


# ---- the guard of the suite -----------------------------------------------------------------------


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "docs.example.org"])
def test_the_suite_reaches_loopback_only(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(RuntimeError, match="loopback only"):
        sock.connect((address, 9))
