"""What a look at an address asks, shows and yields: requests, answers, documents and chunks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from afresh.text.link_targets import without_targets


class Outcome(StrEnum):
    """How one attempt to look at a page ended; an attempt without one is still open."""

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


WORST_FIRST = (  # the order in which the attempts of a run are told
    Outcome.TIMEOUT,
    Outcome.FAILED,
    Outcome.BLOCKED_5XX,
    Outcome.BLOCKED_4XX,
    Outcome.BLOCKED_ROBOTS,
    Outcome.ABANDONED,
    Outcome.CANCELLED,
    Outcome.GONE,
    Outcome.MOVED,
    Outcome.SUCCESS,
    Outcome.NOT_MODIFIED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What lets the next look ask "has it changed?" instead of "give me everything"."""

    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    url: str | None = None  # the address that issued them, where a temporary redirect led elsewhere

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified or self.mtime_ns is not None)

    def renewed(self, later: "Validators") -> "Validators":
        """These, with what a "not modified" named anew; what it left out still holds."""
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
    """One look to be taken; conditional when it carries validators."""

    url: str
    validators: Validators | None = None
    media_type: str | None = None  # of the content on record; None where there is none
    at: str | None = None  # where that content was read, if not at `url` itself
    markdown: bool = False  # Markdown is preferred to HTML
    root: str = ""  # the listed URL that led here, if it is another


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The server sent content: `data` is decoded from its transfer and content codings."""

    url: str  # where the content came from, after temporary redirects
    data: bytes
    media_type: str = "text/html"  # lower case, without parameters; "" when the server named none
    charset: str | None = None  # as the Content-Type header says
    validators: Validators = Validators()
    status_code: int | None = 200  # None where no server was asked
    language: str | None = None  # Content-Language
    index: bool = True  # False when X-Robots-Tag says noindex
    follow: bool = True  # False when X-Robots-Tag says nofollow
    proven: bool = False  # this is what the source holds: a file, a blob that fits its id
    rendered: str | None = None  # by which browser it was shown, and why; None: as it came


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The content is as the validators remember it; `validators` holds those the answer renewed."""

    validators: Validators = Validators()
    status_code: int | None = 304
    unasked: str | None = None  # why the page was not asked at all: then this is no look at it


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """There is nothing at this address any more (404, 410, a deleted file)."""

    status_code: int | None = 404
    reason: str | None = None  # where it is not that nothing is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The address moved for good; `to` is canonical."""

    to: str
    status_code: int | None = 301
    retry_after: float | None = None  # seconds the server asked for before the target is looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """We may not look: robots.txt, 401/403 and other 4xx, a forbidden address, a refused media type."""

    outcome: Outcome  # BLOCKED_ROBOTS, BLOCKED_4XX or FAILED
    reason: str  # "robots.txt line 12", "403 Forbidden", "address not allowed"
    status_code: int | None = None
    validators: Validators | None = None  # of content that cannot be read: left alone while they hold
    challenge: bool = False  # it came with a page that lets browsers through


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The look went wrong in a way that may pass: time-out, 5xx, 429, a broken body."""

    outcome: Outcome  # TIMEOUT, FAILED, BLOCKED_4XX (429) or BLOCKED_5XX
    reason: str
    status_code: int | None = None
    retry_after: float | None = None  # seconds the server asked for, already capped
    poison: str | None = None  # the hash of a body on which the parser crashed
    hopeless: bool = False  # another look in the same run would fare no better
    challenge: bool = False  # it came with a page that lets browsers through


Fetched = Body | NotModified | Gone | Moved | Refused | Failed


class Link(NamedTuple):
    """One link of a page: canonical target and the text a reader sees."""

    url: str
    text: str
    follow: bool = True  # False for rel=nofollow


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a page, as it is indexed, hashed and shown."""

    title: str
    markdown: str
    links: tuple[Link, ...] = ()
    language: str | None = None
    content_hash: str
    links_hash: str
    sketch: str = ""  # tells how alike it is to others (text/similarity.py)
    index: bool = True  # the page does not ask to be left out (meta robots, X-Robots-Tag)
    follow: bool = True
    links_left_out: int = 0  # beyond the most that are kept of one page
    long_links: int = 0  # to addresses that are longer than any page needs
    foreign_canonical: str | None = None  # rel=canonical names another host: told, not believed
    login: bool = False  # little text, and a login is all that the page offers
    asks_password: bool = False  # little text, and a login form beside it
    leads_on: bool = False  # it sends its readers on, or shows other pages in frames
    styles_cut: bool = False  # more styles than are read: text that they hide may be in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What was seen around a document: how far it is to be believed."""

    run: int = 0
    likeness: float | None = None  # to the content on record, None if that is not known
    length: int | None = None  # of the content on record, in characters
    last: bool = False  # all else that the run looks at was seen
    twins: int = 0  # other addresses that show the same page
    like_missing: bool = False  # the site says the same for an address that cannot exist


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A body that was read into a document: what `decide` sees of a 200."""

    document: Document
    validators: Validators
    media_type: str
    status_code: int | None = 200
    proven: bool = False
    rendered: str | None = None
    signs: Signs = Signs()


Seen = Read | NotModified | Gone | Moved | Refused | Failed


class Terms(NamedTuple):
    """What is searched of a chunk where that is not the text itself (search/stemming.py)."""

    heading: str | None = None
    content: str | None = None


def embedded_text(path: tuple[str, ...], content: str) -> str:
    """What of a chunk is hashed and turned into a vector: where it stands and what it says, no addresses."""
    return " > ".join(path) + "\n\n" + without_targets(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document that is searched; `path` is its heading trail, outermost first."""

    content: str
    path: tuple[str, ...] = ()
    level: int = 0  # of the innermost heading, 0 before the first
    types: tuple[str, ...] = ("text",)  # of text, code, table, list
    text_hash: str
    terms: Terms = Terms()  # noqa: RUF009 - a tuple, so it can be shared
