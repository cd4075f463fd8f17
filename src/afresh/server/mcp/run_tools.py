"""The tools around jobs, which are runs: what is done, started, cancelled; and removing."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from afresh.errors import UsageError
from afresh.model.reports import RunReport, SourceView
from afresh.server.mcp.answers import BOTH, Job, Jobs, Removed, Told, answered, noted
from afresh.server.mcp.background_worker import Hands
from afresh.server.mcp.cursors import make_cursor, read_cursor
from afresh.server.mcp.find_tools import READS, Cursor, Name, label_of
from afresh.server.mcp.framing import how_many, one_line
from afresh.server.mcp.request_context import Reach
from afresh.server.mcp.trouble import told
from afresh.text.wording import count

POLL = 0.25  # seconds between looks at a job that is waited for
LISTED = 20
NOTES = 10
OPEN = ("queued", "running")
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

Number = Annotated[int, Field(ge=1, le=2**62, description="The number of the job")]
Exact = Annotated[str | None, Field(max_length=100, description="Its exact version, if it has one")]
Wait = Annotated[
    float, Field(ge=0, le=600, description="Seconds to stay until the job ends, with progress if asked for")
]
Status = Literal["queued", "running", "completed", "partial", "failed", "cancelled", "needs_confirmation"]


def add_job_tools(server: MCPServer[Any], kb: Reach, hands: Hands | None) -> None:
    """Make the tools known that tell of jobs."""

    @server.tool(annotations=READS)
    async def list_jobs(
        status: Annotated[Status | None, Field(description="Only jobs in this state")] = None,
        library: Annotated[str | None, Field(max_length=100, description="Only of this library")] = None,
        version: Exact = None,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, Jobs]:
        """List jobs, the runs that read and refresh libraries, newest first."""
        with told():
            question = ("jobs", status, library, version)
            before = read_cursor(cursor, *question)
            runs = await kb().runs.latest(label_of(library, version) if library else None)
        fitting = [
            run
            for run in runs
            if (not before or run.run < before) and (status is None or run.state == status)
        ]
        jobs = [job_of(run) for run in fitting[:LISTED]]
        shown = jobs[: how_many((job.model_dump_json() + line_of(job) for job in jobs), BOTH)]
        more = make_cursor(shown[-1].jobId, *question) if len(fitting) > len(shown) else None
        return answered(
            Jobs(jobs=shown, nextCursor=more), [line_of(job) for job in shown] or ["There are none."]
        )

    @server.tool(annotations=READS)
    async def get_job_info(
        jobId: Number, ctx: Context[Any, Any], wait: Wait = 0
    ) -> Annotated[CallToolResult, Job]:
        """Tell how far a job is, or wait until it ends."""
        with told():
            return _answered(await _awaited(kb, hands, jobId, wait, ctx))


def add_write_tools(server: MCPServer[Any], kb: Reach, hands: Hands | None) -> None:
    """Make the tools known that start, stop and delete."""

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
    ) -> Annotated[CallToolResult, Job]:
        """Index a site or a repository, or look again at one that is indexed; answers with the job."""
        with told():
            run = await kb().runs.queue_crawl(
                url,
                name=library,
                version=version,
                rules=_given(max_pages=maxPages, max_depth=maxDepth, scope=scope),
                on_the_web=True,
                keep=False,
                again=again,
            )
            return await _started(kb, hands, run, wait, ctx)

    @server.tool(annotations=WRITES)
    async def refresh_version(
        library: Name, ctx: Context[Any, Any], version: Exact = None, wait: Wait = 0
    ) -> Annotated[CallToolResult, Job]:
        """Look again at a library and index only what changed; answers with the job."""
        with told():
            runs = await kb().runs.queue_refresh([label_of(library, version)])
            if not runs:
                raise UsageError(f"every source of {library} is being looked at already: see list_jobs")
            started = await _started(kb, hands, runs[0], wait, ctx, runs[1:])
            return noted(started, await kb().sources.version_note(label_of(library, version)))

    @server.tool(annotations=WRITES)
    async def cancel_job(jobId: Number) -> Annotated[CallToolResult, Job]:
        """Stop a job; what it has read stays, and the next refresh goes on with it."""
        with told():
            return _answered(await kb().runs.cancel(jobId))

    @server.tool(annotations=DELETES)
    async def remove_docs(library: Name, version: Exact = None) -> Annotated[CallToolResult, Removed]:
        """Delete a library, or one version of it, from the index. This cannot be undone."""
        with told():
            view = await kb().sources.view(label_of(library, version))
            return _removed(view, await kb().sources.remove(label_of(library, version)))


def _removed(view: SourceView, pages: int) -> CallToolResult:
    """What was removed, with its version."""
    gone = Removed(library=view.name, version=view.version, pages=pages)
    return answered(gone, [f"{label_of(view.name, view.version)} is removed, with {count(pages, 'page')}."])


def _given(**rules: object) -> dict[str, object]:
    """Only the rules that were named."""
    return {name: value for name, value in rules.items() if value is not None}


async def _started(
    kb: Reach,
    hands: Hands | None,
    run: RunReport,
    wait: float,
    ctx: Context[Any, Any],
    others: Sequence[RunReport] = (),
) -> CallToolResult:
    """The answer to who had a run queued; others that were queued beside it are named."""
    if hands is not None:
        hands.wake()
    now = await _awaited(kb, hands, run.run, wait, ctx)
    beside = tuple(f"job {each.run} looks at {label_of(each.source, each.version)}" for each in others)
    return _answered(replace(now, notes=(*beside, *now.notes)))


async def _awaited(
    kb: Reach, hands: Hands | None, job: int, wait: float, ctx: Context[Any, Any]
) -> RunReport:
    """A job, when it ends or when the time is up; progress is told to clients that ask for it."""
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


def job_of(run: RunReport) -> Told:
    """A run as a job."""
    return Told(
        jobId=run.run,
        library=run.source,
        version=run.version,
        mode=run.mode,
        status=run.state,
        checked=run.checked,
        new=run.new,
        changed=run.changed,
        not_modified=run.not_modified,
        deleted=run.deleted,
        failed=run.failed,
        seconds=run.seconds,
        documents=asdict(run.documents) if run.documents is not None else None,
        error=one_line(run.error, 1_000) if run.error else None,
        notes=[one_line(note) for note in run.notes[:NOTES]],
    )


def _answered(run: RunReport) -> CallToolResult:
    job = job_of(run)
    return answered(Job(**dict(job)), [line_of(job), *job.notes])


def line_of(job: Told) -> str:
    """`job 12 (refresh of react) is completed; 30 looked at, …`."""
    numbers = f"{job.checked} looked at, {job.new} new, {job.changed} changed, {job.failed} failed"
    if job.documents is not None:
        done = [f"{number} {name}" for name, number in job.documents.items() if number]
        numbers = f"documents: {', '.join(done) or 'nothing was to be done'}"
    why = f": {job.error}" if job.error else ""
    label = label_of(job.library, job.version)
    return f"job {job.jobId} ({job.mode} of {label}) is {job.status}{why}; {numbers}"
