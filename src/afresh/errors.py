"""The exceptions of afresh; each message names what to do about it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afresh.links.score import LinkJudgement


class AfreshError(Exception):
    """An error that a user can understand and act on."""


class ConfigError(AfreshError):
    """A setting is invalid."""


class UsageError(AfreshError):
    """The call is invalid."""


class NotFound(UsageError):
    """The call names something that does not exist."""


class AlreadyExists(UsageError):
    """A source has this name or URL already."""

    def __init__(self, message: str, label: str = "") -> None:
        super().__init__(message)
        self.label = label  # of the existing source


class RunFinished(UsageError):
    """The run has ended already, or is not in the state that the call needs."""


class SourceError(AfreshError):
    """A source cannot be listed or opened."""


class RunBusy(AfreshError):
    """Another process works on this source."""

    def __init__(self, message: str, run: int | None = None) -> None:
        super().__init__(message)
        self.run = run  # the run of the other process


class Forbidden(AfreshError):
    """The caller lacks the permission."""


class ExtractError(AfreshError):
    """A body could not be parsed."""


class ParserCrashed(ExtractError):
    """The parser process ended while it parsed a body."""


class ParserTimeout(ParserCrashed):
    """Parsing a body took too long; the run does not parse it again, because that would take as long."""


class ParserUnavailable(ExtractError):
    """No parser process could be started; the page is not at fault."""


class ApiError(AfreshError):
    """A configured API did not answer."""


class ApiTimeout(ApiError):
    """A configured API did not answer in time."""


class ApiTooLarge(ApiError):
    """A configured API answered with too much data."""


class EmbedError(AfreshError):
    """A text could not be embedded."""


class EmbedderUnavailable(EmbedError):
    """The embedder is unavailable."""


class SummaryError(AfreshError):
    """A document could not be summarised."""


class SummarizerUnavailable(SummaryError):
    """The summarizer is unavailable for the rest of the run."""


class ScoreError(AfreshError):
    """Some links could not be scored; `found` holds the scores of the others."""

    found: "Sequence[LinkJudgement]" = ()


class ScorerUnavailable(ScoreError):
    """The scorer is unavailable for the rest of the run."""


class KbError(AfreshError):
    """A digest file cannot be read or written."""


class KbBusy(KbError):
    """Another process writes the digest files."""


class SinkError(AfreshError):
    """An external store reported an error."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds that the store asked to wait


class SinkBusy(SinkError):
    """The external store cannot handle the request now; a retry may succeed."""


class SinkRefused(SinkError):
    """The external store rejects the request."""


class SinkUnauthorized(SinkError):
    """The external store rejects the credentials."""


class SinkMissing(SinkError):
    """The external store does not exist."""


class SinkFull(SinkError):
    """The quota of the external store is used up."""


class StoreError(AfreshError):
    """The store cannot be used."""


class CopyStopped(StoreError):
    """The user stopped the copying of a store into another."""


class IncompleteCopy(StoreError):
    """The store is an incomplete copy of another one."""


class SchemaTooNew(StoreError):
    """The store was written by a newer version of afresh."""


class StoreMissing(StoreError):
    """There is no store yet."""


class StoreDamaged(StoreError):
    """The store is damaged."""


class StoreUnavailable(StoreError):
    """The store cannot be used right now; a retry may succeed."""


class StoreBusy(StoreUnavailable):
    """Another process writes to the store."""


class StoreUnreachable(StoreUnavailable):
    """The database server does not answer."""


class StoreFull(StoreUnavailable):
    """The disk is full."""


def no_former_text_message(url: str) -> str:
    """Return the error message for a page that has no former text to show or restore."""
    return (
        f"no former text of {url} is stored. afresh stores one, for the time in `retention.former_texts`, when a page "
        "loses nearly all of its text, becomes a login page, or is replaced by a doubtful version with --trust"
    )
