"""What pages say: numbers, times and receipts as templates write them."""

from dataclasses import fields
from datetime import UTC, datetime

from markupsafe import Markup

from afresh.model.charts import Receipt
from afresh.model.records import RunState
from afresh.model.reports import RunReport
from afresh.present.wording import ago, count, due, duration, percent, size
from afresh.server.web.passage import passage
from afresh.server.web.rendered import safe_address
from afresh.sync.reports import DocumentCounts

STATES = {
    RunState.QUEUED: "waits for a worker",
    RunState.RUNNING: "running",
    RunState.COMPLETED: "completed",
    RunState.PARTIAL: "partly done",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "stopped early",
    RunState.NEEDS_CONFIRMATION: "needs your word",
}
TONES = {  # how a state is coloured
    "completed": "good",
    "active": "good",
    "ready_for_indexing": "good",
    "new": "good",
    "uploaded": "good",
    "replaced": "good",
    "adopted": "good",
    "verified": "good",
    "waiting": "info",
    "stuck": "warn",
    "running": "info",
    "queued": "info",
    "processing": "info",
    "moved": "info",
    "redirect": "info",
    "partial": "warn",
    "cancelled": "warn",
    "needs_confirmation": "warn",
    "changed": "warn",
    "failed": "bad",
    "error": "bad",
    "deleted": "bad",
    "success": "good",
    "not_modified": "good",
    "gone": "bad",
    "timeout": "bad",
    "blocked_4xx": "bad",
    "blocked_5xx": "bad",
    "blocked_robots": "warn",
    "abandoned": "warn",
}


def moment(when: datetime | None, now: datetime, never: str = "never", *, ahead: bool = False) -> Markup:
    """A time as people say it, with the exact one on hover."""
    if when is None:
        return Markup('<span class="soft">{}</span>').format(never)
    exact = when.astimezone(UTC)
    said = due(when, now) if ahead else ago(when, now)
    iso, shown = exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M:%S} UTC"
    return Markup(f'<time datetime="{iso}" title="{shown}">{said}</time>')  # noqa: S704 - made of times


def receipt(run: RunReport) -> str:
    """`…, 1,087 skipped; saved 93 % of the downloads and 12 embeddings of changed pages`."""
    reused = f"{count(run.chunks_reused, 'embedding')} of changed pages" if run.chunks_reused else None
    return _told(run, None, reused)


def saved(run: RunReport, found: Receipt) -> str:
    """`1,169 checked, 82 processed, 1,087 skipped; saved 93 % of the bytes and 4,790 embeddings`."""
    spared = count(found.embeddings_saved, "embedding") if found.embeddings_saved else None
    return _told(run, found.bytes_saved_percent, spared)


def _synced(done: DocumentCounts) -> str:
    """`3 uploaded, 1 stuck`: what a sync did."""
    parts = [f"{count(number)} {each.name}" for each in fields(done) if (number := getattr(done, each.name))]
    return ", ".join(parts) or "nothing was to be done"


def _told(run: RunReport, bytes_percent: int | None, embeddings: str | None) -> str:
    """What a run did and saved; where the bytes are not known, the share of pages that were not sent."""
    if run.documents is not None:
        return _synced(run.documents)
    if not run.checked:
        return "nothing was checked"
    skipped = run.not_modified + run.unchanged
    processed = run.new + run.changed
    parts = [f"{count(run.checked)} checked", f"{count(processed)} processed", f"{count(skipped)} skipped"]
    parts += [f"{count(run.deleted)} deleted"] if run.deleted else []
    parts += [f"{count(run.failed)} failed"] if run.failed else []
    parts += [f"{count(run.held)} to be deleted if you say so"] if run.held else []
    spared = []
    if bytes_percent:
        spared.append(f"{bytes_percent} % of the bytes")
    elif share := percent(run.not_modified, skipped + processed + run.doubtful + run.failed):
        spared.append(f"{share} % of the downloads")
    if embeddings:
        spared.append(embeddings)
    line = ", ".join(parts)
    if not run.known:  # a first crawl has nothing to save
        return line
    return f"{line}; saved {' and '.join(spared)}" if spared else line


def state_of(state: str | None) -> str:
    """The state of a run in words."""
    return next((words for known, words in STATES.items() if known == state), state or "never read")


def run_state(run: RunReport) -> str:
    """The state of a run in words; one whose worker died was not stopped by anybody."""
    return "interrupted" if run.interrupted else state_of(run.state)


def tone(state: object) -> str:
    """How a state is coloured."""
    return TONES.get(str(state), "plain")


def plain(text: object) -> str:
    """`not_modified` as `not modified`."""
    return str(text).replace("_", " ")


FILTERS = {
    "address": safe_address,
    "count": count,
    "duration": duration,
    "passage": passage,
    "plain": plain,
    "receipt": receipt,
    "saved": saved,
    "size": size,
    "state_of": state_of,
    "run_state": run_state,
    "tone": tone,
}
