"""Looks at pages as the hints of their site advise, and what is asked of the server for it."""

import pytest
from tests.fakes.servers import NoFiles, answer, fetching, html, serving

from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Outcome, Refused, Request, Validators
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.hints import SiteHints
from afresh.sources.web.robots import RobotsFiles, RobotsState
from afresh.testing import ScriptedFetcher

ROOT, PAGE, FILE = "https://x.org/", "https://x.org/a", "https://x.org/a.md"
TEXT = Body(url=FILE, data=b"# A", media_type="text/plain", validators=Validators(etag='"f"'))
HTML = Body(url=PAGE, data=b"<h1>A</h1>", validators=Validators(etag='"h"'))
FAILED = Failed(outcome=Outcome.TIMEOUT, reason="slow")


class Allowing(RobotsFiles):
    """Files that forbid nothing."""

    async def refusal(self, url: str) -> None:
        return None

    async def crawl_delay(self, url: str) -> float:
        return 0.5

    def state(self, origin: str) -> RobotsState:
        return "ok"


def hinted(*, markdown: bool = True, **answers: Fetched) -> tuple[WebFetcher, ScriptedFetcher, SiteHints]:
    hints = SiteHints(ROOT, form="", alternates={PAGE: FILE})
    web = ScriptedFetcher({{"root": ROOT, "page": PAGE, "file": FILE}[name]: [seen] for name, seen in answers.items()})
    return WebFetcher(web, Allowing(NoFiles()), hints=hints, markdown=markdown), web, hints


async def test_a_new_page_is_read_from_its_markdown_file() -> None:
    web, asked, _ = hinted(page=HTML, file=TEXT)
    seen = await web.fetch(Request(url=PAGE))
    assert isinstance(seen, Body)
    assert (seen.data, seen.media_type, seen.validators) == (
        b"# A", "text/markdown", Validators(etag='"f"', url=FILE),
    )  # fmt: skip
    assert [request.url for request in asked.requests] == [FILE]


async def test_A3_the_file_is_asked_with_its_own_validators() -> None:
    web, asked, hints = hinted(file=NotModified())
    hints.alternates.clear()  # as in a run that lists nothing
    held = Validators(etag='"f"', url=FILE)
    request = Request(url=PAGE, validators=held, media_type="text/markdown", at=FILE)
    assert isinstance(await web.fetch(request), NotModified)
    assert [(each.url, each.validators) for each in asked.requests] == [(FILE, held)]


@pytest.mark.parametrize(
    "seen",
    [
        Gone(),
        Refused(outcome=Outcome.BLOCKED_ROBOTS, reason="robots.txt line 1"),
        HTML,
        Body(url=FILE, data=b"\n<!DOCTYPE html><p>not found", media_type="text/plain"),
        Body(url=FILE, data=b"%PDF", media_type="application/pdf"),
    ],
)
async def test_a_file_that_is_no_markdown_gives_way_to_the_page(seen: Fetched) -> None:
    web, asked, _ = hinted(page=HTML, file=seen)
    request = Request(url=PAGE, validators=Validators(etag='"f"', url=FILE), media_type="text/markdown", at=FILE)
    assert await web.fetch(request) == HTML
    assert asked.requests[-1].validators is None, "those were of the file"


async def test_a_file_that_fails_fails_its_page() -> None:
    web, asked, _ = hinted(page=HTML, file=FAILED)
    assert await web.fetch(Request(url=PAGE)) == FAILED
    assert len(asked.requests) == 1


async def test_a_page_on_record_as_html_stays_html() -> None:
    web, asked, hints = hinted(page=HTML, file=TEXT)
    hints.modified[PAGE] = None
    request = Request(url=PAGE, validators=HTML.validators, media_type="text/html")
    await web.fetch(request)
    assert asked.requests == [request]
    elsewhere = Request(url=PAGE, media_type="text/html", at="https://x.org/elsewhere.md")
    await web.fetch(elsewhere)
    assert asked.requests[-1] == elsewhere, "a temporary redirect is no alternate"


async def test_never_means_never() -> None:
    web, asked, hints = hinted(markdown=False, page=HTML, file=TEXT)
    hints.modified[PAGE] = None
    for request in (Request(url=PAGE), Request(url=PAGE, media_type="text/markdown", at=FILE)):
        await web.fetch(request)
        assert asked.requests[-1] == request


async def test_markdown_is_preferred_for_listed_pages_and_those_that_came_so() -> None:
    web, asked, hints = hinted(page=HTML)
    hints.alternates.clear()
    await web.fetch(Request(url=PAGE))
    hints.modified[PAGE] = None
    await web.fetch(Request(url=PAGE))
    await web.fetch(Request(url=PAGE, media_type="text/markdown"))
    hints.modified[ROOT] = None
    await web.fetch(Request(url=ROOT))
    assert [each.markdown for each in asked.requests] == [False, True, True, False]


async def test_the_rest_is_as_the_web_says() -> None:
    web, asked, hints = hinted(root=Body(url=ROOT, data=b"<link rel=alternate type=application/rss+xml href=f>"))
    await web.fetch(Request(url=ROOT))
    assert hints.feeds == ("https://x.org/f",)
    assert (await web.refusal(PAGE), await web.crawl_delay(PAGE), web.state(ROOT)) == (None, 0.5, "ok")
    await web.close()
    assert asked.closed


@pytest.mark.parametrize(("markdown", "first"), [(True, "text/markdown"), (False, "text/html")])
async def test_what_is_preferred_is_in_every_request_of_a_fetch(markdown: bool, first: str) -> None:
    async with serving({"/": answer(302, location="/end"), "/end": html()}) as wire, fetching() as fetcher:
        await fetcher.fetch(Request(url=wire.url("/"), validators=Validators(etag='"x"'), markdown=markdown))
    assert [asked.headers["accept"].split(",")[0] for asked in wire.asked] == [first] * 2
    assert "*/*" in wire.asked[0].headers["accept"]
    assert wire.asked[0].headers["if-none-match"] == '"x"'


async def test_a_file_that_serves_the_crawl_can_be_asked_for_conditionally() -> None:
    async with serving({"/llms.txt": answer(304)}) as wire, fetching() as fetcher:
        known = Validators(etag='"x"')
        seen = await fetcher.read(wire.url("/llms.txt"), limit=100, validators=known)
        assert isinstance(seen, NotModified)
        moved = Validators(etag='"x"', url=wire.url("/elsewhere"))
        await fetcher.read(wire.url("/llms.txt"), limit=100, validators=moved)
    assert [asked.if_none_match for asked in wire.asked] == ['"x"', None]
