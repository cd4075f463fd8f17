"""What a site says of itself beside its pages, shared by who lists it and who looks at its pages."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from afresh.model.fetch import Body, Failed, Fetched, NotModified, Refused, Request, Validators
from afresh.sources.web.feeds import feeds_of
from afresh.sources.web.markdown_alternates import is_twin, page_of, twins_of
from afresh.urls.canonical import origin_of


@dataclass(slots=True)
class Hints:
    """The hints of one site during one run."""

    root: str
    form: str | None = (
        None  # how its Markdown files are named (sources/web/markdown_alternates.py); None: nobody knows
    )
    twins: dict[str, str] = field(default_factory=dict)  # page to its Markdown file
    modified: dict[str, datetime | None] = field(
        default_factory=dict
    )  # pages it lists, and since when they are so
    feeds: tuple[str, ...] | None = None  # that the root names; None while it was not read

    def page(self, url: str) -> str:
        """The address by which a page is known: that of people, where a link leads to its Markdown file."""
        if self.form is None or not is_twin(url) or url == self.root:
            return url
        if origin_of(url) != origin_of(self.root):
            return url
        page = page_of(url, self.form)
        if page != url:
            self.twins.setdefault(page, url)
        return page


_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_AS_FILE = _MARKDOWN | {"text/plain", "application/octet-stream", ""}  # how servers send an .md file
_SNIFFED = 256


class Web(Protocol):
    """Looks at addresses, obeying robots.txt."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def refusal(self, url: str) -> Refused | Failed | None: ...

    async def crawl_delay(self, url: str) -> float | None: ...

    def state(self, origin: str) -> str: ...

    async def close(self) -> None: ...


class HintedWeb:
    """The web as the hints of one site show it."""

    def __init__(self, web: Web, hints: Hints, *, markdown: bool = True) -> None:
        self._web = web
        self._hints = hints
        self._markdown = markdown

    async def fetch(self, request: Request) -> Fetched:
        """One look at a page, at its Markdown where it has been read as such or may be."""
        if request.url == self._hints.root:
            return self._noticed(await self._web.fetch(request))
        twin = self._twin(request)
        if twin is not None:
            seen = await self._web.fetch(replace(request, url=twin, validators=_of(request, twin)))
            if (used := _as_page(seen, twin)) is not None:
                return used
            request = replace(request, validators=None)  # they were those of the file
        if self._prefers_markdown(request):
            request = replace(request, markdown=True)
        return await self._web.fetch(request)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why robots.txt keeps us from a page, or None if it does not."""
        return await self._web.refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that a site asks for; None while nobody can know."""
        return await self._web.crawl_delay(url)

    def state(self, origin: str) -> str:
        """What is known of the robots.txt of an origin."""
        return self._web.state(origin)

    async def close(self) -> None:
        """Close all connections."""
        await self._web.close()

    def _noticed(self, seen: Fetched) -> Fetched:
        if isinstance(seen, Body):
            self._hints.feeds = feeds_of(seen)
        return seen

    def _twin(self, request: Request) -> str | None:
        """The file to read in the place of a page: where its content is from, or for a page without any."""
        if not self._markdown:
            return None
        if request.media_type is None:
            return self._hints.twins.get(request.url)
        return request.at if request.at and request.at in twins_of(request.url) else None

    def _prefers_markdown(self, request: Request) -> bool:
        if not self._markdown:
            return False
        if request.media_type is None:
            return request.url in self._hints.modified
        return request.media_type in _MARKDOWN


def _of(request: Request, twin: str) -> Validators | None:
    return request.validators if request.validators and request.validators.url == twin else None


def _as_page(seen: Fetched, twin: str) -> Fetched | None:
    """What a look at the file of a page says of the page; None if the page itself has to be asked."""
    if isinstance(seen, NotModified | Failed):
        return seen
    if not isinstance(seen, Body) or seen.media_type not in _AS_FILE or _is_html(seen.data):
        return None
    validators = replace(seen.validators, url=seen.validators.url or twin)
    return replace(seen, media_type="text/markdown", validators=validators)


def _is_html(data: bytes) -> bool:
    return data[:_SNIFFED].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype", b"<html"))
