"""MCP tools for jobs, which are runs, and the worker of this process."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from afresh.errors import AfreshError, UsageError
from afresh.events import Event, Notice, Progress
from afresh.kb import KnowledgeBase
from afresh.model.labels import label_of
from afresh.model.reports import RunReport
from afresh.server.mcp import answers
from afresh.server.mcp.find_tools import READS, Cursor, Name
from afresh.text.quantities import count

log = logging.getLogger(__name__)


class BackgroundWorker:
    """Works on open runs when it is woken, and rests when there are none."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._wanted = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self.progress: dict[int, Progress] = {}  # of the runs that this process works on

    def wake(self) -> None:
        self._wanted = True
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work())

    async def wake_if_needed(self) -> None:
        """Resume runs that an earlier process left open."""
        with suppress(AfreshError):
            if await self._kb.runs.has_work():
                self.wake()

    async def close(self) -> None:
        """Stop soon; an unfinished run stays open, and the next process resumes it."""
        self._closed = True
        if self._task is not None:
            self._kb.stop()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while self._wanted and not self._closed:
            self._wanted = False  # later queued runs set it again
            try:
                await self._kb.runs.work(once=True, listener=self._hear)
            except Exception:  # get_job_info reports the error: keep the session
                log.exception("open runs cannot be worked on")
            self.progress.clear()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progress[event.run] = event
        elif isinstance(event, Notice):
            log.info("%s", event.text)


POLL = 0.25  # seconds between queries for a job that is waited for
LISTED = 20
NOTES = 10
SAME = ("mode", "checked", "new", "changed", "not_modified", "deleted", "failed", "seconds")
OPEN = ("queued", "running")
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

Number = Annotated[int, Field(ge=1, le=2**62, description="The number of the job")]
Exact = Annotated[str | None, Field(max_length=100, description="Its exact version, if it has one")]
Wait = Annotated[
    float, Field(ge=0, le=600, description="Seconds to stay until the job ends, with progress if asked for")
]
Status = Literal["queued", "running", "completed", "partial", "failed", "cancelled", "needs_confirmation"]


def add_job_tools(server: MCPServer[Any], kb: answers.Reach, hands: BackgroundWorker | None) -> None:
    @server.tool(annotations=READS)
    async def list_jobs(
        status: Annotated[Status | None, Field(description="Only jobs in this state")] = None,
        library: Annotated[str | None, Field(max_length=100, description="Only of this library")] = None,
        version: Exact = None,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, answers.Jobs]:
        """List jobs, the runs that read and refresh libraries, newest first."""
        with answers.told():
            question = ("jobs", status, library, version)
            before = answers.read_cursor(cursor, *question)
            runs = await kb().runs.latest(label_of(library, version) if library else None)
        fitting = [
            run
            for run in runs
            if (not before or run.run < before) and (status is None or run.state == status)
        ]
        jobs = [job_of(run) for run in fitting[:LISTED]]
        shown = answers.fitting(jobs, lambda job: job.model_dump_json() + line_of(job), answers.BOTH)
        more = answers.make_cursor(shown[-1].jobId, *question) if len(fitting) > len(shown) else None
        return answers.answered(
            answers.Jobs(jobs=shown, nextCursor=more), [line_of(job) for job in shown] or ["There are none."]
        )

    @server.tool(annotations=READS)
    async def get_job_info(
        jobId: Number, ctx: Context[Any, Any], wait: Wait = 0
    ) -> Annotated[CallToolResult, answers.Job]:
        """Tell how far a job is, or wait until it ends."""
        with answers.told():
            return _answered(await _awaited(kb, hands, jobId, wait, ctx))


