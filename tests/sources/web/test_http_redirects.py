"""Redirects are followed by hand (F49-F52, G12)."""

import pytest
from tests.fakes.servers import Names, answer, anywhere, fetching, html, redirect, serving

from afresh.model.fetch import Body, Failed, Moved, Outcome, Refused, Request, Validators
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.robots import RobotsFiles


@pytest.mark.parametrize("status", [301, 308])
async def test_G12_a_permanent_redirect_moves_the_page(status: int) -> None:
    async with serving({"/a": redirect("b/../c#x", status)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url("/a")))
    assert seen == Moved(to=wire.url("/c"), status_code=status)
    assert wire.paths() == ["/a"]


async def test_G12_a_permanent_move_to_another_site_is_reported_not_followed() -> None:
    async with serving({"/": redirect("https://other.example/x", 301)}) as wire, fetching() as fetcher:
        assert await fetcher.fetch(Request(url=wire.url())) == Moved(to="https://other.example/x", status_code=301)


@pytest.mark.parametrize("status", [302, 303, 307])
async def test_G12_content_behind_a_temporary_redirect_belongs_to_the_address_asked_for(status: int) -> None:
    routes = {"/a": redirect("/b", status), "/b": redirect("/c", 301), "/c": html("c")}
    async with serving(routes) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url("/a")))
    assert isinstance(seen, Body)
    assert (seen.data, seen.url, seen.validators.url) == (b"c", wire.url("/c"), wire.url("/c"))


@pytest.mark.parametrize(
    "routes",
    [
        {"/a": redirect("/a")},
        {"/a": redirect("/a#top")},
        {"/a": redirect("/b"), "/b": redirect("/a")},
        {"/a": redirect("/a", 301)},
        {"/a": redirect("/b"), "/b": redirect("/c"), "/c": redirect("/b", 308)},
    ],
)
async def test_F49_a_loop_is_refused_and_names_the_chain(routes: dict[str, bytes]) -> None:
    async with serving(routes) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url("/a")))
    assert isinstance(seen, Refused)  # asking again would find it again
    assert seen.outcome is Outcome.FAILED
    assert seen.reason.startswith(f"redirect loop: {wire.url('/a')} → ")
    assert len(wire.asked) == len(routes)


