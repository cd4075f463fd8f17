"""When a look is taken again by a browser, in which engine, and what becomes of it; without any browser."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.script_site import SHELL, WalledSite
from tests.fakes.servers import NoFiles

from afresh.crawl.plausibility import PROBE
from afresh.model.fetch import Body, Failed, Fetched, NotModified, Outcome, Refused, Request, Validators
from afresh.sources.registry import Refusal
from afresh.sources.web.browser.launch import MISSING, NoBrowser, RenderedPage, RenderFailure
from afresh.sources.web.browser.rendering import PageRenderer, RenderEngines
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.guard import AddressPolicy
from afresh.sources.web.http import HttpFetcher, HttpOptions
from afresh.sources.web.render_check import RENDERED
from afresh.sources.web.robots import RobotsFiles
from afresh.testing import TinySite

ROOT = "https://town.example/"
TEXT = "<title>Town</title><p>The council meets on Mondays, and everybody may come to listen.</p>"
FORBIDDEN = Refused(outcome=Outcome.BLOCKED_4XX, reason="403 Forbidden", status_code=403)


class Answers:
    """An HTTP client that knows its answers."""

    def __init__(self, **answers: Fetched) -> None:
        self.answers = answers

    async def fetch(self, request: Request) -> Fetched:
        return self.answers[request.url.removeprefix(ROOT) or "home"]

    async def close(self) -> None:
        pass


class Screens:
    """Engines that show what they are told to, in the place of Playwright."""

    def __init__(self, **engines: Callable[[str], RenderedPage | RenderFailure] | None) -> None:
        self.engines = engines
        self.rendered_pages: list[tuple[str, str]] = []

    async def render(self, engine: str, url: str, seconds: float) -> RenderedPage | RenderFailure:
        show = self.engines.get(engine)
        if show is None:
            raise NoBrowser(f"{engine} is not installed: playwright install {engine}")
        self.rendered_pages.append((engine, url))
        return show(url)

    async def close(self) -> None:
        pass


def content(url: str) -> RenderedPage:
    return RenderedPage(url=url, html=TEXT, status=200, engine="chromium")


def nothing(url: str) -> RenderedPage:
    return RenderedPage(url=url, html="<p></p>", status=200)


def forbidden(url: str) -> RenderedPage:
    return RenderedPage(url=url, html="<h1>Forbidden</h1>", status=403, engine="chromium")


def gone(url: str) -> RenderedPage:
    return RenderedPage(url=ROOT + "login", html="<h1>Not found</h1>", status=404, engine="chromium")


def shell(url: str = ROOT, **more: object) -> Body:
    return Body(url=url, data=SHELL.encode(), validators=Validators(etag='"1"'), **more)  # type: ignore[arg-type]


def fetcher(
    http: Answers, screens: Screens, *, always: bool = False, known: str | None = None, refusal: Refusal | None = None
) -> tuple[WebFetcher, PageRenderer, RenderEngines]:
    engines = RenderEngines(lambda: screens, ("chromium", "firefox", "webkit"), root=ROOT, known=known)
    clock = lambda: datetime(2026, 1, 5, tzinfo=UTC)  # noqa: E731
    renderer = PageRenderer(engines, always=always, clock=clock, refusal=refusal)
    return web_of(http, renderer), renderer, engines


def web_of(http: Answers, renderer: PageRenderer) -> WebFetcher:
    return WebFetcher(http, RobotsFiles(NoFiles(), respect=False), renderer=renderer)


async def test_C21_the_first_engine_that_shows_the_home_page_is_kept_for_the_run() -> None:
    screens = Screens(chromium=nothing, firefox=content, webkit=content)
    web, _, engines = fetcher(Answers(home=shell(), a=shell(ROOT + "a")), screens)
    await web.fetch(Request(url=ROOT + "a"))
    await web.fetch(Request(url=ROOT))
    assert screens.rendered_pages == [("chromium", ROOT), ("firefox", ROOT), ("firefox", ROOT + "a"), ("firefox", ROOT)]
    assert engines.remembered == "firefox"


async def test_C21_an_engine_that_is_remembered_is_not_chosen_again_unless_it_is_gone() -> None:
    screens = Screens(chromium=content, webkit=content)
    web, *_ = fetcher(Answers(home=shell()), screens, known="webkit")
    await web.fetch(Request(url=ROOT))
    assert screens.rendered_pages == [("webkit", ROOT)]
    screens = Screens(chromium=content)
    web, _, engines = fetcher(Answers(home=shell()), screens, known="webkit")
    await web.fetch(Request(url=ROOT))
    assert screens.rendered_pages == [("chromium", ROOT)]
    assert engines.remembered == "chromium"


async def test_C21_an_engine_that_is_not_installed_is_passed_over_and_named_where_it_is_missed() -> None:
    screens = Screens(chromium=nothing)
    web, renderer, _ = fetcher(Answers(home=shell()), screens)
    await web.fetch(Request(url=ROOT))
    assert any("playwright install firefox" in note for note in renderer.notes)
    web, renderer, _ = fetcher(Answers(home=shell(), **{f"{PROBE}0": shell()}), Screens(firefox=content))
    seen = await web.fetch(Request(url=ROOT))
    assert isinstance(seen, Body)
    assert renderer.notes == ("1 page was rendered in firefox",)
    await web.fetch(Request(url=f"{ROOT}{PROBE}0"))
    assert renderer.notes == ("1 page was rendered in firefox",), "a probe is no page"


async def test_C21_without_a_browser_auto_reads_the_page_as_it_is_and_always_fails() -> None:
    def lacking() -> Screens:
        raise ImportError

    for always in (False, True):
        engines = RenderEngines(lacking, ("chromium",), root=ROOT)
        clock = lambda: datetime(2026, 1, 5, tzinfo=UTC)  # noqa: E731
        renderer = PageRenderer(engines, always=always, clock=clock)
        web = web_of(Answers(home=shell()), renderer)
        seen = [await web.fetch(Request(url=ROOT)) for _ in range(2)]
        if always:
            assert all(isinstance(each, Failed) and each.hopeless and MISSING in each.reason for each in seen)
        else:
            assert seen == [replace(shell(), validators=Validators())] * 2, "no 304 may hide it later"
            assert len(renderer.notes) == 1
            assert "2 pages were read without a browser" in renderer.notes[0]
            assert "pip install 'afresh[browser]'" in renderer.notes[0]


async def test_C21_what_a_browser_showed_is_not_replaced_by_a_shell_when_no_browser_is_left() -> None:
    web, *_ = fetcher(Answers(home=shell()), Screens())
    seen = await web.fetch(Request(url=ROOT, media_type=RENDERED))
    assert isinstance(seen, Failed)
    assert seen.hopeless
    assert "playwright install chromium" in seen.reason


async def test_C21_a_shell_keeps_no_validators_as_its_data_may_change_behind_it() -> None:
    web, *_ = fetcher(Answers(home=shell()), Screens(chromium=content))
    seen = await web.fetch(Request(url=ROOT))
    assert isinstance(seen, Body)
    assert seen.data == TEXT.encode()
    assert not seen.validators
    assert seen.rendered == "rendered in chromium: it asks for JavaScript"


async def test_C21_validators_are_kept_where_scripts_change_nothing() -> None:
    body = Body(url=ROOT, data=TEXT.encode(), validators=Validators(etag='"1"'))
    web, *_ = fetcher(Answers(home=body), Screens(chromium=content), always=True)
    seen = await web.fetch(Request(url=ROOT))
    assert isinstance(seen, Body)
    assert seen.validators == Validators(etag='"1"')


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        NotModified(),
        Body(url=ROOT, data=b"# Text", media_type="text/markdown"),
        Refused(outcome=Outcome.BLOCKED_4XX, reason="401 Unauthorized", status_code=401),
        Failed(outcome=Outcome.BLOCKED_5XX, reason="503", status_code=503, retry_after=9.0),
        Failed(outcome=Outcome.TIMEOUT, reason="late"),
    ],
)
async def test_C21_what_no_browser_can_better_is_left_alone(answer: Fetched, always: bool) -> None:
    screens = Screens(chromium=content)
    web, *_ = fetcher(Answers(home=answer), screens, always=always)
    assert await web.fetch(Request(url=ROOT)) == answer
    assert screens.rendered_pages == []


async def test_C21_a_site_that_refuses_browsers_too_is_asked_three_times_and_no_more() -> None:
    screens = Screens(chromium=forbidden)
    web, *_ = fetcher(Answers(home=FORBIDDEN), screens)
    seen = [await web.fetch(Request(url=ROOT)) for _ in range(6)]
    assert all(isinstance(each, Refused) and each.status_code == 403 for each in seen)
    assert len(screens.rendered_pages) == 3
    assert isinstance(seen[0], Refused)
    assert seen[0].reason == "403 Forbidden, and in chromium 403"


@pytest.mark.parametrize("open_page", [NotModified(), Body(url=ROOT, data=TEXT.encode())])
async def test_C21_a_page_that_is_refused_where_others_are_read_starts_no_browser(open_page: Fetched) -> None:
    screens = Screens(chromium=content)
    checked = Refused(outcome=Outcome.BLOCKED_4XX, reason="403", status_code=403, challenge=True)
    web, *_ = fetcher(Answers(home=open_page, staff=FORBIDDEN, walled=checked), screens)
    await web.fetch(Request(url=ROOT))
    assert await web.fetch(Request(url=ROOT + "staff")) == FORBIDDEN
    assert screens.rendered_pages == []
    await web.fetch(Request(url=ROOT + "walled"))
    assert ("chromium", ROOT + "walled") in screens.rendered_pages, "a check for browsers is no matter of one page"


async def test_C21_a_script_that_leads_out_of_the_source_is_not_followed() -> None:
    async def refusal(url: str, asked: str) -> Refused | None:
        return None if url.startswith(ROOT) else Refused(outcome=Outcome.FAILED, reason="other host")

    away = Screens(chromium=lambda url: RenderedPage(url="https://elsewhere.example/x", html=TEXT, status=200))
    web, *_ = fetcher(Answers(home=shell()), away, refusal=refusal)
    seen = await web.fetch(Request(url=ROOT))
    assert isinstance(seen, Refused)
    assert seen.reason == "the page's script leads to https://elsewhere.example/x: other host"
    inside = Screens(chromium=lambda url: RenderedPage(url=ROOT + "start#top", html=TEXT, status=200))
    web, *_ = fetcher(Answers(home=shell()), inside, refusal=refusal)
    seen = await web.fetch(Request(url=ROOT))
    assert isinstance(seen, Body)
    assert seen.url == ROOT + "start"


async def test_P15_a_script_that_leads_where_we_may_not_go_is_refused_by_the_name_of_the_host() -> None:
    reason = "the page's script leads to 10.0.0.1, which is blocked (see network.allow)"
    away = Screens(chromium=lambda url: RenderFailure(reason=reason, refused=True, hopeless=True))
    web, *_ = fetcher(Answers(home=shell()), away)
    assert await web.fetch(Request(url=ROOT)) == Refused(outcome=Outcome.FAILED, reason=reason)


async def test_P12_a_page_that_no_browser_shows_in_time_is_a_failure_of_that_page() -> None:
    late = Screens(chromium=lambda url: RenderFailure(reason="not rendered within 30 s", late=True, hopeless=True))
    web, *_ = fetcher(Answers(home=shell()), late)
    seen = await web.fetch(Request(url=ROOT))
    assert seen == Failed(outcome=Outcome.TIMEOUT, reason="not rendered within 30 s", hopeless=True)


@pytest.mark.parametrize("status", [401, 429, 503])
async def test_C21_a_browser_check_is_distinguished_from_a_login_and_an_overload(status: int) -> None:
    options = HttpOptions(policy=AddressPolicy(["127.0.0.1/32"]), finds_challenges=True)
    http = HttpFetcher(options)
    with WalledSite() as wall, TinySite() as busy:
        wall.status = status
        busy.fail("/", status)
        seen = [await http.fetch(Request(url=site.url)) for site in (wall, busy)]
    await http.close()
    assert [isinstance(each, Refused | Failed) and each.challenge for each in seen] == [True, False]


async def test_C21_a_page_that_http_returns_is_never_gone_because_of_a_browser() -> None:
    web, *_ = fetcher(Answers(home=shell()), Screens(chromium=gone))
    seen = await web.fetch(Request(url=ROOT, media_type=RENDERED))
    assert isinstance(seen, Refused)
    assert seen.reason == f"chromium ended at {ROOT}login with 404"


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("shows", ["", "Loading …", "<h1>Something went wrong</h1><p>Please try again.</p>"])
async def test_C21_F42_a_shell_that_shows_nothing_in_a_browser_is_a_failed_look_however_often(
    shows: str, always: bool
) -> None:
    down = Screens(chromium=lambda url: RenderedPage(url=url, html=shows, status=200, engine="chromium"))
    web, *_ = fetcher(Answers(home=shell()), down, always=always)
    for media_type in (None, RENDERED, RENDERED):
        seen = await web.fetch(Request(url=ROOT, media_type=media_type))
        assert isinstance(seen, Failed)
        assert seen.hopeless
        assert seen.reason.startswith("in chromium the page shows no content")


async def test_C21_a_shell_that_shows_little_is_believed() -> None:
    short = Screens(chromium=lambda url: RenderedPage(url=url, html="<h1>Hall closed</h1>", status=200))
    web, *_ = fetcher(Answers(home=shell()), short)
    assert isinstance(await web.fetch(Request(url=ROOT)), Body)


async def test_C21_words_of_its_own_make_a_page_even_if_no_script_adds_any() -> None:
    """Such as the page of a newsletter: a heading and a form that another site fills."""
    plain = '<title>News</title><h1>Friends newsletter</h1><script src="/form.js"></script>'
    same = Screens(chromium=lambda url: RenderedPage(url=url, html="<h1>Friends newsletter</h1>", status=200))
    web, *_ = fetcher(Answers(home=Body(url=ROOT, data=plain.encode())), same)
    assert isinstance(await web.fetch(Request(url=ROOT)), Body)


async def test_S8_a_run_whose_browser_has_no_sandbox_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    screens = Screens(chromium=content)
    engines = RenderEngines(lambda: screens, ("chromium",), root=ROOT, unsandboxed="without its sandbox")
    for _ in range(3):
        await engines.show(ROOT, 5)
    assert engines.notes == ["without its sandbox"]
    assert caplog.text.count("without its sandbox") == 1
