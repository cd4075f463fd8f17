"""A knowledge base that answers from a script and notes what it was asked."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from afresh.config import Config
from afresh.core.errors import UsageError
from afresh.core.events import Listener, Notice, Progress, Remaking, ignore
from afresh.core.history import HistoryEntry, history_entry
from afresh.core.looks import Outcome
from afresh.core.model import Attempt, ChangeKind, CrawlId, PageId, PageStatus, RunId, SourceId
from afresh.core.overview import Preview
from afresh.core.records import LIVE_PAGES, PageFilter
from afresh.core.scope import Rules
from afresh.core.store_views import Finding
from afresh.core.sync_views import DocumentOutcome, SyncedDocument
from afresh.core.versions import Match
from afresh.core.views import (
    Answer,
    ChangeView,
    FoundVersion,
    Hit,
    HostQueue,
    LinkView,
    OpenedPage,
    PageView,
    Plan,
    Reindexed,
    RunReport,
    SourceView,
    StoreStatus,
    Why,
    WorkerView,
)
from afresh.core.watching import USUAL, Sights, WatchTimes, ignore_sight
from afresh.ports import Access

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
URL = "https://docs.example.org/guide/retries/"
Waiting = Callable[[], Awaitable[None]]


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


def hit(**more: object) -> Hit:
    """One answer about retries."""
    values: dict[str, object] = {
        "url": URL,
        "title": "Retries",
        "text": "A job that fails is \x02retried\x03 with a growing pause.\n"
        "The first \x02retry\x03 comes after 2 s.",
        "path": ("Retries", "Back-off"),
        "score": 3.14159,
        "source": "harbor",
        "version": "2",
        "language": "en",
        "checked_at": minutes(2),
        "changed_at": minutes(3 * 24 * 60),
    }
    return Hit(**(values | more))  # type: ignore[arg-type]


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


def reindexed(**more: object) -> Reindexed:
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
    return Reindexed(**(values | more))  # type: ignore[arg-type]


@dataclass
class FakeKnowledge:
    """Answers as it was told; `calls` holds what it was asked."""

    reports: list[RunReport] = field(default_factory=lambda: [report()])
    hits: list[Hit] = field(default_factory=lambda: [hit()])
    notes: list[str] = field(default_factory=list)
    sources_: list[SourceView] = field(default_factory=lambda: [source()])
    pages_: list[PageView] = field(default_factory=lambda: [page()])
    opened_: OpenedPage = field(default_factory=opened)
    changes_: list[ChangeView] = field(default_factory=lambda: [change()])
    findings: list[Finding] = field(default_factory=lambda: [Finding(check="store", ok=True, detail="opens")])
    reindexed: list[Reindexed] = field(default_factory=lambda: [reindexed()])
    next_look: datetime = NOW + timedelta(hours=20)
    budget: int | None = None
    waits: Waiting | None = None  # what a run waits for before it ends
    error: Exception | None = None
    calls: list[tuple[str, object]] = field(default_factory=list)
    config: Config | None = None
    stopped: int = 0
    when_stopped: Callable[[], None] = lambda: None
    closed: bool = False
    away: list[Exception] = field(default_factory=list)  # what opening says first

    async def opened_with(self, config: Config, access: Access) -> "FakeKnowledge":
        """Stands in for `open_kb`."""
        if self.away:
            raise self.away.pop()
        self.config = config
        self.access = access
        return self

    def _asked(self, name: str, *given: object) -> None:
        self.calls.append((name, given[0] if len(given) == 1 else given))
        if self.error:
            raise self.error

    async def crawl(
        self,
        target: str,
        *,
        name: str | None = None,
        version: str | None = None,
        rules: Mapping[str, object] = {},
        policy: Mapping[str, object] = {},
        full: bool = False,
        trust: bool = False,
        redetect: bool = False,
        follow_move: bool = False,
        keep: bool = True,
        again: bool = True,
        listener: Listener = ignore,
    ) -> RunReport:
        """One scripted report."""
        self._asked("crawl", target, name, version, dict(rules), dict(policy), full, trust, redetect)
        await self._work(listener)
        return self.reports[0]

    async def refresh(
        self,
        labels: Sequence[str] = (),
        *,
        due: bool = False,
        budget: int | None = None,
        full: bool = False,
        trust: bool = False,
        redetect: bool = False,
        follow_move: bool = False,
        listener: Listener = ignore,
    ) -> list[RunReport]:
        """The scripted reports."""
        self._asked("refresh", tuple(labels), due, budget, full, trust, redetect)
        await self._work(listener)
        return self.reports

    async def watch(
        self,
        labels: Sequence[str] = (),
        *,
        times: WatchTimes = USUAL,
        tell: Sights = ignore_sight,
        listener: Listener = ignore,
    ) -> None:
        """Tells the scripted reports one after the other."""
        self._asked("watch", tuple(labels), times.debounce, times.rescan)
        tell(Notice(text="python-docs is watched"))
        for each in self.reports:
            tell(each)
        if self.waits:
            await self.waits()

    async def _work(self, listener: Listener) -> None:
        listener(Notice(text="a run was resumed"))
        counts = {"new": 3, "failed": 1}
        listener(Progress(run=RunId(7), source="python-docs", done=4, queued=8, counts=counts, seconds=2.0))
        if self.waits:
            await self.waits()

    async def search(
        self,
        query: str,
        *,
        within: Sequence[str] = (),
        language: str | None = None,
        path: str | None = None,
        changed_within: timedelta | None = None,
        checked_within: timedelta | None = None,
        mode: str = "hybrid",
        max_age: timedelta | None = None,
        limit: int = 10,
        every_chunk: bool = False,
        context: bool = False,
        listener: Listener = ignore,
    ) -> Answer:
        """The scripted hits; the call is noted without what was not asked for."""
        given = {
            "within": within,
            "language": language,
            "path": path,
            "mode": mode,
            "max_age": max_age,
            "changed_within": changed_within,
            "checked_within": checked_within,
            "limit": limit,
            "every_chunk": every_chunk,
            "context": context,
        }
        usual = {"mode": "hybrid", "limit": 10}
        told = {
            name: value for name, value in given.items() if value not in (None, (), False, usual.get(name))
        }
        self._asked("search", query, told)
        return Answer(hits=tuple(self.hits), notes=tuple(self.notes))

    async def reindex(self, labels: Sequence[str] = (), *, listener: Listener = ignore) -> list[Reindexed]:
        """The scripted reports."""
        self._asked("reindex", tuple(labels))
        listener(Remaking(what="chunks", done=512, of=8000))
        return self.reindexed

    async def open(self, url: str, *, within: str | None = None, former: bool = False) -> OpenedPage:
        """The scripted page."""
        self._asked("open", url, within, former)
        return self.opened_

    async def version_note(self, label: str) -> str | None:
        """Every name means one source."""
        return None

    async def restore(self, url: str, *, within: str | None = None) -> OpenedPage:
        """The scripted page."""
        self._asked("restore", url, within)
        return self.opened_

    async def find_version(self, label: str) -> FoundVersion:
        """The nearest lower of three."""
        self._asked("find_version", label)
        return FoundVersion(
            source="react",
            wanted="18.2.9",
            version="18.2.0",
            match=Match.NEAREST_LOWER,
            url="https://react.dev/",
            versions=("19.0.0", "18.2.0", "17.0.2"),
            unversioned=True,
        )

    async def sources(self) -> list[SourceView]:
        """The scripted sources."""
        self._asked("sources")
        return self.sources_

    async def show(self, label: str) -> SourceView:
        """The first source."""
        self._asked("show", label)
        return self.sources_[0]

    async def pages(
        self, label: str, which: PageFilter = LIVE_PAGES, *, limit: int | None = None
    ) -> list[PageView]:
        """The scripted pages."""
        self._asked("pages", label, which, limit)
        return self.pages_

    async def links(
        self,
        label: str,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        """One link."""
        self._asked("links", label, page, keyword, min_score, limit)
        link = LinkView(
            url=URL,
            text="Retries",
            score=None,
            keywords={},
            comment=None,
            crawl_time=minutes(2),
            pages=("https://docs.example.org/",),
            page_count=1,
        )
        return [link]

    async def history(self, url: str, *, within: str | None = None) -> list[HistoryEntry]:
        """A waiting attempt and a finished one."""
        self._asked("history", url, within)
        waiting = attempt(outcome=None, completed_at=None, status_code=None, reason=None)
        return [history_entry(each, "harbor", "2") for each in (waiting, attempt())]

    async def attempts_of_run(
        self, number: int, *, outcome: Outcome | None = None, limit: int
    ) -> list[Attempt]:
        """One that went well."""
        self._asked("attempts_of_run", number, outcome, limit)
        return [attempt()]

    async def run(self, number: int) -> RunReport:
        """A refresh; above 100 a sync."""
        return report(run=number, mode="sync" if number > 100 else "refresh")

    async def documents_of_run(
        self, number: int, *, outcome: DocumentOutcome | None = None, limit: int
    ) -> list[SyncedDocument]:
        """One that was put and is stuck by now."""
        self._asked("documents_of_run", number, outcome, limit)
        return [
            SyncedDocument(
                id=3,
                page_id=None,
                sink="team",
                url=URL,
                outcome=DocumentOutcome.UPLOADED,
                state=PageStatus.ACTIVE,
                remote_name="Retries",
                at=NOW,
                state_now=PageStatus.READY_FOR_INDEXING,
            )
        ]

    async def changes(
        self,
        label: str | None = None,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        limit: int = 50,
    ) -> list[ChangeView]:
        """The scripted changes."""
        self._asked("changes", label, run, url, kind, limit)
        return self.changes_

    async def why(self, url: str, *, within: str | None = None) -> Why:
        """A 304 by ETag."""
        self._asked("why", url, within)
        return Why(
            url=URL,
            source="harbor",
            version="2",
            status=PageStatus.ACTIVE,
            summary='304 by ETag "v1": the content is as it was.',
            page=page(),
            latest=attempt(),
            next_look=self.next_look,
            linked_from=tuple(f"https://docs.example.org/{number}/" for number in range(8)),
            attempts=4,
        )

    async def status(self) -> StoreStatus:
        """A store with a run that waits."""
        self._asked("status")
        return StoreStatus(
            store="sqlite:///kb.db",
            sources=1,
            pages=1234,
            doubtful=3,
            chunks=8000,
            attempts=5000,
            pending=12,
            in_flight=0,
            oldest_pending=minutes(3),
            runs=(report(state="needs_confirmation", held=120),),
            workers=(
                WorkerView(
                    host="anvil", pid=4711, since=minutes(90), heartbeat_at=minutes(0), runs=(7,), held=24
                ),
            ),
            hosts=(HostQueue(domain="docs.example.org", waiting=1200, held=24, oldest=minutes(2)),),
            pages_per_second=12.5,
            size_bytes=12_345_678,
        )

    async def preview(
        self, target: str, settings: Mapping[str, object] | None = None, *, here: bool = False
    ) -> Preview:
        """A site with two links, or a folder with twelve files."""
        self._asked("preview", target, here)
        if "://" not in target:
            return Preview(
                kind="folder",
                url=target,
                name="notes",
                known=None,
                plan=None,
                rules=Rules(root=target),
                belong=tuple(f"{target}/{number}.md" for number in range(12)),
                listed=12,
                dropped={"too large": 3},
            )
        return Preview(
            kind="web",
            url=target,
            name="harbor",
            known=None,
            plan=None,
            rules=Rules(root=target),
            title="Harbor",
            belong=(f"{target}a",),
            left_out=(("https://elsewhere.example/", "on another host"),),
        )

    async def plan(self, label: str) -> Plan:
        """A refresh of 1,000 pages."""
        self._asked("plan", label)
        if "/" in label:
            raise UsageError(f"there is no source {label}")
        return Plan(
            source="harbor",
            version="2",
            mode="refresh",
            known=1000,
            conditional=990,
            unconditional=10,
            first_looks=5,
            not_looked_at=2,
            last_run_bytes=120_000,
            last_full_bytes=45_000_000,
            estimated_seconds=12.4,
            root="https://docs.example.org/",
            notes=("robots.txt asks for a pause of 1 s",),
            due=700,
            budget=self.budget,
        )

    async def remove(self, label: str) -> int:
        """1,234 pages went."""
        self._asked("remove", label)
        return 1234

    async def confirm(self, run: int) -> RunReport:
        """The first report."""
        self._asked("confirm", run)
        return self.reports[0]

    async def doctor(self) -> list[Finding]:
        """The scripted findings."""
        self._asked("doctor")
        return self.findings

    def stop(self) -> None:
        """Counts, and tells who waits."""
        self.stopped += 1
        self.when_stopped()

    async def close(self) -> None:
        """Notes that it was closed."""
        self.closed = True
