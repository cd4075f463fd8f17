"""What a store remembers, as plain dictionaries of frozen records."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import count
from typing import Any

from afresh.core.access import Token
from afresh.core.answers import KeptAnswer
from afresh.core.copies import Copy, SinkRecord
from afresh.core.embedding import Model
from afresh.core.hooks import Wish
from afresh.core.kb_pages import Told
from afresh.core.link_score import Answered, AskedLink, Worth
from afresh.core.looks import Chunk, Outcome
from afresh.core.model import (
    Attempt,
    CrawlId,
    Held,
    Page,
    PageId,
    PageStatus,
    Run,
    RunId,
    Source,
    SourceId,
    Worker,
)
from afresh.core.outbox import Letter
from afresh.core.signals import only_signals
from afresh.core.sync_views import DocumentOutcome
from afresh.core.timing import Appointment
from afresh.core.urls import domain_of
from afresh.core.views import ChangeView

LEFT = (PageStatus.DELETED, PageStatus.REDIRECT)  # looked at again only while something leads there
NOT_IN_INDEX = (*LEFT, PageStatus.ERROR, PageStatus.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source, and what is known of its links as a whole."""

    source: Source
    rules_seen: str = ""  # the rules by which its links were judged
    frontier_open: bool = False  # links wait beyond max_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """A page, and what the queue knows of it."""

    page: Page
    listed: bool = False
    queued_run: RunId | None = None  # the last run that queued it
    created_run: RunId | None = None  # the run that found it


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A chunk with its number; `text` is what is searched, the body itself or just its words."""

    id: int
    chunk: Chunk
    title: str
    text: str
    whole: bool = True  # the body itself


@dataclass(frozen=True, slots=True)
class Edge:
    """The way from a page to an address, with its visible text."""

    url: str
    text: str
    follow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Who looks at a host, who else wants to, and until when it rests."""

    locked_by: str | None = None
    wanted_by: str | None = None
    used: bool = False  # its holder has had a turn since it got the host
    known: bool = False  # somebody has looked at it
    run: RunId | None = None  # for which its holder does
    wanted_run: RunId | None = None
    next_allowed_at: datetime | None = None

    def is_held_by_other(self, worker: str) -> bool:
        """Whether another worker looks at the host."""
        return self.locked_by not in (None, worker)

    def is_to_be_left_by(self, worker: str) -> bool:
        """Whether a holder had its turn and another waits."""
        return self.locked_by == worker and self.wanted_by is not None and self.used

    def is_closed_to(self, worker: str, now: datetime) -> bool:
        """Whether a worker may not claim here: another is at it, it rests, or it is to be handed over."""
        rests = self.next_allowed_at is not None and self.next_allowed_at > now
        return rests or self.is_to_be_left_by(worker) or self.is_held_by_other(worker)


