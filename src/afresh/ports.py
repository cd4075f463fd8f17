"""The protocols that adapters implement."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from afresh.links.score import LinkJudgement, LinkToScore
from afresh.model.fetch import Body, Document, Failed, Fetched, Refused, Request
from afresh.model.records import ListedUrl
from afresh.sync.copy import OwnerTag, Remote, RemoteState, Upload

__all__ = ["OwnerTag", "Remote", "RemoteState", "Sink", "Upload"]  # sinks need these records

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]

Clock = Callable[[], datetime]


class StoreAccess(Enum):
    """What a command needs from the store; only a crawl may create one."""

    READ = "read"
    CHANGE = "change"
    CREATE = "create"


class Fetcher(Protocol):
    """Fetches one URL; expected problems are values, never exceptions."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def close(self) -> None: ...


class Lister(Protocol):
    """Lists a source (root, sitemap, files) and decides what belongs to it."""

    kind: str

    @property
    def listing_errors(self) -> Sequence[str]:
        """Return what could not be listed; an incomplete listing proves nothing."""
        ...

    @property
    def dropped(self) -> Mapping[str, int]:
        """Return how many listed items were left out, by reason."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Return notes on the listing for the report, known when the run ends."""
        ...

    @property
    def mark(self) -> str | None:
        """Return a token for the listed state, so that the next lister can recognise it."""
        ...

    @property
    def unchanged(self) -> bool:
        """Return whether the state equals that of the last token; then only pages found by links are listed."""
        ...

    def walks(self, url: str) -> bool:
        """Return whether a page is found by links and fetched individually, instead of being listed."""
        ...

    def list(self) -> AsyncIterator[ListedUrl]:
        """Yield what there is; raise SourceError if the source cannot be read at all."""
        ...

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a URL is not part of the source, or None if it is."""
        ...


class ChangedPaths(NamedTuple):
    """What changed paths mean."""

    there: Sequence[ListedUrl] = ()  # files that belong to the source
    others: Sequence[str] = ()  # URLs without such a file: stored pages at or below them may be gone
    everything: bool = False  # more than single files may have changed


class ChangeFeed(Protocol):
    """Reports changes at the root of a source without reading files; its methods may block."""

    place: str

    def open(self, on_change: Callable[[Sequence[str]], None], on_loss: Callable[[str], None]) -> None:
        """Start reporting paths, or why reporting ended, from another thread; raise OSError if impossible."""
        ...

    def close(self) -> None: ...

    def stands(self) -> bool:
        """Return whether the root is still the one that is watched."""
        ...

    def sift(self, paths: Iterable[str]) -> ChangedPaths:
        """Return what to check for some changed paths."""
        ...


class Extractor(Protocol):
    """Parses a body into a document; pure, so that it can run in another process."""

    version: str

    def extract(self, body: Body) -> Document: ...


class Embedder(Protocol):
    """Turns texts into vectors; errors are EmbedError and name the fix."""

    model: str  # a fingerprint: vectors of different models are never compared

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """Return one row of length 1 for each text, in order."""
        ...

    async def embed_query(self, text: str) -> "Matrix":
        """Return the row of a query, which some models embed differently."""
        ...

    async def close(self) -> None: ...


class Summarizer(Protocol):
    """Summarises a document in a few plain lines; created per run, as its budget is per run.

    Trouble is a SummaryError that names the fix, a SummarizerDown where none can be made any more.
    """

    @property
    def recipe(self) -> str:
        """Return a fingerprint of model and prompt."""
        ...

    async def summarise(self, title: str, text: str) -> str:
        """Return the summary of a Markdown text: never empty, without a blank line."""
        ...


class JsonReply(NamedTuple):
    """A JSON answer of an API."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    json: Any  # None if the body is not JSON


class JsonApi(Protocol):
    """Calls configured APIs only; no answer raises ApiError."""

    async def post_json(self, url: str, headers: Mapping[str, str], body: object, timeout: float) -> JsonReply: ...

    async def close(self) -> None: ...


class LinkScorer(Protocol):
    """Scores keywords for a link by its text and URL alone; created per run.

    Trouble is a ScoreError for the links of one call, a ScorerDown where none can be scored any more; what
    was said before it came is in its `found`.
    """

    recipe: str  # a fingerprint of scorer, model and prompt, without keywords
    is_free: bool  # calls cost nothing
    batch: int  # links per call
    calls: int  # made so far to a model
    tokens: int  # used so far

    async def score(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> Sequence[LinkJudgement]:
        """Return the scores per link; links that no keyword fits are left out."""
        ...


class ApiResponse(NamedTuple):
    """An answer of an API."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    data: bytes


class HttpApi(Protocol):
    """Calls configured APIs only; no answer raises ApiError."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, timeout: float
    ) -> ApiResponse: ...

    async def close(self) -> None: ...


class Sink(Protocol):
    """An external store; errors are SinkError and say what helps."""

    name: str
    at_once: int  # concurrent uploads

    async def put(self, upload: Upload) -> Remote:
        """Add a document; there is no update: replace = drop + put, or put + drop.

        Its errors tell whether a document may be there. Once one may have been handed over, the only error
        is SinkBusy without `retry_after`: the caller lists the store before it puts again. Every other error,
        SinkBusy with `retry_after` among them, says that nothing was taken.
        """
        ...

    async def drop(self, remote_id: str) -> None:
        """Delete a document; a missing one is no error."""
        ...

    async def look(self, remote_id: str) -> Remote | None:
        """Return a document, or None if it is missing."""
        ...

    def all(self) -> AsyncIterator[Remote]:
        """Yield every document, also those of others."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """A kind of external store, registered in the entry point group `afresh.sinks`."""

    open: Callable[..., Sink]  # takes name and settings, and the HTTP client if there is a base_url
    needs: tuple[str, ...] = ()  # required keys of `sinks.NAME`
    base_url: str | None = None  # default URL of its API


class Web(Protocol):
    """Fetches URLs and obeys robots.txt."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Return why robots.txt forbids a page, or None if it does not."""
        ...

    async def crawl_delay(self, url: str) -> float | None:
        """Return the delay between requests that a site asks for; None while it is unknown."""
        ...

    def state(self, origin: str) -> str:
        """Return what is known of the robots.txt of an origin; "unreachable" stops a run."""
        ...
