"""What a site offers in addition to its pages: feeds, llms.txt and Markdown files.

llms.txt is searched for below the root of the source first, then at the origin. `llms-full.txt` holds the
text of all pages in one file; it lists nothing and is read only if it is the root itself (urls/scope.py).
Markdown files follow the URL of the page, as llms.txt proposes it:

| file               | page                           |
|--------------------|--------------------------------|
| `a/b.html.md`      | `a/b.html`                     |
| `a/index.html.md`  | `a/`                           |
| `a/index.md`       | `a/`                           |
| `a/b.md`           | `a/b`, `a/b.html` or `a/b/`    |

If there are several, a site uses the same for all its pages: its *form*, the ending that replaces `.md`.
A page is stored under the URL of its HTML; the Markdown file only provides the text.
"""

import html
import re
from collections.abc import Container, Iterator
from datetime import datetime
from itertools import islice

from afresh.dataclass import dataclass, field, replace
from afresh.model.fetch import Body, Failed, Fetched, NotModified, Request
from afresh.sources.registry import ClosableWeb, WrappedFetcher
from afresh.urls.canonical import canonical, origin_of
from afresh.urls.scope import home_of

FORMS = ("", ".html", "/")  # what a site may put in the place of .md
BARE = "none"  # the form of a site whose Markdown files are pages themselves
_SUFFIX = ".md"
_INDEX = ("/index.html", "/index")


def is_alternate(url: str) -> bool:
    """Return whether a URL looks like the Markdown file of a page."""
    return url.endswith(_SUFFIX) and not url.endswith(f"/{_SUFFIX}")


def page_of(url: str, form: str) -> str:
    """Return the page of a Markdown file on a site of that form; any other URL is returned unchanged."""
    if form == BARE or not is_alternate(url):
        return url
    stem = url.removesuffix(_SUFFIX)
    for index in _INDEX:
        if stem.endswith(index):
            return stem.removesuffix(index) + "/"
    return stem if stem.endswith((".html", ".htm")) else stem + form


def alternates_of(url: str) -> tuple[str, ...]:
    """Return the possible URLs of the Markdown file of a page."""
    if url.endswith("/"):
        return f"{url}index.md", f"{url}index.html.md", f"{url[:-1]}.md"
    return f"{url}.md", f"{url.removesuffix('.html')}.md"


def form_among(url: str, pages: Container[str]) -> str | None:
    """Return the form that matches a Markdown file to one of the known pages; None if none does."""
    return next((form for form in FORMS if page_of(url, form) in pages), None)


def shows_form(url: str) -> bool:
    """Return whether each form gives another page for a Markdown file."""
    return page_of(url, FORMS[0]) != page_of(url, FORMS[1])


LLMS_TXT = "llms.txt"
MAX_LLMS_TXT_BYTES = 5 * 1024 * 1024

_LINK = re.compile(r"\]\(\s{0,3}<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)")
_LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]++")
_FENCES = ("```", "~~~")


def llms_txt_places(root: str) -> tuple[str, ...]:
    """Return the possible URLs of the llms.txt of a source, nearest first."""
    return tuple(dict.fromkeys((f"{home_of(root)}{LLMS_TXT}", f"{origin_of(root)}/{LLMS_TXT}")))


def is_llms(url: str) -> bool:
    return url.endswith(f"/{LLMS_TXT}")


def links_in(text: str, max_lines: int) -> Iterator[str]:
    """Yield the link targets of a Markdown list as written, in order, without those in code blocks."""
    fence = ""
    for line in lines_in(text, max_lines):
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
        elif "](" in line:
            for link in _LINK.finditer(line):
                yield link[1]


def lines_in(text: str, most: int) -> Iterator[str]:
    """Yield the first lines that are not empty; a list of all would take many times their memory."""
    return (found[0] for found in islice(_LINE.finditer(text), most))


MAX_FEEDS = 2  # the entries, and perhaps the comments on them
MAX_FEED_BYTES = 5 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_HTML = frozenset({"text/html", "application/xhtml+xml", ""})
_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
_LINK_ELEMENT = re.compile(r"<link\s([^<>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(?<![a-z])([a-z]+)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def feeds_of(body: Body) -> tuple[str, ...]:
    """Return the feeds on the same site that the head of a page names."""
    if body.media_type not in _HTML:
        return ()
    head = body.data[:_HEAD_BYTES].decode("utf-8", "replace")
    feeds: dict[str, None] = {}
    for link in _LINK_ELEMENT.finditer(head):
        attributes = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(link[1])}
        rel, media = attributes.get("rel", "").lower().split(), attributes.get("type", "").partition(";")[0]
        if "alternate" not in rel or media.strip().lower() not in _TYPES or not attributes.get("href"):
            continue
        url = canonical(attributes["href"], body.url)
        if url is not None:
            feeds.setdefault(url)
    near = [url for url in feeds if origin_of(url) == origin_of(body.url)]
    return tuple(near[:MAX_FEEDS])


@dataclass(slots=True)
class SiteHints:
    """The hints of one site during one run."""

    root: str
    form: str | None = None  # how its Markdown files are named (see above); None: unknown
    alternates: dict[str, str] = field(default_factory=dict)  # page to its Markdown file
    modified: dict[str, datetime | None] = field(default_factory=dict)  # listed pages with their dates
    feeds: tuple[str, ...] | None = None  # that the root names; None until it was read

    def page(self, url: str) -> str:
        """Return the page of a Markdown file and remember the file; return any other URL unchanged."""
        if self.form is None or not is_alternate(url) or url == self.root:
            return url
        if origin_of(url) != origin_of(self.root):
            return url
        page = page_of(url, self.form)
        if page != url:
            self.alternates.setdefault(page, url)
        return page


_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_AS_FILE = _MARKDOWN | {"text/plain", "application/octet-stream", ""}  # how servers send an .md file
_HTML_START = re.compile(rb"[\xef\xbb\xbf \t\r\n]{0,247}(?:<!doctype|<html)", re.IGNORECASE)


class HintedFetcher(WrappedFetcher):
    """Fetches pages, as Markdown where the hints of the site offer it."""

    def __init__(self, web: ClosableWeb, hints: SiteHints, *, markdown: bool = True) -> None:
        super().__init__(web)
        self._hints = hints
        self._markdown = markdown

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a page, as its Markdown file if it was read from there before or the site lists one."""
        if request.url == self._hints.root:
            seen = await self._web.fetch(request)
            if isinstance(seen, Body):
                self._hints.feeds = feeds_of(seen)
            return seen
        if not self._markdown:
            return await self._web.fetch(request)
        if request.media_type is None:
            alternate = self._hints.alternates.get(request.url)
            prefers_markdown = request.url in self._hints.modified
        else:
            alternate = request.at if request.at and request.at in alternates_of(request.url) else None
            prefers_markdown = request.media_type in _MARKDOWN
        if alternate is not None:
            asked = request.validators if request.validators and request.validators.url == alternate else None
            seen = await self._web.fetch(replace(request, url=alternate, validators=asked))
            if isinstance(seen, NotModified | Failed):
                return seen
            if isinstance(seen, Body) and seen.media_type in _AS_FILE and not _HTML_START.match(seen.data):
                validators = replace(seen.validators, url=seen.validators.url or alternate)
                return replace(seen, media_type="text/markdown", validators=validators)
            request = replace(request, validators=None)  # they belonged to the file
        return await self._web.fetch(replace(request, markdown=True) if prefers_markdown else request)
