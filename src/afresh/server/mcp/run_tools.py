"""MCP tools for jobs (a job is a run), and the worker of this process."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from afresh.dataclass import asdict, replace
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
    """Works on open runs after `wake`, until there are none left."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._wanted = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self.progress: dict[int, Progress] = {}  # run number: latest progress, of the runs that this process works on

    def wake(self) -> None:
        self._wanted = True
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work())

    async def wake_if_needed(self) -> None:
        with suppress(AfreshError):
            if await self._kb.runs.has_work():
                self.wake()

    async def close(self) -> None:
        """Stop the worker; a run that it has not finished stays open, and the next process resumes it."""
        self._closed = True
        if self._task is not None:
            self._kb.stop()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while self._wanted and not self._closed:
            self._wanted = False  # `wake` sets it again for runs that are queued later
            try:
                await self._kb.runs.work(once=True, listener=self._receive)
            except Exception:  # get_job_info reports the error: keep the session
                log.exception("working on open runs failed")
            self.progress.clear()

    def _receive(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progress[event.run] = event
        elif isinstance(event, Notice):
            log.info("%s", event.text)


POLL_SECONDS = 0.25  # between two queries while a client waits for a job
MAX_JOBS_LISTED = 20
MAX_NOTES = 10
OPEN = ("queued", "running")
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

Number = Annotated[int, Field(ge=1, le=2**62, description="The id of the job")]
Exact = Annotated[str | None, Field(max_length=100, description="Exact version of the library, if it has one")]
Wait = Annotated[float, Field(ge=0, le=600, description="Wait up to this many seconds for the job to finish")]
Status = Literal["queued", "running", "completed", "partial", "failed", "cancelled", "needs_confirmation"]


def add_job_tools(server: MCPServer[Any], kb: answers.KbProvider, worker: BackgroundWorker | None) -> None:
    @server.tool(annotations=READS)
    async def list_jobs(
        status: Annotated[Status | None, Field(description="Only jobs in this state")] = None,
        library: Annotated[str | None, Field(max_length=100, description="Only of this library")] = None,
        version: Exact = None,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, answers.Jobs]:
        """List jobs (runs that crawl or refresh a library), newest first."""
        with answers.tool_errors():
            question = ("jobs", status, library, version)
            before = answers.read_cursor(cursor, *question)
            sources = await kb().sources.ids(label_of(library, version)) if library else None
            runs = await kb().runs.records(sources, below=before or None)
        fitting = [run for run in runs if status is None or run.state == status]
        jobs = [job_of(run) for run in fitting[:MAX_JOBS_LISTED]]
        listed = answers.fitting(jobs, lambda job: job.model_dump_json() + line_of(job), answers.MAX_BOTH_BYTES)
        more = answers.make_cursor(listed[-1].jobId, *question) if len(fitting) > len(listed) else None
        lines = [line_of(job) for job in listed] or ["No jobs."]
        return answers.make_result(answers.Jobs(jobs=listed, nextCursor=more), lines)

    @server.tool(annotations=READS)
    async def get_job_info(
        jobId: Number, ctx: Context[Any, Any], wait: Wait = 0
    ) -> Annotated[CallToolResult, answers.Job]:
        """Get a job's progress, or wait until it finishes."""
        with answers.tool_errors():
            return _job_result(await _wait_for_job(kb, worker, jobId, wait, ctx))


def add_crawl_tools(server: MCPServer[Any], kb: answers.KbProvider, worker: BackgroundWorker | None) -> None:
    @server.tool(annotations=WRITES)
    async def scrape_docs(
        url: Annotated[
            str, Field(max_length=2_000, description="The start URL: https://… or git+https://…; no local files")
        ],
        ctx: Context[Any, Any],
        library: Annotated[
            str | None, Field(max_length=100, description="Name for the library; default: made from the URL")
        ] = None,
        version: Exact = None,
        maxPages: Annotated[int | None, Field(ge=1, le=1_000_000, description="Maximum number of pages")] = None,
        maxDepth: Annotated[
            int | None, Field(ge=0, le=1_000, description="Maximum distance from the start URL, in links")
        ] = None,
        scope: Annotated[
            Literal["subpages", "hostname", "domain"] | None, Field(description="Which linked pages to include")
        ] = None,
        again: Annotated[bool, Field(description="Add the URL even if another library has it")] = False,
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, answers.Job]:
        """Index a site or a repository, or refresh one that is indexed; returns the job."""
        rules = {"max_pages": maxPages, "max_depth": maxDepth, "scope": scope}
        with answers.tool_errors():
            run = await kb().runs.crawl(
                url,
                name=library,
                version=version,
                rules={key: value for key, value in rules.items() if value is not None},
                on_the_web=True,
                keep=False,
                again=again,
                queue=True,
            )
            return await _start_job(kb, worker, run, wait, ctx)

    @server.tool(annotations=WRITES)
    async def refresh_version(
        library: Name, ctx: Context[Any, Any], version: Exact = None, wait: Wait = 0
    ) -> Annotated[CallToolResult, answers.Job]:
        """Refresh a library and index only what changed; returns the job."""
        with answers.tool_errors():
            if not (runs := await kb().runs.refresh([label_of(library, version)], queue=True)):
                raise UsageError(f"every source of {library} is already being refreshed; see list_jobs")
            started = await _start_job(kb, worker, runs[0], wait, ctx, runs[1:])
            return answers.add_note(started, await kb().sources.version_note(label_of(library, version)))


def add_ending_tools(server: MCPServer[Any], kb: answers.KbProvider) -> None:
    @server.tool(annotations=WRITES)
    async def cancel_job(jobId: Number) -> Annotated[CallToolResult, answers.Job]:
        """Cancel a job; its results are kept, and the next refresh continues from there."""
        with answers.tool_errors():
            return _job_result(await kb().runs.cancel(jobId))

    @server.tool(annotations=DELETES)
    async def remove_docs(library: Name, version: Exact = None) -> Annotated[CallToolResult, answers.Removed]:
        """Delete a library, or one version of it, from the index. This cannot be undone."""
        with answers.tool_errors():
            view = await kb().sources.view(label_of(library, version))
            pages = await kb().sources.remove(label_of(library, version))
        gone = answers.Removed(library=view.name, version=view.version, pages=pages)
        line = f"{label_of(view.name, view.version)} was deleted with {count(pages, 'page')}."
        return answers.make_result(gone, [line])


async def _start_job(
    kb: answers.KbProvider,
    worker: BackgroundWorker | None,
    run: RunReport,
    wait: float,
    ctx: Context[Any, Any],
    others: Sequence[RunReport] = (),
) -> CallToolResult:
    """Wake the worker, if any; return the run when it ends or after `wait` seconds, and name the `others` in notes."""
    if worker is not None:
        worker.wake()
    now = await _wait_for_job(kb, worker, run.run, wait, ctx)
    beside = tuple(f"job {each.run} refreshes {label_of(each.source, each.version)}" for each in others)
    return _job_result(replace(now, notes=(*beside, *now.notes)))


async def _wait_for_job(
    kb: answers.KbProvider, worker: BackgroundWorker | None, job: int, wait: float, ctx: Context[Any, Any]
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
            progress = worker.progress.get(job) if worker else None
            total = max(last, progress.done + progress.queued) if progress else None
            await ctx.report_progress(last, total, f"{run.source}: {count(last, 'page')} checked")
        if await kb().runs.stops_within(min(POLL_SECONDS, max(0.0, until - loop.time()))):
            return run


def job_of(run: RunReport) -> answers.JobSummary:
    return answers.copied(
        answers.JobSummary,
        run,
        jobId=run.run,
        library=run.source,
        status=run.state,
        documents=asdict(run.documents) if run.documents is not None else None,
        error=answers.one_line(run.error, 1_000) if run.error else None,
        notes=[answers.one_line(note) for note in run.notes[:MAX_NOTES]],
    )


def _job_result(run: RunReport) -> CallToolResult:
    job = job_of(run)
    return answers.make_result(answers.Job(**dict(job)), [line_of(job), *job.notes])


def line_of(job: answers.JobSummary) -> str:
    """Return a line such as `job 12 (refresh of react) is completed; 30 checked, …`."""
    numbers = f"{job.checked} checked, {job.new} new, {job.changed} changed, {job.failed} failed"
    if job.documents is not None:
        done = [f"{number} {name}" for name, number in job.documents.items() if number]
        numbers = f"documents: {', '.join(done) or 'no changes needed'}"
    why = f": {job.error}" if job.error else ""
    return f"job {job.jobId} ({job.mode} of {label_of(job.library, job.version)}) is {job.status}{why}; {numbers}"
