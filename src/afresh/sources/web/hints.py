"""Find what a site offers in addition to its pages: feeds, llms.txt and Markdown files.

llms.txt is requested below the root of the source first, then at the origin. `llms-full.txt` contains the
text of all pages in one file. It lists no pages and is read only if it is the root itself (urls/scope.py).
The URL of a Markdown file is derived from that of its page, as llms.txt proposes it:

| file               | page                           |
|--------------------|--------------------------------|
| `a/b.html.md`      | `a/b.html`                     |
| `a/index.html.md`  | `a/`                           |
| `a/index.md`       | `a/`                           |
| `a/b.md`           | `a/b`, `a/b.html` or `a/b/`    |

If a file may belong to several pages, the *form* of the site decides. It is what the page has in place of `.md`
(`.html`, `/` or nothing), and is the same for all files of a site. A page is stored under the URL of its HTML; the
Markdown file only provides the text.
"""

import html
import re
from collections.abc import Container, Iterator
from datetime import datetime
from itertools import islice

from afresh.dataclass import dataclass, field
from afresh.model.fetch import Body
from afresh.urls.canonical import canonical, origin_of
from afresh.urls.scope import home_of

FORMS = ("", ".html", "/")  # the endings that may replace `.md`
BARE = "none"  # the form of a site whose Markdown files are pages of their own
_SUFFIX = ".md"
_INDEX = ("/index.html", "/index")
LLMS_TXT = "llms.txt"
MAX_LLMS_TXT_BYTES = 5 * 1024 * 1024
_LINK = re.compile(r"\]\(\s{0,3}<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)")
_LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]++")
_FENCES = ("```", "~~~")
MAX_FEEDS = 2  # usually one with the entries, and one with the comments
MAX_FEED_BYTES = 5 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_HTML = frozenset({"text/html", "application/xhtml+xml", ""})
_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
_LINK_ELEMENT = re.compile(r"<link\s([^<>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(?<![a-z])([a-z]+)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def is_alternate(url: str) -> bool:
    """Return whether a URL looks like the Markdown file of a page."""
    return url.endswith(_SUFFIX) and not url.endswith(f"/{_SUFFIX}")


def page_of(url: str, form: str) -> str:
    """Return the page URL of a Markdown file by the form of its site (FORMS or BARE); return other URLs unchanged."""
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
    """Return the form (one of FORMS) by which a Markdown file belongs to one of `pages`; None if there is none."""
    return next((form for form in FORMS if page_of(url, form) in pages), None)


def shows_form(url: str) -> bool:
    """Return whether the form of a site can be learned from this Markdown file: its page URL differs between forms."""
    return page_of(url, FORMS[0]) != page_of(url, FORMS[1])


def llms_txt_places(root: str) -> tuple[str, ...]:
    """Return the possible URLs of the llms.txt of a source: below its root first, then at the origin."""
    return tuple(dict.fromkeys((f"{home_of(root)}{LLMS_TXT}", f"{origin_of(root)}/{LLMS_TXT}")))


def is_llms(url: str) -> bool:
    return url.endswith(f"/{LLMS_TXT}")


def links_in(text: str, max_lines: int) -> Iterator[str]:
    """Yield the link targets of a Markdown text as written, in order, without those in code blocks."""
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
    """Yield at most `most` lines that are not empty, one by one to save memory."""
    return (found[0] for found in islice(_LINE.finditer(text), most))


def feeds_of(body: Body) -> tuple[str, ...]:
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
    root: str
    form: str | None = None  # how the Markdown files are named (see above); None: unknown
    alternates: dict[str, str] = field(default_factory=dict)  # page URL → URL of its Markdown file
    modified: dict[str, datetime | None] = field(default_factory=dict)  # listed page URL → date of its last change
    feeds: tuple[str, ...] | None = None  # the feeds that the root page names; None before it is read

    def page(self, url: str) -> str:
        """Return the page URL of a Markdown file and store the file as its alternate; return other URLs unchanged."""
        if self.form is None or not is_alternate(url) or url == self.root:
            return url
        if origin_of(url) != origin_of(self.root):
            return url
        page = page_of(url, self.form)
        if page != url:
            self.alternates.setdefault(page, url)
        return page
