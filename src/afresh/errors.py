"""The exceptions of afresh.

AfreshError
├── ConfigError        a setting is wrong: names key, line and the nearest valid key
├── UsageError         the call makes no sense: names what to type instead
│   ├── Unknown        what it names is not there
│   ├── AlreadyKept    a source has the URL that is to be added
│   └── RunOver        the run that it names is past that
├── SourceError        a source cannot be listed or opened
├── RunBusy            the source is being looked at by another process
├── Forbidden          whoever asks may not have that
├── ExtractError       a body could not be read into a document
│   ├── ParserCrashed  the process that read it ended or had to be ended
│   │   └── ParserLate     because it took too long
│   └── ParserMissing  no process could be started to read it
├── ApiError           an API that the settings name gave no answer
│   ├── ApiLate        it did not answer in time
│   └── ApiTooLarge    its answer is larger than it may be
├── EmbedError         a text could not be turned into a vector
│   └── EmbedderDown   no text can: the service, its key, its budget or its package is missing
├── SummaryError       a document could not be summarised
│   └── SummarizerDown none can be in this run: the service, its key or its budget is missing
├── ScoreError         some links could not be scored
│   └── ScorerDown     none can be in this run: the service, its key or its budget is missing
├── KbError            a file of the knowledge base (index, cache, lock) cannot be read or written
│   └── KbBusy         another process is writing them
├── SinkError          an external store did not do what it was asked; `retry_after` is what it asked for
│   ├── SinkBusy       not now: rate limit, overload, time-out
│   ├── SinkRefused    not like this: key, permission, bad request; needs a person
│   ├── SinkGone       the remote store is missing
│   └── SinkFull       its quota is used up
└── StoreError         the store cannot be used
    ├── StoreMissing   there is no store yet
    ├── StoreDamaged   the store is broken: only a backup or a new crawl helps
    ├── CopyStopped    a copy was told to stop; what is copied stays
    ├── StoreUnfinished  the store is half a copy
    ├── SchemaTooNew   the store was written by a newer afresh
    └── StoreWaits     trouble that passes: the same call may go well later
        ├── StoreBusy  another process is writing
        ├── StoreDown  its server does not answer
        └── StoreFull  there is no room to write
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afresh.links.score import Verdict


class AfreshError(Exception):
    """Something went wrong that a user can understand and act on."""


class ConfigError(AfreshError):
    """A setting is wrong."""


class UsageError(AfreshError):
    """The call makes no sense as it is."""


class Unknown(UsageError):
    """What the call names is not there."""


class AlreadyKept(UsageError):
    """A source has the name or the URL already."""

    def __init__(self, message: str, label: str = "") -> None:
        super().__init__(message)
        self.label = label  # of the source that has the URL


class RunOver(UsageError):
    """The run is past what the call wants of it."""


class SourceError(AfreshError):
    """A source cannot be listed or opened."""


class RunBusy(AfreshError):
    """The source is being looked at by another process."""

    def __init__(self, message: str, run: int | None = None) -> None:
        super().__init__(message)
        self.run = run  # that is in the way


class Forbidden(AfreshError):
    """Whoever asks may not have that."""


class ExtractError(AfreshError):
    """A body could not be read into a document."""


class ParserCrashed(ExtractError):
    """The process that read a body ended, or had to be ended."""


class ParserLate(ParserCrashed):
    """Reading a body took too long: it would again."""


class ParserMissing(ExtractError):
    """No process could be started to read a body: no fault of the page."""


class ApiError(AfreshError):
    """An API that the settings name gave no answer."""


class ApiLate(ApiError):
    """An API did not answer in time."""


class ApiTooLarge(ApiError):
    """An API answered with more than may be read."""


class EmbedError(AfreshError):
    """A text could not be turned into a vector."""


class EmbedderDown(EmbedError):
    """No text can be turned into a vector just now."""


class SummaryError(AfreshError):
    """A document could not be summarised."""


class SummarizerDown(SummaryError):
    """No document can be summarised any more in this run."""


class ScoreError(AfreshError):
    """Some links could not be scored; `found` is what was said of others before."""

    found: "Sequence[Verdict]" = ()


class ScorerDown(ScoreError):
    """No link can be scored any more in this run."""


class KbError(AfreshError):
    """A file of the knowledge base cannot be read or written."""


class KbBusy(KbError):
    """Another process is writing the files of the knowledge base."""


class SinkError(AfreshError):
    """An external store did not do what it was asked."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds that the store asked to be left alone


class SinkBusy(SinkError):
    """The store cannot do it now; later it may."""


class SinkRefused(SinkError):
    """The store will not do it: the request is wrong, or a file may not be written."""


class SinkDenied(SinkError):
    """The store does nothing for us: the key is wrong, or may not use it."""


class SinkGone(SinkError):
    """The remote store is missing."""


class SinkFull(SinkError):
    """The quota of the remote store is used up."""


class StoreError(AfreshError):
    """The store cannot be used."""


class CopyStopped(StoreError):
    """A copy was told to stop."""


class StoreUnfinished(StoreError):
    """The store is half a copy of another one."""


class SchemaTooNew(StoreError):
    """The store was written by a newer afresh."""


class StoreMissing(StoreError):
    """There is no store yet."""


class StoreDamaged(StoreError):
    """The store is broken."""


class StoreWaits(StoreError):
    """The store cannot be used just now."""


class StoreBusy(StoreWaits):
    """Another process is writing."""


class StoreDown(StoreWaits):
    """The server behind the store does not answer."""


class StoreFull(StoreWaits):
    """There is no room to write."""


def without_former_text(url: str) -> str:
    """Say why there is no former text of a page to show or restore."""
    return (
        f"no former text of {url} is kept: one is kept for as long as `retention.former_texts` says, when a page "
        "loses nearly all of its text, becomes a login, or becomes another page that is taken with --trust"
    )
