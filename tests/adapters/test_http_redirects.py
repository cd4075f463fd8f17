"""Redirects are followed by hand (F49-F52, G12)."""

import pytest
from tests.adapters.servers import Names, answer, fetching, html, redirect, serving

from afresh.core.looks import Body, Moved, Outcome, Refused, Request


@pytest.mark.parametrize("status", [301, 308])
async def test_G12_a_permanent_redirect_moves_the_page(status: int) -> None:
    async with serving({"/a": redirect("b/../c#x", status)}) as wire, fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url("/a")))
    assert seen == Moved(to=wire.url("/c"), status_code=status)
    assert wire.paths() == ["/a"]


async def test_G12_a_permanent_move_to_another_site_is_told_not_followed() -> None:
    async with serving({"/": redirect("https://other.example/x", 301)}) as wire, fetching() as fetcher:
        assert await fetcher.fetch(Request(url=wire.url())) == Moved(
            to="https://other.example/x", status_code=301
        )


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
    [
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "data:text/html,x",
        "javascript:alert(1)",
        "ftp://x/",
        "http://u:p@x/",
    ],
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
    admitted: list[str] = []

    def admits(url: str) -> bool:
        admitted.append(url)
        return "private" not in url

    async with serving({"/b": html("b")}) as wire, fetching(resolver=names, admits=admits) as fetcher:
        wire.routes["/a"] = redirect(f"http://cdn.example.net:{wire.port}/b")
        wire.routes["/c"] = redirect("/private/x")
        good = await fetcher.fetch(Request(url=f"http://docs.example.org:{wire.port}/a"))
        bad = await fetcher.fetch(Request(url=f"http://docs.example.org:{wire.port}/c"))
    assert isinstance(good, Body)
    assert isinstance(bad, Refused)
    assert bad.reason == (
        f"redirected to http://docs.example.org:{wire.port}/private/x, which is outside this source "
        "or closed by robots.txt; crawl that address instead or widen the scope"
    )
    assert len(admitted) == 2


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
