"""Format numbers, times and receipts for templates."""

from dataclasses import asdict
from datetime import UTC, datetime

from markupsafe import Markup

from afresh.model.charts import RunSavings
from afresh.model.records import RunState
from afresh.model.reports import RunReport
from afresh.present.wording import ago, count, due, duration, percent, size
from afresh.server.web.rendered import passage, safe_address

STATES = {
    RunState.QUEUED: "waits for a worker",
    RunState.RUNNING: "running",
    RunState.COMPLETED: "completed",
    RunState.PARTIAL: "partly done",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "stopped early",
    RunState.NEEDS_CONFIRMATION: "needs your word",
}
_STATES_BY_TONE = {  # tones decide the colours of states
    "good": "completed active ready_for_indexing new uploaded replaced adopted verified success not_modified",
    "info": "waiting running queued processing moved redirect",
    "warn": "stuck partial cancelled needs_confirmation changed blocked_robots abandoned",
    "bad": "failed error deleted gone timeout blocked_4xx blocked_5xx",
}
TONES = {state: tone for tone, states in _STATES_BY_TONE.items() for state in states.split()}


def moment(when: datetime | None, now: datetime, never: str = "never", *, ahead: bool = False) -> Markup:
    """Return a relative time as HTML, with the exact time as title."""
    if when is None:
        return Markup('<span class="soft">{}</span>').format(never)
    exact = when.astimezone(UTC)
    said = due(when, now) if ahead else ago(when, now)
    iso, shown = exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M:%S} UTC"
    return Markup(f'<time datetime="{iso}" title="{shown}">{said}</time>')  # noqa: S704 - made of times


def receipt(run: RunReport) -> str:
    """Return a line such as `…, 1,087 skipped; saved 93 % of the downloads and 12 embeddings`."""
    reused = f"{count(run.chunks_reused, 'embedding')} of changed pages" if run.chunks_reused else None
    return _told(run, None, reused)


def saved(run: RunReport, found: RunSavings) -> str:
    """Return a line such as `1,169 checked, 82 processed, 1,087 skipped; saved 93 % of the bytes`."""
    spared = count(found.embeddings_saved, "embedding") if found.embeddings_saved else None
    return _told(run, found.bytes_saved_percent, spared)


def _told(run: RunReport, bytes_percent: int | None, embeddings: str | None) -> str:
    """Return what a run did and saved; without known bytes, the share of downloads that were avoided."""
    if run.documents is not None:  # `3 uploaded, 1 stuck`
        done = [f"{count(number)} {name}" for name, number in asdict(run.documents).items() if number]
        return ", ".join(done) or "nothing was to be done"
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
    return next((words for known, words in STATES.items() if known == state), state or "never read")


def run_state(run: RunReport) -> str:
    """Return the state of a run in words; a run whose worker died is interrupted."""
    return "interrupted" if run.interrupted else state_of(run.state)


def tone(state: object) -> str:
    return TONES.get(str(state), "plain")


def plain(text: object) -> str:
    """Return a text with spaces for underscores, such as `not modified`."""
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
