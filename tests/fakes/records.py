"""Records as use cases return them, to be shown."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from afresh.model.fetch import Outcome
from afresh.model.overview import Preview
from afresh.model.records import Attempt, ChangeKind, CrawlId, PageId, PageStatus, RunId, SourceId
from afresh.model.reports import (
    ChangeView,
    OpenedPage,
    PageExplanation,
    PageView,
    RefreshPlan,
    ReindexReport,
    RunReport,
    SearchAnswer,
    SearchHit,
    SourceView,
)
from afresh.sync.reports import DocumentOutcome, SyncedDocument
from afresh.urls.scope import Rules

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
URL = "https://docs.example.org/guide/retries/"


def minutes(number: float) -> datetime:
    """A moment so many minutes before NOW."""
    return NOW - timedelta(minutes=number)


def report(**more: object) -> RunReport:
    """A refresh of python-docs like the one in the brief."""
    values: dict[str, object] = {
        "run": RunId(7),
        "source": "python-docs",
        "version": None,
        "mode": "refresh",
        "state": "completed",
        "known": 1160,
        "checked": 1169,
        "new": 12,
        "changed": 70,
        "not_modified": 1080,
        "unchanged": 7,
        "bytes": 1_234_567,
        "seconds": 0.42,
    }
    return RunReport(**(values | more))  # type: ignore[arg-type]


def hit(**more: object) -> SearchHit:
    """One answer about retries."""
    values: dict[str, object] = {
        "url": URL,
        "title": "Retries",
        "text": "A job that fails is \x02retried\x03 with a growing pause.\nThe first \x02retry\x03 comes after 2 s.",
        "path": ("Retries", "Back-off"),
        "score": 3.14159,
        "source": "harbor",
        "version": "2",
        "language": "en",
        "checked_at": minutes(2),
        "changed_at": minutes(3 * 24 * 60),
    }
    return SearchHit(**(values | more))  # type: ignore[arg-type]


def found(*hits: SearchHit, notes: Sequence[str] = ()) -> SearchAnswer:
    """The answer to a search."""
    return SearchAnswer(hits=hits, notes=tuple(notes))


def source(**more: object) -> SourceView:
    """The source harbor@2."""
    values: dict[str, object] = {
        "id": SourceId(3),
        "name": "harbor",
        "version": "2",
        "kind": "web",
        "url": "https://docs.example.org/",
        "crawl_time": minutes(90),
        "pages": 1234,
        "chunks": 8000,
        "links": 20000,
        "errors": 3,
        "doubtful": 1,
        "oldest_check": minutes(90),
        "last_run": RunId(7),
        "last_state": "completed",
        "last_mode": "refresh",
        "rules": {"include": ["*/guide/*"]},
        "policy": {"concurrency": 2},
    }
    return SourceView(**(values | more))  # type: ignore[arg-type]


def page(**more: object) -> PageView:
    """The page about retries."""
    values: dict[str, object] = {
        "id": PageId(1),
        "source_id": SourceId(3),
        "url": URL,
        "status": PageStatus.ACTIVE,
        "title": "Retries",
        "depth": 2,
        "language": "en",
        "content_hash": "ab" * 16,
        "etag": '"v1"',
        "last_modified": None,
        "content_type": "text/html",
        "crawl_time": minutes(2),
        "last_seen": minutes(2),
        "checked_at": minutes(2),
        "changed_at": minutes(300),
        "missing_count": 0,
        "moved_to": None,
    }
    return PageView(**(values | more))  # type: ignore[arg-type]


def opened(**more: object) -> OpenedPage:
    """The text about retries."""
    values: dict[str, object] = {
        "url": URL,
        "title": "Retries",
        "source": "harbor",
        "version": "2",
        "language": "en",
        "status": PageStatus.ACTIVE,
        "content_type": "text/html",
        "checked_at": minutes(2),
        "changed_at": minutes(3 * 24 * 60),
        "markdown": "# Retries\n\nA job that fails is retried.\n\n```make\nall:\n\techo  \n```",
    }
    return OpenedPage(**(values | more))  # type: ignore[arg-type]


def attempt(**more: object) -> Attempt:
    """A look that was answered with 304."""
    values: dict[str, object] = {
        "id": CrawlId(5),
        "page_id": PageId(1),
        "run_id": RunId(7),
        "url": URL,
        "domain": "docs.example.org",
        "scheduled_for": minutes(3),
        "completed_at": minutes(2),
        "outcome": Outcome.NOT_MODIFIED,
        "status_code": 304,
        "reason": '304 by ETag "v1"',
        "created_at": minutes(3),
        "updated_at": minutes(2),
    }
    return Attempt(**(values | more))  # type: ignore[arg-type]


def why(**more: object) -> PageExplanation:
    """The evidence of a 304 by ETag."""
    values: dict[str, object] = {
        "url": URL,
        "source": "harbor",
        "version": "2",
        "status": PageStatus.ACTIVE,
        "summary": '304 by ETag "v1": the content is as it was.',
        "page": page(),
        "latest": attempt(),
        "next_look": NOW + timedelta(hours=19),
        "next_check": NOW + timedelta(hours=20),
        "linked_from_count": 8,
        "linked_from": tuple(f"https://docs.example.org/{number}/" for number in range(8)),
        "attempts": 4,
    }
    return PageExplanation(**(values | more))  # type: ignore[arg-type]


def plan(**more: object) -> RefreshPlan:
    """The plan of a refresh of 1,000 pages."""
    values: dict[str, object] = {
        "source": "harbor",
        "version": "2",
        "mode": "refresh",
        "known": 1000,
        "conditional": 990,
        "unconditional": 10,
        "first_looks": 5,
        "not_looked_at": 2,
        "last_run_bytes": 120_000,
        "last_full_bytes": 45_000_000,
        "estimated_seconds": 12.4,
        "root": "https://docs.example.org/",
        "notes": ("robots.txt asks for a pause of 1 s",),
        "due": 700,
    }
    return RefreshPlan(**(values | more))  # type: ignore[arg-type]


def preview(url: str, **more: object) -> Preview:
    """What would be read of a site with two links."""
    values: dict[str, object] = {
        "kind": "web",
        "url": url,
        "name": "harbor",
        "known": None,
        "plan": None,
        "rules": Rules(root=url),
        "title": "Harbor",
        "belong": (f"{url}a",),
        "left_out": (("https://elsewhere.example/", "on another host"),),
    }
    return Preview(**(values | more))  # type: ignore[arg-type]


def synced(**more: object) -> SyncedDocument:
    """A document that was put and is stuck by now."""
    values: dict[str, object] = {
        "id": 3,
        "page_id": None,
        "sink": "team",
        "url": URL,
        "outcome": DocumentOutcome.UPLOADED,
        "state": PageStatus.ACTIVE,
        "remote_name": "Retries",
        "at": NOW,
        "state_now": PageStatus.READY_FOR_INDEXING,
    }
    return SyncedDocument(**(values | more))  # type: ignore[arg-type]


def change(**more: object) -> ChangeView:
    """A changed page with a small diff."""
    values: dict[str, object] = {
        "id": 1,
        "source": "harbor",
        "version": "2",
        "url": URL,
        "kind": ChangeKind.CHANGED,
        "run": RunId(7),
        "at": minutes(2),
        "old_hash": "aa",
        "new_hash": "bb",
        "diff": "@@ -1,2 +1,2 @@\n # Retries\n-after 2 s\n+after 5 s\n",
    }
    return ChangeView(**(values | more))  # type: ignore[arg-type]


def reindexed(**more: object) -> ReindexReport:
    """An index that the quality model has made anew."""
    values: dict[str, object] = {
        "source": None,
        "state": "completed",
        "pages_cut": 0,
        "chunks_embedded": 7990,
        "chunks_reused": 10,
        "left": 0,
        "model": "local/minilm-l6-int8/1",
        "serving": "local/minilm-l6-int8/1",
        "seconds": 612.0,
    }
    return ReindexReport(**(values | more))  # type: ignore[arg-type]
