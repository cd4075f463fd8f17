"""Requests, responses, documents and chunks, and the recipes that make chunks of responses."""

import hashlib
from enum import StrEnum
from typing import NamedTuple

from afresh.dataclass import dataclass
from afresh.text.plain import without_targets

# Versions of the code that turns a body into indexed content; increase one whenever its output changes. A page is read
# again if its reading recipe changed. If only the chunker changed, chunks are made again from the stored text; if only
# the model changed, vectors are made again (`afresh reindex`).
READING = "html-8+markdown-2+text-2+pdf-1+office-1+epub-1+notebook-1+data-1+rst-2+asciidoc-2+code-1"
CHUNKER = "markdown-4"  # includes the analysis of words


class Outcome(StrEnum):
    """The result of an attempt to check a page."""

    SUCCESS = "success"
    NOT_MODIFIED = "not_modified"
    GONE = "gone"
    MOVED = "moved"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BLOCKED_ROBOTS = "blocked_robots"
    BLOCKED_4XX = "blocked_4xx"
    BLOCKED_5XX = "blocked_5xx"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


WORST_FIRST = (  # the order in which the attempts of a run are listed
    *(Outcome.TIMEOUT, Outcome.FAILED, Outcome.BLOCKED_5XX, Outcome.BLOCKED_4XX, Outcome.BLOCKED_ROBOTS),
    *(Outcome.ABANDONED, Outcome.CANCELLED, Outcome.GONE, Outcome.MOVED, Outcome.SUCCESS, Outcome.NOT_MODIFIED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """Values that make a request conditional: ETag and Last-Modified; for files, size and time."""

    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    url: str | None = None  # the URL that issued them, if a temporary redirect led elsewhere

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified or self.mtime_ns is not None)

    def renewed(self, later: "Validators") -> "Validators":
        """Return these validators, updated with those of a "not modified" response."""
        if not later or later == self:
            return self
        return Validators(
            etag=later.etag or self.etag,
            last_modified=later.last_modified or self.last_modified,
            size=self.size if later.size is None else later.size,
            mtime_ns=self.mtime_ns if later.mtime_ns is None else later.mtime_ns,
            url=later.url or self.url,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    url: str
    validators: Validators | None = None
    media_type: str | None = None  # of the stored content; None if there is none
    at: str | None = None  # where that content was read, if not at `url` itself
    markdown: bool = False  # prefer Markdown to HTML
    root: str = ""  # the listed URL that redirected to `url`, if any


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A response with content; transfer and content codings are removed from `data`."""

    url: str  # where the content came from, after temporary redirects
    data: bytes
    media_type: str = "text/html"  # lower case, without parameters; "" if the server named none
    charset: str | None = None  # from the Content-Type header
    validators: Validators = Validators()
    status_code: int | None = 200  # None if no server was involved
    language: str | None = None  # Content-Language
    index: bool = True  # False if X-Robots-Tag says noindex
    follow: bool = True  # False if X-Robots-Tag says nofollow
    proven: bool = False  # certainly the content of the source: a file, or a blob that matches its id
    rendered: str | None = None  # by which browser, and why; None: not rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The content is unchanged; `validators` holds the values that the response renewed."""

    validators: Validators = Validators()
    status_code: int | None = 304
    skip_reason: str | None = None  # why no request was made; then it does not count as a check


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The URL has no content any more (404, 410, a deleted file)."""

    status_code: int | None = 404
    reason: str | None = None  # unless it is a 404 or 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The URL moved permanently; `to` is canonical."""

    to: str
    status_code: int | None = 301
    retry_after: float | None = None  # seconds that the server asked to wait before the target is requested


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The page is not read because of robots.txt, a status such as 403, a blocked address or an unreadable format."""

    outcome: Outcome = Outcome.FAILED  # or BLOCKED_ROBOTS, BLOCKED_4XX
    reason: str  # "robots.txt line 12", "403 Forbidden", "address not allowed"
    status_code: int | None = None
    validators: Validators | None = None  # of unreadable content: skip it while they match
    challenge: bool = False  # it came with a challenge page for browsers


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A failure after which the page is tried again, now or in a later run: timeout, 5xx, 429, a broken body."""

    outcome: Outcome = Outcome.FAILED  # or TIMEOUT, BLOCKED_4XX (429), BLOCKED_5XX
    reason: str
    status_code: int | None = None
    retry_after: float | None = None  # seconds that the server asked to wait, already capped
    crash_hash: str | None = None  # the hash of a body on which the parser crashed
    hopeless: bool = False  # a retry in the same run would fail, too
    challenge: bool = False  # it came with a challenge page for browsers


Fetched = Body | NotModified | Gone | Moved | Refused | Failed


class Link(NamedTuple):
    """One link of a page: its canonical target and its visible text."""

    url: str
    text: str
    follow: bool = True  # False for rel=nofollow


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a page in the form that is indexed, hashed and shown."""

    title: str
    markdown: str
    links: tuple[Link, ...] = ()
    language: str | None = None
    content_hash: str
    links_hash: str
    sketch: str = ""  # fingerprint for similarity (text/normalize.py)
    index: bool = True  # False for noindex (meta robots, X-Robots-Tag)
    follow: bool = True
    links_left_out: int = 0  # links beyond the number that is stored for one page
    long_links: int = 0  # links that were ignored because their URLs are too long
    foreign_canonical: str | None = None  # rel=canonical names another host: reported, not followed
    login: bool = False  # a page with little text, and nothing but a login form
    asks_password: bool = False  # a page with little text beside a login form
    is_error: bool = False  # a page whose title or first heading is an error message
    leads_on: bool = False  # the page redirects its readers, or shows other pages in frames
    styles_cut: bool = False  # too many styles, so that not all were read: hidden text may be included


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSignals:
    """Observations about a fetched document that help to decide whether to trust it."""

    run: int = 0  # the current run
    likeness: float | None = None  # to the stored content, None if unknown
    length: int | None = None  # of the stored content, in characters
    others_checked: bool = False  # the run has checked all other pages
    lookalikes: int = 0  # other URLs that show the same page
    like_missing: bool = False  # the site answers the same for a URL that cannot exist


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A page that was read and parsed: its document, and values of its `Body`."""

    document: Document
    validators: Validators
    media_type: str
    status_code: int | None = 200
    proven: bool = False
    rendered: str | None = None
    chunks: "tuple[Chunk, ...] | None" = None  # of new text
    signs: ContentSignals = ContentSignals()  # observed after parsing


Seen = ReadDocument | NotModified | Gone | Moved | Refused | Failed


class SearchTerms(NamedTuple):
    """The words under which a chunk is indexed, if they differ from its text (search/stemming.py)."""

    title: str | None = None  # of the page
    heading: str | None = None
    content: str | None = None


def embedded_text(path: tuple[str, ...], content: str) -> str:
    """Return the text of a chunk that is hashed and embedded: headings and content, without link targets."""
    return " > ".join(path) + "\n\n" + without_targets(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A searchable piece of a document; `path` holds the headings above it, outermost first."""

    content: str
    path: tuple[str, ...] = ()
    level: int = 0  # of the innermost heading, 0 before the first
    types: tuple[str, ...] = ("text",)  # of text, code, table, list
    text_hash: str
    heading: str = ""  # the headings above it and in it, one per line
    terms: SearchTerms = SearchTerms()


_OFFICE = "application/vnd.openxmlformats-officedocument"
_BY_ENDING = {
    **dict.fromkeys(("adoc", "asc", "asciidoc"), "text/asciidoc"),
    "css": "text/css",
    "csv": "text/csv",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "epub": "application/epub+zip",
    **dict.fromkeys(("htm", "html"), "text/html"),
    "ipynb": "application/x-ipynb+json",
    "json": "application/json",
    **dict.fromkeys(("markdown", "md"), "text/markdown"),
    "mdx": "text/mdx",
    "pdf": "application/pdf",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    **dict.fromkeys(("rest", "rst"), "text/x-rst"),
    "xhtml": "application/xhtml+xml",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "xml": "application/xml",
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
}


def media_type_of_file(url: str) -> str:
    """Return the media type of a file by its name; `text/plain` if unknown."""
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2].lower()
    return _BY_ENDING.get(name.rpartition(".")[2], "text/plain")


def recipe_of(body: str, model: str | None, *, hidden_links: bool = True, render: str = "auto") -> str:
    """Return a fingerprint of the settings for reading pages; pages read with other settings are fetched again.

    If no text is stored (`body` is "none"), it includes chunker and model, because both need the fetched page.
    """
    parts = (READING, body) if body != "none" else (READING, body, CHUNKER, model or "")
    parts = parts if hidden_links else (*parts, "visible links only")
    parts = parts if render == "auto" else (*parts, f"render {render}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
