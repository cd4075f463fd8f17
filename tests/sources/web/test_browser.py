"""What a browser shows, and what pages cannot make it do; with the Chromium of this machine."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import psutil
import pytest
import pytest_asyncio
from tests.extract.test_hidden_text import INLINE, MARKUP, SECRET, VISIBLE
from tests.fakes.browser_traps import CLOBBERING, COMPONENTS, GREEDY, NAGGING, RESTLESS, SPINNING, TAMPERING, prying
from tests.sources.web.browsing import Canary, browsers

from afresh.extract import extract
from afresh.model.fetch import Body
from afresh.sources.web.browser.browser import Browsers
from afresh.sources.web.browser.launch import RenderedPage, RenderFailure
from afresh.sources.web.render_check import shows_the_same
from afresh.testing import TinySite

PLAIN = (
    "<!doctype html><html lang=en><head><title>Plain</title></head><body><h1>Plain &amp; simple</h1>"
    "<p>What is written here is there without <a href='/a?b=1&amp;c=2'>scripts</a>.</p></body></html>"
)
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@pytest.fixture(scope="module")
def pages() -> Iterator[TinySite]:
    """A site of pages that need a browser."""
    with TinySite() as site:
        yield site


@pytest.fixture(scope="module")
def received() -> Iterator[Canary]:
    """A place that pages may reach."""
    with Canary() as canary:
        yield canary


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(pages: TinySite, received: Canary) -> AsyncIterator[Browsers]:
    """A browser that may see one site and one place more, with little memory; nothing of it is left."""
    before = set(psutil.Process().children(recursive=True))
    allowed = (f"127.0.0.1:{pages.port}", f"127.0.0.1:{received.port}")
    browser = browsers(*allowed, memory_mb=1200, max_page_bytes=4_000_000)
    await show(browser, pages.at("/robots.txt"))
    during = set(psutil.Process().children(recursive=True)) - before
    assert len(during) > 2
    yield browser
    during |= set(psutil.Process().children(recursive=True)) - before
    await browser.close()
    _, alive = psutil.wait_procs(list(during), timeout=5)
    assert alive == []


async def show(browser: Browsers, url: str, seconds: float = 15) -> RenderedPage:
    seen = await browser.render("chromium", url, seconds)
    assert isinstance(seen, RenderedPage), seen
    return seen


async def test_C21_components_are_rendered_with_what_is_inside_them(pages: TinySite, browser: Browsers) -> None:
    pages.put("/components", COMPONENTS)
    seen = await show(browser, pages.at("/components"))
    assert "<h1>Inside a component</h1>" in seen.html
    assert "that is <b>given</b> to readers" in seen.html
    assert 'href="/inside"' in seen.html


async def test_C21_two_looks_agree_and_a_page_without_scripts_is_as_the_server_sent_it(
    pages: TinySite, browser: Browsers
) -> None:
    pages.put("/plain", PLAIN)
    first, second = [await show(browser, pages.at("/plain")) for _ in range(2)]
    assert first.html == second.html
    assert shows_the_same(PLAIN, first.html)
    assert first.headers["etag"]


async def test_S5_what_the_browser_does_not_show_is_marked_and_not_read(pages: TinySite, browser: Browsers) -> None:
    parts = [f'<p style="{style}">way {at}: {SECRET}</p>' for at, style in enumerate(INLINE)]
    parts += [f"<section>markup {at}: {body}</section>" for at, body in enumerate(MARKUP.values())]
    sheet = ".far .x{visibility:hidden} @media (width > 3px){.tiny{font-size:.5px}} .z{color:#fffefd}"
    parts += [f"<div class=far>Far<b class=x>{SECRET}</b></div><p class='tiny'>{SECRET}</p><p class=z>{SECRET}</p>"]
    tampering = "<script>window.getComputedStyle = () => ({}); Element.prototype.setAttribute = () => {}</script>"
    pages.put(
        "/hidden", f"<!doctype html><title>H</title><style>{sheet}</style>{tampering}<main>{''.join(parts)}</main>"
    )
    seen = await show(browser, pages.at("/hidden"))
    text = extract(Body(url=seen.url, data=seen.html.encode(), rendered="chromium")).markdown
    assert [line for line in text.splitlines() if SECRET in line] == []
    assert "Far" in text
    assert "markup 0" in text


async def test_S5_what_a_reader_of_the_browser_sees_or_can_open_is_read(pages: TinySite, browser: Browsers) -> None:
    page_wide = ("until scripts ran", "white on unknown", "white in code")
    rendered = {name: body for name, body in VISIBLE.items() if name not in page_wide and "<style" not in body}
    parts = [
        f"<section>{body.replace(SECRET, f'open {at} end')}</section>" for at, body in enumerate(rendered.values())
    ]
    pages.put("/shown", f"<!doctype html><title>S</title><main>{''.join(parts)}</main>")
    seen = await show(browser, pages.at("/shown"))
    text = extract(Body(url=seen.url, data=seen.html.encode(), rendered="chromium")).markdown
    lost = [name for at, name in enumerate(rendered) if f"open {at} end" not in text]
    assert lost == []


async def test_a_page_that_never_rests_is_read_as_it_is_after_a_while(pages: TinySite, browser: Browsers) -> None:
    pages.put("/restless", RESTLESS)
    seen = await show(browser, pages.at("/restless"))
    assert not seen.is_stable
    assert "never comes to rest" in seen.html


async def test_dialogs_popups_and_downloads_hold_nobody_up(pages: TinySite, browser: Browsers) -> None:
    pages.put("/nagging", NAGGING)
    pages.requests.clear()
    seen = await show(browser, pages.at("/nagging"))
    assert "After all the dialogs" in seen.html
    assert not [path for path in pages.requests.paths() if path.startswith("/popup")]
    again = await show(browser, pages.at("/nagging"))
    assert again.html == seen.html


async def test_P15_no_way_out_of_a_page_leads_to_an_address_that_is_not_allowed(
    pages: TinySite, browser: Browsers
) -> None:
    with Canary() as canary:
        pages.put("/prying", prying("127.0.0.1", canary.port, canary.udp))
        pages.redirect("/away", f"http://127.0.0.1:{canary.port}/away")
        seen = await show(browser, pages.at("/prying"))
        assert canary.visitors == []
    assert any("127.0.0.1 is a loopback address" in reported for reported in seen.barred)
    assert '<pre id="got"></pre>' in seen.html


async def test_P15_the_canary_receives_requests_by_every_way_that_is_open(
    pages: TinySite, browser: Browsers, received: Canary
) -> None:
    """Else the test above could pass because its ways lead nowhere."""
    pages.put("/open", prying("127.0.0.1", received.port, received.udp).replace("/away", "/allowed"))
    pages.redirect("/allowed", f"http://127.0.0.1:{received.port}/away")
    await show(browser, pages.at("/open"))
    asked = {line.split(b" ")[1] for line in received.visitors if line.startswith((b"GET", b"POST"))}
    assert asked >= {b"/fetch", b"/script", b"/style", b"/frame", b"/worker", b"/beacon", b"/socket", b"/events"}
    assert b"/image" not in asked


async def test_a_page_with_too_many_bytes_is_cut_off(pages: TinySite, browser: Browsers) -> None:
    pages.put("/data", "x" * 3_000_000, media_type="text/plain")
    pages.put("/large", "<p>Large</p><script>setInterval(() => fetch('/data?' + Math.random()), 50)</script>")
    lost = await browser.render("chromium", pages.at("/large"), 15)
    assert isinstance(lost, RenderFailure)
    assert "larger than 3 MB" in lost.reason


async def test_a_page_that_takes_all_memory_is_ended_and_others_go_on(pages: TinySite, browser: Browsers) -> None:
    pages.put("/greedy", GREEDY)
    pages.put("/well", "<title>Well</title><p>This page is well, and there is nothing to wait for.</p>")
    lost, seen = await asyncio.gather(
        browser.render("chromium", pages.at("/greedy"), 15), show(browser, pages.at("/well"))
    )
    assert isinstance(lost, RenderFailure), lost
    assert "memory" in lost.reason
    assert "This page is well" in seen.html
    assert "This page is well" in (await show(browser, pages.at("/well"))).html


async def test_P12_a_page_that_spins_costs_its_time_and_no_more(pages: TinySite, browser: Browsers) -> None:
    pages.put("/spinning", SPINNING)
    pages.put("/plain", PLAIN)
    await show(browser, pages.at("/plain"))
    before = set(psutil.Process().children(recursive=True))
    began = time.monotonic()
    lost = await browser.render("chromium", pages.at("/spinning"), 1.5)
    assert isinstance(lost, RenderFailure)
    assert lost.late
    assert time.monotonic() - began < 15
    after = set(psutil.Process().children(recursive=True))
    assert after <= before, "it spins no longer, though no other page is asked for"
    assert len(before - after) > 2


async def test_pages_that_stand_in_the_way_of_being_read_are_read(pages: TinySite, browser: Browsers) -> None:
    pages.put("/tampering", TAMPERING)
    pages.put("/clobbering", CLOBBERING)
    assert "answers for itself" in (await show(browser, pages.at("/tampering"))).html
    seen = await show(browser, pages.at("/clobbering"))
    assert seen.is_stable
    assert "unlucky names" in seen.html