@dataclass(slots=True)
class Tables:
    """Everything a store remembers; records are never changed, only replaced."""

    sources: dict[SourceId, SourceRow] = field(default_factory=dict)
    runs: dict[RunId, Run] = field(default_factory=dict)
    unkept: dict[RunId, tuple[Run, Source]] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    pages: dict[PageId, PageRow] = field(default_factory=dict)
    addresses: dict[tuple[SourceId, str], PageId] = field(default_factory=dict)
    crawls: dict[CrawlId, Attempt] = field(default_factory=dict)
    untold: dict[CrawlId, frozenset[PageId] | None] = field(default_factory=dict)  # of attempts of listings
    open: dict[PageId, CrawlId] = field(default_factory=dict)  # the queue: at most one open row per page
    told: dict[PageId, Told] = field(default_factory=dict)  # of pages of the knowledge base
    caches: dict[str, str] = field(default_factory=dict)  # cache file → its digest
    documents: dict[PageId, Held] = field(default_factory=dict)
    pieces: dict[PageId, tuple[Piece, ...]] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    vectors: dict[tuple[str, str], bytes] = field(default_factory=dict)  # by model and hash of the text
    used: dict[str, datetime] = field(default_factory=dict)  # when a text last had a chunk, or was embedded
    links: dict[tuple[SourceId, str], bool] = field(default_factory=dict)  # is it part of the source?
    link_ids: dict[tuple[SourceId, str], int] = field(default_factory=dict)  # given when first shown
    edges: dict[PageId, tuple[Edge, ...]] = field(default_factory=dict)
    answers: dict[tuple[SourceId, AskedLink], Answered] = field(default_factory=dict)
    worths: dict[tuple[SourceId, str], Worth] = field(default_factory=dict)  # of links with a keyword
    seals: dict[SourceId, str | None] = field(default_factory=dict)  # how links were scored; "": not all
    copies: dict[int, Copy] = field(default_factory=dict)  # pages in external stores
    sync_documents: dict[tuple[RunId, int], tuple[Copy, DocumentOutcome, datetime]] = field(
        default_factory=dict
    )  # by run and copy
    sinks: dict[str, SinkRecord] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)  # "store": whose documents are ours
    deliveries: dict[tuple[str, str], datetime] = field(default_factory=dict)  # of webhooks
    wishes: dict[tuple[SourceId, str], Wish] = field(default_factory=dict)
    letters: dict[int, Letter] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)  # by digest
    logins: dict[str, tuple[int, datetime]] = field(default_factory=dict)  # by digest: token, and until when
    kept: dict[tuple[str, str], tuple[KeptAnswer, datetime]] = field(
        default_factory=dict
    )  # by caller and name
    changes: dict[int, tuple[SourceId, ChangeView]] = field(default_factory=dict)
    schedules: dict[SourceId, Appointment] = field(default_factory=dict)
    numbers: "count[int]" = field(default_factory=lambda: count(1))  # no number is ever given twice

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Whole or absent: an exception puts everything back as it was."""
        tables = [each.name for each in fields(self) if each.name != "numbers"]
        before = {name: dict(getattr(self, name)) for name in tables}
        try:
            yield
        except BaseException:
            for name, table in before.items():
                setattr(self, name, table)
            raise

    # ---- pages

    def page_at(self, source: SourceId, url: str) -> PageRow | None:
        """The page of a source with this address."""
        found = self.addresses.get((source, url))
        return None if found is None else self.pages[found]

    def next_look(self, page: PageId) -> datetime | None:
        """Return when a page is looked at next, if it waits for a look."""
        return self.crawls[self.open[page]].scheduled_for if page in self.open else None

    def new_page(self, source: SourceId, url: str, depth: int, now: datetime) -> Page:
        """Return a page with the next number, not in any table yet."""
        number = PageId(next(self.numbers))
        return Page(id=number, source_id=source, url=url, depth=depth, created_at=now, updated_at=now)

    def pages_of(self, source: SourceId) -> list[PageRow]:
        """All pages of a source, oldest first."""
        return [row for row in self.pages.values() if row.page.source_id == source]

    def change_page(self, page: PageId, **changes: Any) -> None:
        """Replace what is known of a page."""
        row = self.pages[page]
        self.pages[page] = replace(row, page=replace(row.page, **changes))

    def swap_pieces(
        self, page: Page, chunks: Sequence[Chunk], now: datetime, keep_body: bool
    ) -> tuple[int, int]:
        """Give a page its chunks; one whose text stays keeps its number. Counts kept and made ones."""
        spare: dict[tuple[str, str], list[Piece]] = defaultdict(list)
        for piece in self.pieces.get(page.id, ()):
            spare[piece.chunk.text_hash, piece.text].append(piece)
        kept, pieces = 0, []
        for chunk in chunks if keep_body else map(only_signals, chunks):
            text = chunk.content
            like = spare[chunk.text_hash, text]
            old = like.pop(0) if like else None
            same = old is not None and old.title == (page.title or "")
            kept += same
            number = old.id if old is not None and same else next(self.numbers)
            pieces.append(Piece(id=number, chunk=chunk, title=page.title or "", text=text, whole=keep_body))
        self.leave_vectors(page.id, now)
        self.pieces[page.id] = tuple(pieces)
        return kept, len(pieces) - kept

    def unseal_links(self, source: SourceId) -> None:
        """Remember that links of a source changed since they were scored."""
        if self.seals.get(source) is not None:
            self.seals[source] = ""

    def leave_vectors(self, page: PageId, now: datetime) -> None:
        """Note when the texts of a page last had a chunk."""
        self.used.update({piece.chunk.text_hash: now for piece in self.pieces.get(page, ())})

    # ---- attempts

    def open_attempt(self, page: Page, run: RunId | None, at: datetime, now: datetime) -> None:
        """Queue a look at a page: the open row is taken over where there is one."""
        if page.id in self.open:
            self.change_attempt(self.open[page.id], now, run_id=run, scheduled_for=at, priority=-page.depth)
            return
        self.open[page.id] = CrawlId(next(self.numbers))
        self.crawls[self.open[page.id]] = Attempt(
            id=self.open[page.id],
            page_id=page.id,
            run_id=run,
            url=page.url,
            domain=domain_of(page.url),
            priority=-page.depth,
            scheduled_for=at,
            created_at=now,
            updated_at=now,
        )

    def change_attempt(self, crawl: CrawlId, now: datetime, **changes: Any) -> None:
        """Replace what is known of an attempt."""
        self.crawls[crawl] = replace(self.crawls[crawl], updated_at=now, **changes)

    def close_attempt(self, crawl: CrawlId, outcome: Outcome, now: datetime, **evidence: Any) -> None:
        """Finish an attempt; it is history from now on."""
        page = self.crawls[crawl].page_id
        if page is not None:
            self.open.pop(page, None)
        done = {"completed_at": now, "locked_at": None, "locked_by": None}
        self.change_attempt(crawl, now, outcome=outcome, **done, **evidence)

    def waiting(self) -> list[Attempt]:
        """All open rows, in the order they came."""
        return [self.crawls[crawl] for crawl in sorted(self.open.values())]

    def open_rows(self, source: SourceId) -> list[tuple[Attempt, PageRow]]:
        """The open rows of a source with their pages, as far as these are looked at again."""
        pairs = [(row, self.pages[PageId(row.page_id or 0)]) for row in self.waiting()]
        return [
            (row, page)
            for row, page in pairs
            if page.page.source_id == source and (page.page.status not in LEFT or page.listed)
        ]
