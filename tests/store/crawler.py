"""A crawler driven by hand: the test says what each request returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from afresh.crawl.decide import decide
from afresh.crawl.run_verdict import RunEnding, decide_missing, may_drop
from afresh.model.fetch import Chunk, Document, Gone, Link, Moved, ReadDocument, Seen, Validators
from afresh.model.records import (
    Attempt,
    Claim,
    ContentAction,
    Decision,
    LinkAction,
    ListedUrl,
    Page,
    Policy,
    Run,
    RunLimits,
    RunMode,
    RunState,
    Source,
    Visit,
    VisitContent,
    WorkerRecord,
)
from afresh.model.reports import ChangeView
from afresh.search.stemming import analysed, search_config
from afresh.store.store import Store
from afresh.testing import FrozenClock
from afresh.text.normalize import content_hash, links_hash, text_hash, with_search_terms
from afresh.text.plain import without_targets

ROOT = "https://docs.example.org/"
LEASE = 60.0
POLICY = Policy(recipe="r1", retries=0)
LIMITS = RunLimits(max_pages=1000, max_depth=20)


def at(path: str, root: str = ROOT) -> str:
    """The address behind a path; an address stays as it is."""
    return path if "://" in path else root + path


def read(
    text: str,
    *links: str,
    title: str = "A page",
    etag: str | None = None,
    language: str | None = None,
    nofollow: Sequence[str] = (),
    follow: bool = True,
) -> ReadDocument:
    """A page that answered with some paragraphs and links to these paths."""
    found = tuple(Link(at(path), f"to {path or 'the root'}", path not in nofollow) for path in links)
    document = Document(
        title=title,
        markdown=text,
        links=found,
        language=language,
        content_hash=content_hash(text),
        links_hash=links_hash(found),
        follow=follow,
    )
    return ReadDocument(document=document, validators=Validators(etag=etag), media_type="text/html")


def chunks_of(document: Document) -> tuple[Chunk, ...]:
    """A chunk per paragraph."""
    parts = document.markdown.split("\n\n")
    chunks = [
        Chunk(content=part, path=(document.title,), level=1, text_hash=text_hash(without_targets(part)))
        for part in parts
    ]
    config = search_config(document.language)
    title = analysed(document.title, config)
    return tuple(with_search_terms(chunk, title, config) for chunk in chunks)


@dataclass(slots=True)
class ManualCrawler:
    """One source in a store, and the run and worker that look at it."""

    store: Store
    clock: FrozenClock
    source: Source
    policy: Policy = POLICY
    limits: RunLimits = LIMITS
    worker: str = "w1"
    keep_body: bool = True
    current: Run | None = field(default=None)

    @classmethod
    async def at(
        cls, store: Store, clock: FrozenClock, name: str = "docs", version: str | None = None
    ) -> "ManualCrawler":
        """Return a crawler for a source of this name."""
        source = await store.sources.add(
            name=name, version=version, kind="web", url=ROOT, rules={}, policy={}, now=clock()
        )
        return cls(store, clock, source)

    def beside(self, store: Store, worker: str) -> "ManualCrawler":
        """Another worker on the same run, perhaps in another process."""
        return replace(self, store=store, worker=worker)

    @property
    def run(self) -> Run:
        """The run under way."""
        assert self.current is not None, "begin first"
        return self.current

    # ---- a run by its steps

    async def join(self, pid: int = 1) -> None:
        """Make the worker known."""
        worker = WorkerRecord(name=self.worker, host="here", pid=pid, heartbeat_at=self.clock())
        await self.store.workers.join(worker)

    async def beat(self, pid: int = 1) -> None:
        """Let the worker's heart beat."""
        worker = WorkerRecord(name=self.worker, host="here", pid=pid, heartbeat_at=self.clock())
        await self.store.workers.beat(worker)

    async def begin(self, mode: RunMode = RunMode.CRAWL, *, full: bool = False) -> bool:
        """Start or go on with a run; whether it goes on."""
        self.current, resumed = await self.store.runs.start(
            self.source.id, mode, full=full, worker=self.worker, now=self.clock()
        )
        return resumed

    async def enqueue(self, *paths: str, depth: int = 0) -> int:
        """Queue paths as the source's own listing would."""
        listed = [ListedUrl(at(path), depth) for path in paths]
        return await self.store.queue.enqueue(self.run, listed, self.limits, self.clock())

    async def claim(self, limit: int = 1000, run: Run | None = None) -> list[Claim]:
        """Take work."""
        wanted = (run or self.run).id
        return list(await self.store.queue.claim(wanted, self.worker, self.clock(), limit=limit))

    def visit(self, claim: Claim, seen: Seen) -> Visit:
        """The visit that the engine would hand in for what was seen."""
        decision = decide(claim.page, seen, self.policy, self.clock())
        return Visit(claim=claim, decision=decision, content=_content(decision, seen))

    async def commit(self, *visits: Visit, keep_body: bool | None = None) -> list[str]:
        """Hand in visits; the addresses of those that were taken."""
        written = await self.store.visits.commit(
            self.run,
            visits,
            self.worker,
            self.clock(),
            limits=self.limits,
            keep_body=self.keep_body if keep_body is None else keep_body,
        )
        return [visit.claim.page.url for visit in written]

    async def look(self, site: Mapping[str, Seen], *, batch: int = 1000) -> list[str]:
        """Look at everything that is due, until nothing is; what is not in the site is gone."""
        answers = {at(path): seen for path, seen in site.items()}
        seen: list[str] = []
        while claims := await self.claim(batch):
            visits = [self.visit(claim, answers.get(claim.page.url, Gone())) for claim in claims]
            seen += await self.commit(*visits)
        return seen

    async def missing(self) -> list[Page]:
        """The pages that no way leads to, counted for this run."""
        unreached = await self.store.pages.unreached(self.source.id, ROOT, 20)
        return [decide_missing(page, self.run.id, self.policy) for page in unreached]

    async def sweep(self) -> Run:
        """End a complete run as the engine does, without the brake."""
        missing = await self.missing()
        dropped = [
            page
            for page, target in await self.store.pages.doomed(self.source.id, missing)
            if may_drop(page, target, self.run.id)
        ]
        return await self.finish(missing=missing, dropped=dropped)

    async def finish(
        self,
        state: RunState = RunState.COMPLETED,
        *,
        missing: Sequence[Page] | None = None,
        dropped: Sequence[Page] = (),
        error: str | None = None,
    ) -> Run:
        """Close the run."""
        run = await self.reload()
        ending = RunEnding(state=state, counts=run.counts, error=error, missing=missing, dropped=dropped)
        return await self.store.runs.finish(run, ending, self.clock())

    async def crawl(self, site: Mapping[str, Seen], mode: RunMode = RunMode.CRAWL) -> list[str]:
        """A whole run over the site as it is now; the addresses in the order they were looked at."""
        self.clock.advance(60)
        await self.begin(mode)
        await self.enqueue("")
        await self.store.queue.enqueue_known(self.run, self.limits, self.clock())
        self.clock.advance(1)
        seen = await self.look(site)
        await self.sweep()
        return seen

    # ---- what is on record

    async def reload(self) -> Run:
        """The run as it is stored."""
        run = await self.store.runs.get(self.run.id)
        assert run is not None
        return run

    async def page(self, path: str) -> Page:
        """The page behind a path."""
        [(page, *_)] = await self.store.pages.find(at(path), self.source.id)
        return page

    async def attempts(self, path: str) -> list[Attempt]:
        """The history of a path, oldest first."""
        return list(reversed(await self.store.history.of_page((await self.page(path)).id)))

    async def changes(self, *, run: int | None = None, limit: int = 1000) -> list[ChangeView]:
        """What changed in any source, newest first."""
        return list(await self.store.history.changes(None, run=run, limit=limit))

    async def urls(self) -> list[str]:
        """The pages with content, sorted."""
        pages = await self.store.pages.of_source(self.source.id)
        return sorted(page.url for page in pages if page.content_hash is not None)


def _content(decision: Decision, seen: Seen) -> VisitContent:
    if isinstance(seen, Moved):
        return VisitContent(links=(Link(seen.to, ""),), children=frozenset(_own([seen.to])))
    if not isinstance(seen, ReadDocument):
        return VisitContent()
    document, content = seen.document, VisitContent()
    if decision.content is ContentAction.REPLACE:
        content = replace(
            content, document=document, chunks=chunks_of(replace(document, language=decision.page.language))
        )
    match decision.follow:
        case LinkAction.NEW:
            children = frozenset(_own([link.url for link in document.links]))
            return replace(content, links=document.links, children=children)
        case LinkAction.NONE:
            return replace(content, links=tuple(Link(link.url, link.text, False) for link in document.links))
        case LinkAction.STORED:
            return content


def _own(urls: Sequence[str]) -> list[str]:
    return [url for url in urls if url.startswith(ROOT)]