async def test_F50_five_hops_are_followed_and_no_more() -> None:
    routes = {f"/{n}": redirect(f"/{n + 1}") for n in range(50)} | {"/50": html("end")}
    async with serving(routes) as wire, fetching() as fetcher:
        near = await fetcher.fetch(Request(url=wire.url("/45")))
        wire.asked.clear()
        far = await fetcher.fetch(Request(url=wire.url("/0")))
    assert isinstance(near, Body)
    assert isinstance(far, Refused)
    assert far.status_code == 302
    assert "more than 5 redirects" in far.reason
    assert wire.url("/5") in far.reason
    assert wire.paths() == [f"/{n}" for n in range(6)]


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "FILE:/etc/passwd", "data:text/html,x", "javascript:alert(1)", "ftp://x/", "http://u:p@x/"],
)
@pytest.mark.parametrize("status", [301, 302])
async def test_F50_only_http_is_followed(target: str, status: int) -> None:
    async with serving({"/": redirect(target, status)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Refused)
    assert seen.outcome is Outcome.FAILED
    assert seen.status_code == status


async def test_F50_a_temporary_redirect_to_another_site_is_refused() -> None:
    names = Names({"docs.example.org": ["127.0.0.1"], "login.example.net": ["127.0.0.1"]})
    async with serving() as wire, fetching(resolver=names) as fetcher:
        wire.routes["/a"] = redirect(f"http://login.example.net:{wire.port}/b")
        wire.routes["/b"] = html("login")
        seen = await fetcher.fetch(Request(url=f"http://docs.example.org:{wire.port}/a"))
    assert isinstance(seen, Refused)
    assert seen.reason.startswith(f"redirected to http://login.example.net:{wire.port}/b, which is outside")
    assert wire.paths() == ["/a"]


async def test_F50_what_a_redirect_may_reach_is_a_hook() -> None:
    names = Names({"docs.example.org": ["127.0.0.1"], "cdn.example.net": ["127.0.0.1"]})
    asked: list[str] = []

    async def refusal(url: str, page: str) -> Refused | Failed | None:
        asked.append(url)
        if "private" in url:
            return Refused(outcome=Outcome.BLOCKED_ROBOTS, reason="robots.txt line 2: Disallow: /private")
        if "later" in url:
            return Failed(outcome=Outcome.BLOCKED_5XX, reason="out of order", status_code=503, retry_after=9.0)
        return None

    async with serving({"/b": html("b")}) as wire, fetching(resolver=names, refusal=refusal) as fetcher:
        docs, cdn = f"http://docs.example.org:{wire.port}", f"http://cdn.example.net:{wire.port}"
        wire.routes["/a"] = redirect(f"{cdn}/b")
        wire.routes["/c"] = redirect("/private/x")
        wire.routes["/d"] = redirect(f"{cdn}/later")
        good, bad, late = [await fetcher.fetch(Request(url=docs + path)) for path in ("/a", "/c", "/d")]
    assert isinstance(good, Body)
    assert bad == Refused(
        outcome=Outcome.BLOCKED_ROBOTS,
        reason=f"redirected to {docs}/private/x: robots.txt line 2: Disallow: /private",
        status_code=302,
    )
    assert late == Failed(  # it may pass
        outcome=Outcome.BLOCKED_5XX, reason=f"redirected to {cdn}/later: out of order", status_code=302, retry_after=9.0
    )
    assert asked == [f"{cdn}/b", f"{docs}/private/x", f"{cdn}/later"]
    assert wire.paths() == ["/a", "/b", "/c", "/d"]  # nothing was asked that may not be


@pytest.mark.parametrize(
    ("robots", "kind"), [(answer(200, b"User-agent: *\nDisallow: /"), Refused), (answer(503), Failed)]
)
async def test_F50_F72_robots_txt_of_another_origin_is_asked_before_a_redirect_leads_into_it(
    robots: bytes, kind: type
) -> None:
    async def refusal(url: str, asked: str) -> Refused | Failed | None:
        return await gate.refusal(url)

    async with (
        serving({"/robots.txt": robots, "/b": html("b")}) as other,
        serving({"/a": redirect(other.url("/b"))}) as wire,
        fetching(refusal=refusal) as fetcher,
    ):
        gate = WebFetcher(fetcher, RobotsFiles(fetcher))
        seen = await gate.fetch(Request(url=wire.url("/a")))
        assert isinstance(seen, kind)
        assert other.paths() == ["/robots.txt"]
        gate.robots.forget()
        other.routes["/robots.txt"] = answer(404)
        assert isinstance(await gate.fetch(Request(url=wire.url("/a"))), Body)


async def test_F75_retry_after_of_a_redirect_is_waited_for_before_it_is_followed() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        assert wire.paths()[-1] != "/b"
        slept.append(seconds)

    routes = {"/b": html("b")}
    async with serving(routes) as wire, fetching(sleep=sleep, idle_seconds=20.0) as fetcher:
        wire.routes["/short"] = answer(307, location="/b", retry_after="10")
        wire.routes["/long"] = answer(302, location="/b", retry_after="99999")
        wire.routes["/moved"] = answer(301, location="/b", retry_after="10")
        wire.routes["/odd"] = answer(302, location="/b", retry_after="soon")
        seen = {path: await fetcher.fetch(Request(url=wire.url(path))) for path in list(wire.routes)}
    assert isinstance(seen["/short"], Body)
    assert isinstance(seen["/odd"], Body)
    assert slept == [10.0]
    assert seen["/moved"] == Moved(to=wire.url("/b"), status_code=301, retry_after=10.0)
    assert seen["/long"] == Failed(
        outcome=Outcome.FAILED, reason="302 Found that asks for a wait of 3600 s", status_code=302, retry_after=3600.0
    )


async def test_F50_nothing_of_one_origin_is_sent_to_another() -> None:
    """Neither cookies nor credentials exist here, so that none can cross (GHSA-cw9j-q3vf-hrrv and others)."""
    async with (
        serving({"/b": html("b")}) as other,
        serving({"/a": answer(302, location=other.url("/b"), set_cookie="s=1", www_authenticate="Basic")}) as wire,
        fetching(refusal=anywhere) as fetcher,
    ):
        validators = Validators(etag='"secret"', url=wire.url("/a"))
        for _ in range(2):
            assert isinstance(await fetcher.fetch(Request(url=wire.url("/a"), validators=validators)), Body)
        secret = {"cookie", "authorization", "proxy-authorization", "referer", "origin", "if-none-match"}
        assert all(not secret & asked.headers.keys() for asked in other.asked)
        assert [asked.headers.get("cookie") for asked in wire.asked] == [None, None]


async def test_F58_the_body_of_a_redirect_is_not_read() -> None:
    endless = answer(302, location="/b", content_length="99999999999", content_encoding="gzip")
    async with serving({"/a": endless, "/b": html("b")}) as wire, fetching(idle_seconds=5.0) as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url("/a")))
    assert isinstance(seen, Body)


@pytest.mark.parametrize("status", [301, 302])
async def test_F50_a_redirect_without_target_is_refused(status: int) -> None:
    async with serving({"/": answer(status)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Refused)
    assert seen.reason.endswith("without a target")


async def test_a_crawl_file_is_read_wherever_it_moved() -> None:
    routes = {"/robots.txt": redirect("/r", 301), "/r": redirect("/s", 308), "/s": answer(200, b"x" * 100)}
    async with serving(routes) as wire, fetching() as fetcher:
        whole = await fetcher.read(wire.url("/robots.txt"), limit=100)
        cut = await fetcher.read(wire.url("/robots.txt"), limit=10, cut=True)
        large = await fetcher.read(wire.url("/robots.txt"), limit=10)
    assert isinstance(whole, Body)
    assert isinstance(cut, Body)
    assert (len(whole.data), len(cut.data)) == (100, 10)
    assert isinstance(large, Refused)
