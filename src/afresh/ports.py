"""The protocols that adapters implement."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from afresh.dataclass import dataclass
from afresh.links.score import LinkJudgement, LinkToScore
from afresh.model.fetch import Body, Document, Failed, Fetched, Refused, Request
from afresh.model.records import ListedUrl
from afresh.sync.copy import OwnerTag, Remote, RemoteState, Upload

__all__ = ["OwnerTag", "Remote", "RemoteState", "Sink", "Upload"]  # sinks need these records

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Matrix: TypeAlias = "npt.NDArray[np.float32]"
Clock = Callable[[], datetime]


class StoreAccess(Enum):
    """What a command does with the store: read it, change it, or create it if it is missing."""

    READ = "read"
    CHANGE = "change"
    CREATE = "create"


class Fetcher(Protocol):
    """Fetches one URL; expected problems are returned as values, not raised."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def close(self) -> None: ...


class Lister(Protocol):
    """Lists the URLs of a source (root, sitemap, files) and decides which URLs belong to it."""

    kind: str

    @property
    def listing_errors(self) -> Sequence[str]:
        """Return what could not be listed; an incomplete listing does not show that a page is gone."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """Return how many listed items were left out, by reason."""

    @property
    def notes(self) -> Sequence[str]:
        """Return notes on the listing for the run report; they are complete at the end of the run."""

    @property
    def mark(self) -> str | None:
        """Return a text that identifies the current state of the source, such as a commit id; None if unknown."""

    @property
    def unchanged(self) -> bool:
        """Return whether the source is in the state that the last run stored, so that it need not be listed."""

    def walks(self, url: str) -> bool:
        """Return whether a page is found by following links, instead of being listed."""

    def list(self) -> AsyncIterator[ListedUrl]:
        """Yield the URLs of the source; raise SourceError if it cannot be read at all."""

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a URL is not part of the source, or None if it is."""


class ChangedPaths(NamedTuple):
    """The pages of a source to check after some paths changed: files, other URLs, or everything."""

    files: Sequence[ListedUrl] = ()  # existing files that belong to the source
    other_urls: Sequence[str] = ()  # URLs without such a file: stored pages at or below them may be gone
    everything: bool = False  # more than single files may have changed


class ChangeFeed(Protocol):
    """Reports changed paths below the root of a source, without reading files; its methods may block."""

    place: str  # the path of the root, with symbolic links resolved

    def open(self, on_change: Callable[[Sequence[str]], None], on_loss: Callable[[str], None]) -> None:
        """Start watching; raise OSError if that is impossible.

        Another thread calls `on_change` with changed paths, and `on_loss` with the reason when watching ends.
        """

    def close(self) -> None: ...

    def is_intact(self) -> bool:
        """Return whether the root is still the folder that was opened, not a new one in its place."""

    def classify(self, paths: Iterable[str]) -> ChangedPaths:
        """Return the pages to check after these paths changed."""


class Extractor(Protocol):
    """Parses a body into a document without side effects, so that it can run in another process."""

    def extract(self, body: Body) -> Document: ...


class Embedder(Protocol):
    """Computes vectors of texts; raises EmbedError with a message that says what to do."""

    model: str  # a fingerprint: vectors of different models are never compared

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row per text, in the order of the texts: the vector of the text, scaled to length 1."""

    async def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query as a matrix of one row; some models embed queries differently."""

    async def close(self) -> None: ...


class Summarizer(Protocol):
    """Summarises documents in a few plain lines; one object per run, as the budget is per run.

    Raises SummaryError with a message that says what to do, or SummarizerUnavailable if every other document would
    fail, too.
    """

    @property
    def recipe(self) -> str:
        """Return a fingerprint of the model and its prompt; stored summaries with another fingerprint are outdated."""

    async def summarise(self, title: str, text: str) -> str:
        """Return the summary of a Markdown text: not empty, without blank lines."""


class JsonReply(NamedTuple):
    """An answer of an API, with its body parsed as JSON."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    json: Any  # None if the body is not JSON


class JsonApi(Protocol):
    """Sends JSON to APIs named in the settings; raises ApiError if no answer arrives."""

    async def post_json(self, url: str, headers: Mapping[str, str], body: object, timeout: float) -> JsonReply: ...

    async def close(self) -> None: ...


class LinkScorer(Protocol):
    """Scores how well links fit keywords, by their text and URL alone; one object per run.

    Raises ScoreError if it cannot score all links of a call, or ScorerUnavailable if every other link would fail, too.
    The attribute `found` of the error holds the scores made before the failure.
    """

    recipe: str  # a fingerprint of scorer, model and prompt, without keywords
    is_free: bool  # calls cost nothing
    batch: int  # links per call
    calls: int  # made so far to a model
    tokens: int  # used so far

    async def score(self, links: Sequence[LinkToScore], keywords: Sequence[str]) -> Sequence[LinkJudgement]:
        """Return the scores of each link; omit links that fit no keyword."""


class ApiResponse(NamedTuple):
    """An answer of an API, with its body as bytes."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    data: bytes


class HttpApi(Protocol):
    """Sends requests to APIs named in the settings; raises ApiError if no answer arrives."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, timeout: float
    ) -> ApiResponse: ...

    async def close(self) -> None: ...


class Sink(Protocol):
    """An external store; raises SinkError with a message that says what to do."""

    name: str
    at_once: int  # concurrent uploads

    async def put(self, upload: Upload) -> Remote:
        """Add a document and return its record; to replace a document, put the new one and drop the old one.

        SinkBusy without `retry_after` means that the document may have been stored: list the store before the
        next try. Every other error, including SinkBusy with `retry_after`, means that nothing was stored.
        """

    async def drop(self, remote_id: str) -> None:
        """Delete a document; a missing one is no error."""

    async def look(self, remote_id: str) -> Remote | None:
        """Return the record of a document, or None if it is missing."""

    def all(self) -> AsyncIterator[Remote]:
        """Yield every document, including those that afresh did not write."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """A kind of external store, registered in the entry point group `afresh.sinks`."""

    open: Callable[..., Sink]  # takes name and settings, and the HTTP client if there is a base_url
    needs: tuple[str, ...] = ()  # required keys of `sinks.NAME`
    base_url: str | None = None  # default URL of its API; None: it gets no HTTP client


class Web(Protocol):
    """Fetches URLs and obeys robots.txt."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Return why robots.txt forbids a page, or None if it does not."""

    async def crawl_delay(self, url: str) -> float | None:
        """Return the delay between requests that a site asks for; None while it is unknown."""

    def state(self, origin: str) -> str:
        """Return the state of the robots.txt of an origin; "unreachable" stops a run."""
