"""robots.txt (F72-F75) on the wire; what its lines mean is in test_robots_rules.py."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.servers import Answer, Names, Raw, RecordedRequest, Wire, answer, fetching, html, redirect, serving

from afresh.model.fetch import Body, Failed, Outcome, Refused, Request
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.http import HttpFetcher
from afresh.sources.web.robots import RobotsFiles, RobotsRules
from afresh.urls.canonical import canonical

CLOSED = b"User-agent: *\nDisallow: /"
RULES = b"""# rules
User-agent: otherbot
Disallow: /

User-agent: *
Allow: /private/open
Disallow: /private
Disallow: /private/very/
Disallow: /*.pdf$
Crawl-delay: 2
Sitemap: /maps/one.xml
Sitemap: https://cdn.example.net/two.xml#x
"""


class _Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def _gate(fetcher: HttpFetcher, **settings: object) -> WebFetcher:
    return WebFetcher(fetcher, RobotsFiles(fetcher, **settings))  # type: ignore[arg-type]


async def _page_behind(
    robots: Answer | None, path: str = "/page", **settings: object
) -> tuple[object, Wire, WebFetcher]:
    routes: dict[str, Answer] = {path: html("page")}
    if robots is not None:
        routes["/robots.txt"] = robots
    async with serving(routes) as wire, fetching(timeout_seconds=0.5) as fetcher:
        gate = _gate(fetcher, **settings)
        return await gate.fetch(Request(url=wire.url(path))), wire, gate


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/private/x", "robots.txt line 7: Disallow: /private"),
        ("/private/very/x", "robots.txt line 8: Disallow: /private/very/"),
        ("/a/b.pdf", "robots.txt line 9: Disallow: /*.pdf$"),
    ],
)
async def test_C12_what_robots_forbids_is_not_asked_for(path: str, reason: str) -> None:
    seen, wire, _ = await _page_behind(answer(200, RULES), path)
    assert seen == Refused(outcome=Outcome.BLOCKED_ROBOTS, reason=reason)
    assert wire.paths() == ["/robots.txt"]


@pytest.mark.parametrize("path", ["/", "/private/open/x", "/a.pdf?x", "/publi"])
async def test_what_robots_allows_is_fetched(path: str) -> None:
    seen, _, gate = await _page_behind(answer(200, RULES), path)
    assert isinstance(seen, Body)
    assert gate.state(seen.url.rsplit("/", 1)[0]) == "ok"


@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 410, 451])
async def test_F72_4xx_and_no_content_mean_no_rules(status: int) -> None:
    seen, wire, gate = await _page_behind(answer(status, b"" if status == 204 else CLOSED))
    assert isinstance(seen, Body)
    assert gate.state(wire.origin) == "none"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "500 Internal Server Error"),
        (502, "502 Bad Gateway"),
        (503, "503 Service Unavailable"),
        (504, "504 Gateway Timeout"),
    ],
)
async def test_F72_5xx_means_that_nothing_is_fetched(status: int, words: str) -> None:
    seen, wire, gate = await _page_behind(answer(status))
    reason = f"robots.txt unreachable ({words}): nothing is fetched from this site"
    assert seen == Failed(outcome=Outcome.BLOCKED_5XX, reason=reason, status_code=status)
    assert gate.state(wire.origin) == "unreachable"
    assert wire.paths() == ["/robots.txt"]


async def _hang(asked: RecordedRequest, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("robots", "outcome"),
    [
        (Raw(_hang), Outcome.TIMEOUT),
        (answer(408), Outcome.TIMEOUT),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Outcome.FAILED),
    ],
)
async def test_F72_no_answer_or_nonsense_is_an_outage(robots: Answer, outcome: Outcome) -> None:
    seen, wire, gate = await _page_behind(robots)
    assert isinstance(seen, Failed)
    assert seen.outcome is outcome
    assert seen.reason.startswith("robots.txt unreachable (")
    assert gate.state(wire.origin) == "unreachable"


async def test_F30_F72_a_closed_port_is_an_outage() -> None:
    async with serving() as wire:
        url = wire.url("/page")
    async with fetching() as fetcher:
        gate = _gate(fetcher)
        seen = await gate.fetch(Request(url=url))
    assert isinstance(seen, Failed)
    assert "connection refused" in seen.reason
    assert (seen.outcome, seen.status_code) == (Outcome.FAILED, None)
    assert gate.state(wire.origin) == "unreachable"


@pytest.mark.parametrize("robots", [redirect("/robots.txt"), redirect("file:///x")])
async def test_F72_a_loop_or_a_redirect_to_a_file_is_unreachable(robots: Answer) -> None:
    seen, wire, gate = await _page_behind(robots)
    assert isinstance(seen, Refused)  # nothing that passes within a run
    assert (seen.outcome, seen.status_code) == (Outcome.BLOCKED_ROBOTS, 302)
    assert seen.reason.startswith("robots.txt unreachable (redirect")
    assert gate.state(wire.origin) == "unreachable"


async def test_F72_an_outage_is_shared_for_a_second_and_then_asked_about_again() -> None:
    clock = _Clock()
    routes: dict[str, Answer] = {"/robots.txt": answer(503), **{f"/{n}": html() for n in range(9)}}
    async with serving(routes) as wire, fetching() as fetcher:
        gate = _gate(fetcher, clock=clock)
        requests = [Request(url=wire.url(f"/{n}")) for n in range(9)]
        seen = await asyncio.gather(*map(gate.fetch, requests))
        assert all(isinstance(one, Failed) for one in seen)
        clock.now += timedelta(seconds=0.9)
        assert isinstance(await gate.fetch(requests[0]), Failed)
        assert wire.paths() == ["/robots.txt"]
        clock.now += timedelta(seconds=0.2)
        assert gate.state(wire.origin) == "unreachable"  # as long as nobody heard otherwise
        wire.routes["/robots.txt"] = answer(200, RULES)
        assert isinstance(await gate.fetch(requests[0]), Body)
        assert gate.state(wire.origin) == "ok"
        assert wire.paths() == ["/robots.txt", "/robots.txt", "/0"]


async def test_F72_F75_a_503_that_names_its_end_is_not_asked_about_before() -> None:
    clock = _Clock()
    routes = {"/robots.txt": answer(503, retry_after="30"), "/p": html()}
    async with serving(routes) as wire, fetching() as fetcher:
        gate = _gate(fetcher, clock=clock)
        request = Request(url=wire.url("/p"))
        for _ in range(2):
            seen = await gate.fetch(request)
            assert isinstance(seen, Failed)
            assert (seen.status_code, seen.retry_after) == (503, 30.0)
            clock.now += timedelta(seconds=29)
        assert wire.paths() == ["/robots.txt"]
        wire.routes["/robots.txt"] = answer(404)
        assert isinstance(await gate.fetch(request), Body)
        assert gate.state(wire.origin) == "none"


async def test_F72_an_address_that_is_not_allowed_is_reported_as_that() -> None:
    async with serving({"/": html()}) as wire, fetching(allow=()) as fetcher:
        seen = await _gate(fetcher).fetch(Request(url=wire.url()))
    assert isinstance(seen, Refused)
    assert seen.reason.startswith("address not allowed")


async def test_F75_429_for_robots_backs_off_and_asks_again() -> None:
    clock = _Clock()
    routes = {"/robots.txt": answer(429, retry_after="30"), "/p": html()}
    async with serving(routes) as wire, fetching() as fetcher:
        gate = _gate(fetcher, clock=clock)
        request = Request(url=wire.url("/p"))
        seen = [await gate.fetch(request), await gate.fetch(request)]
        assert all(isinstance(one, Failed) and one.retry_after == 30.0 for one in seen)
        assert wire.paths() == ["/robots.txt"]
        clock.now += timedelta(seconds=31)
        wire.routes["/robots.txt"] = answer(404)
        assert isinstance(await gate.fetch(request), Body)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_F72_five_redirects_are_followed_and_the_rules_apply_to_the_first_site(status: int) -> None:
    routes: dict[str, Answer] = {f"/r{n}": redirect(f"/r{n + 1}", status) for n in range(9)}
    async with (
        serving({"/robots.txt": answer(200, CLOSED)}) as other,
        serving(routes | {"/p": html()}) as wire,
        fetching() as fetcher,
    ):
        wire.routes["/robots.txt"] = redirect("/r1", status)
        wire.routes["/r4"] = redirect(other.url("/robots.txt"), status)
        seen = await _gate(fetcher).fetch(Request(url=wire.url("/p")))
        wire.routes["/r4"] = redirect("/r5", status)
        six = await _gate(fetcher).fetch(Request(url=wire.url("/p")))
    assert isinstance(seen, Refused)
    assert seen.reason == "robots.txt line 2: Disallow: /"
    assert isinstance(six, Refused)
    assert "more than 5 redirects" in six.reason


async def test_one_look_per_origin_however_many_come_at_once() -> None:
    routes = {"/robots.txt": answer(200, RULES)} | {f"/{n}": html() for n in range(20)}
    async with serving(routes) as wire, fetching() as fetcher:
        gate = _gate(fetcher)
        seen = await asyncio.gather(*(gate.fetch(Request(url=wire.url(f"/{n}"))) for n in range(20)))
    assert all(isinstance(one, Body) for one in seen)
    assert wire.paths().count("/robots.txt") == 1


async def test_a_cancelled_request_does_not_take_the_answer_from_the_others() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await go_on.wait()
        writer.write(answer(404))

    async with serving({"/robots.txt": Raw(slow), "/p": html()}) as wire, fetching() as fetcher:
        gate = _gate(fetcher)
        first = asyncio.ensure_future(gate.fetch(Request(url=wire.url("/p"))))
        await asked.wait()
        second = asyncio.ensure_future(gate.fetch(Request(url=wire.url("/p"))))
        first.cancel()
        go_on.set()
        assert isinstance(await second, Body)


async def test_every_scheme_host_and_port_has_its_own_rules() -> None:
    async with (
        serving({"/robots.txt": answer(200, CLOSED), "/p": html()}) as one,
        serving({"/p": html()}) as two,
        fetching() as fetcher,
    ):
        gate = _gate(fetcher)
        assert isinstance(await gate.fetch(Request(url=one.url("/p"))), Refused)
        assert isinstance(await gate.fetch(Request(url=two.url("/p"))), Body)
        assert (gate.state(one.origin), gate.state(two.origin), gate.state("http://x")) == ("ok", "none", "unknown")


async def test_rules_are_kept_for_a_day_and_longer_only_when_unreachable() -> None:
    clock = _Clock()
    async with serving({"/robots.txt": answer(200, CLOSED), "/p": html()}) as wire, fetching() as fetcher:
        gate = _gate(fetcher, clock=clock)
        request = Request(url=wire.url("/p"))
        await gate.fetch(request)
        clock.now += timedelta(hours=23)
        await gate.fetch(request)
        assert wire.paths() == ["/robots.txt"]
        clock.now += timedelta(hours=2)
        wire.routes["/robots.txt"] = answer(503)
        seen = await gate.fetch(request)
        assert isinstance(seen, Refused)
        assert "line 2" in seen.reason
        assert gate.state(wire.origin) == "ok"
        await gate.fetch(request)
        assert wire.paths() == ["/robots.txt"] * 2
        gate.robots.forget()
        wire.routes["/robots.txt"] = answer(404)
        assert isinstance(await gate.fetch(request), Body)


async def test_F73_robots_can_be_left_out_by_a_setting() -> None:
    seen, wire, gate = await _page_behind(answer(200, CLOSED), respect=False)
    assert isinstance(seen, Body)
    assert wire.paths() == ["/page"]
    assert await gate.refusal(wire.url("/page")) is None


async def test_F50_whether_a_redirect_may_lead_somewhere_is_asked_of_the_site_it_leads_to() -> None:
    async with serving({"/robots.txt": answer(200, RULES)}) as wire, fetching() as fetcher:
        gate = _gate(fetcher)
        refused = await gate.refusal(wire.url("/private"))
        assert isinstance(refused, Refused)
        assert await gate.refusal(wire.url("/p")) is None
        assert wire.paths() == ["/robots.txt"]


async def test_sitemaps_are_named_in_canonical_form_and_may_always_be_read() -> None:
    names = Names({})
    rules = RULES + b"Disallow: /maps/\n"
    async with (
        serving({"/robots.txt": answer(200, rules), "/maps/one.xml": answer(200, b"<urlset/>")}) as wire,
        fetching(resolver=names) as fetcher,
    ):
        gate = _gate(fetcher)
        assert await gate.robots.sitemaps(wire.origin) == (wire.url("/maps/one.xml"), "https://cdn.example.net/two.xml")
        assert isinstance(await gate.robots.read(wire.url("/maps/one.xml"), limit=100), Body)
        assert isinstance(await gate.robots.read(wire.url("/private/two.xml"), limit=100), Refused)
        wire.routes["/robots.txt"] = answer(503)
        gate.robots.forget()
        assert isinstance(await gate.robots.read(wire.url("/maps/one.xml"), limit=100), Failed)


async def test_S2_F180_sitemaps_of_a_large_robots_txt_are_made_canonical_once_and_off_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = list[int]()

    def record(raw_url: str, base: str | None = None) -> str | None:
        threads.append(threading.get_ident())
        return canonical(raw_url, base)

    monkeypatch.setattr("afresh.sources.web.robots.canonical", record)
    named = "".join(f"Sitemap: /{number}?{'&' * 7_900}\n" for number in range(20))
    rules = f"{named}Sitemap: /one.xml\nUser-agent: *\nDisallow: /\n"
    async with serving({"/robots.txt": answer(200, rules.encode())}) as wire, fetching() as fetcher:
        gate = _gate(fetcher)
        for _ in range(2):
            assert await gate.robots.sitemaps(wire.origin) == (wire.url("/one.xml"),)
            assert isinstance(await gate.robots.read(wire.url("/two.xml"), limit=100), Refused)
    assert len(threads) == 21
    assert threading.get_ident() not in threads


async def test_F74_the_pause_a_site_asks_for_is_known_as_soon_as_its_robots_txt_is() -> None:
    clock = _Clock()
    async with serving({"/robots.txt": answer(503)}) as wire, fetching() as fetcher:
        gate = _gate(fetcher, clock=clock)
        assert await gate.crawl_delay(wire.url("/")) is None  # nobody can know
        clock.now += timedelta(seconds=2)
        wire.routes["/robots.txt"] = answer(200, b"User-agent: *\nCrawl-delay: 1e9")
        assert await gate.crawl_delay(wire.url("/")) == 60.0
        gate.robots.forget()
        wire.routes["/robots.txt"] = answer(404)
        assert await gate.crawl_delay(wire.url("/")) == 0.0


async def test_F72_a_large_file_is_parsed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    def parse(data: bytes, agent: str) -> RobotsRules:
        threads.append(threading.current_thread() is threading.main_thread())
        return RobotsRules(data, agent)

    monkeypatch.setattr("afresh.sources.web.robots.RobotsRules", parse)
    small, large = CLOSED, CLOSED + b"\n# x" * 200_000
    for body in (small, large):
        seen, _, _ = await _page_behind(answer(200, body))
        assert isinstance(seen, Refused)
    assert threads == [True, False]