def add_write_tools(server: MCPServer[Any], kb: answers.Reach, hands: BackgroundWorker | None) -> None:
    @server.tool(annotations=WRITES)
    async def scrape_docs(
        url: Annotated[
            str, Field(max_length=2_000, description="Where to begin: https://…, or git+https://…; no files")
        ],
        ctx: Context[Any, Any],
        library: Annotated[
            str | None, Field(max_length=100, description="Its name from now on; else made from the address")
        ] = None,
        version: Exact = None,
        maxPages: Annotated[int | None, Field(ge=1, le=1_000_000, description="Pages at most")] = None,
        maxDepth: Annotated[int | None, Field(ge=0, le=1_000, description="Links to follow at most")] = None,
        scope: Annotated[
            Literal["subpages", "hostname", "domain"] | None, Field(description="Which links belong to it")
        ] = None,
        again: Annotated[bool, Field(description="Add a URL that another library has already")] = False,
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, answers.Job]:
        """Index a site or a repository, or look again at one that is indexed; answers with the job."""
        rules = {"max_pages": maxPages, "max_depth": maxDepth, "scope": scope}
        with answers.told():
            run = await kb().runs.queue_crawl(
                url,
                name=library,
                version=version,
                rules={key: value for key, value in rules.items() if value is not None},
                on_the_web=True,
                keep=False,
                again=again,
            )
            return await _started(kb, hands, run, wait, ctx)

    @server.tool(annotations=WRITES)
    async def refresh_version(
        library: Name, ctx: Context[Any, Any], version: Exact = None, wait: Wait = 0
    ) -> Annotated[CallToolResult, answers.Job]:
        """Look again at a library and index only what changed; answers with the job."""
        with answers.told():
            runs = await kb().runs.queue_refresh([label_of(library, version)])
            if not runs:
                raise UsageError(f"every source of {library} is being looked at already: see list_jobs")
            started = await _started(kb, hands, runs[0], wait, ctx, runs[1:])
            return answers.noted(started, await kb().sources.version_note(label_of(library, version)))

    @server.tool(annotations=WRITES)
    async def cancel_job(jobId: Number) -> Annotated[CallToolResult, answers.Job]:
        """Stop a job; what it has read stays, and the next refresh goes on with it."""
        with answers.told():
            return _answered(await kb().runs.cancel(jobId))

    @server.tool(annotations=DELETES)
    async def remove_docs(library: Name, version: Exact = None) -> Annotated[CallToolResult, answers.Removed]:
        """Delete a library, or one version of it, from the index. This cannot be undone."""
        with answers.told():
            view = await kb().sources.view(label_of(library, version))
            pages = await kb().sources.remove(label_of(library, version))
        gone = answers.Removed(library=view.name, version=view.version, pages=pages)
        line = f"{label_of(view.name, view.version)} is removed, with {count(pages, 'page')}."
        return answers.answered(gone, [line])


async def _started(
    kb: answers.Reach,
    hands: BackgroundWorker | None,
    run: RunReport,
    wait: float,
    ctx: Context[Any, Any],
    others: Sequence[RunReport] = (),
) -> CallToolResult:
    """Return the result for a queued run; other queued runs are mentioned in notes."""
    if hands is not None:
        hands.wake()
    now = await _awaited(kb, hands, run.run, wait, ctx)
    beside = tuple(f"job {each.run} looks at {label_of(each.source, each.version)}" for each in others)
    return _answered(replace(now, notes=(*beside, *now.notes)))


async def _awaited(
    kb: answers.Reach, hands: BackgroundWorker | None, job: int, wait: float, ctx: Context[Any, Any]
) -> RunReport:
    """Return a job when it ends or the time is up; report progress to clients that request it."""
    loop = asyncio.get_running_loop()
    until, last = loop.time() + wait, -1
    while True:
        run = await kb().runs.get(job)
        if run.state not in OPEN or loop.time() >= until:
            return run
        if run.checked > last:
            last = run.checked
            progress = hands.progress.get(job) if hands else None
            total = max(last, progress.done + progress.queued) if progress else None
            await ctx.report_progress(last, total, f"{run.source}: {count(last, 'page')} looked at")
        if await kb().runs.stops_within(min(POLL, max(0.0, until - loop.time()))):
            return run


def job_of(run: RunReport) -> answers.Told:
    return answers.Told(
        jobId=run.run,
        library=run.source,
        version=run.version,
        status=run.state,
        **{name: getattr(run, name) for name in SAME},
        documents=asdict(run.documents) if run.documents is not None else None,
        error=answers.one_line(run.error, 1_000) if run.error else None,
        notes=[answers.one_line(note) for note in run.notes[:NOTES]],
    )


def _answered(run: RunReport) -> CallToolResult:
    job = job_of(run)
    return answers.answered(answers.Job(**dict(job)), [line_of(job), *job.notes])


def line_of(job: answers.Told) -> str:
    """Return a line such as `job 12 (refresh of react) is completed; 30 looked at, …`."""
    numbers = f"{job.checked} looked at, {job.new} new, {job.changed} changed, {job.failed} failed"
    if job.documents is not None:
        done = [f"{number} {name}" for name, number in job.documents.items() if number]
        numbers = f"documents: {', '.join(done) or 'nothing was to be done'}"
    why = f": {job.error}" if job.error else ""
    label = label_of(job.library, job.version)
    return f"job {job.jobId} ({job.mode} of {label}) is {job.status}{why}; {numbers}"
