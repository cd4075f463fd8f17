"""What pages say: numbers, times and receipts as templates write them."""

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

from afresh.core.model import RunState
from afresh.core.views import RunReport
from afresh.faces.cli.wording import ago, count, due, duration, percent, size

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
}


_FORMS = (
    (re.compile(r"(?m)^[ \t]*```.*$"), ""),
    (re.compile(r"(?m)^#{1,6} "), ""),
    (re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)"), r"\1"),
    (re.compile(r"\*\*|`"), ""),
    (re.compile(r"\n\s*\n"), "\n"),
)


def moment(when: datetime | None, now: datetime, never: str = "never", *, ahead: bool = False) -> Markup:
    """A time as people say it, with the exact one on hover."""
    if when is None:
        return Markup('<span class="soft">{}</span>').format(never)
    exact = when.astimezone(UTC)
    said = due(when, now) if ahead else ago(when, now)
    iso, shown = exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M:%S} UTC"
    return Markup(f'<time datetime="{iso}" title="{shown}">{said}</time>')  # noqa: S704 - made of times


def receipt(run: RunReport) -> str:
    """`1,169 checked, 82 processed, 1,087 skipped; saved 93 % of the downloads and 4,790 embeddings`."""
    if not run.checked:
        return "nothing was checked"
    skipped = run.not_modified + run.unchanged
    processed = run.new + run.changed
    parts = [f"{count(run.checked)} checked", f"{count(processed)} processed", f"{count(skipped)} skipped"]
    parts += [f"{count(run.deleted)} deleted"] if run.deleted else []
    parts += [f"{count(run.failed)} failed"] if run.failed else []
    parts += [f"{count(run.held)} to be deleted if you say so"] if run.held else []
    saved = []
    if share := percent(run.not_modified, skipped + processed):
        saved.append(f"{share} % of the downloads")
    if run.chunks_reused:
        saved.append(count(run.chunks_reused, "embedding"))
    line = ", ".join(parts)
    return f"{line}; saved {' and '.join(saved)}" if saved else line


def state_of(state: str | None) -> str:
    """The state of a run in words."""
    return next((words for known, words in STATES.items() if known == state), state or "never read")


def tone(state: object) -> str:
    """How a state is coloured."""
    return TONES.get(str(state), "plain")


def plain(text: object) -> str:
    """`not_modified` as `not modified`."""
    return str(text).replace("_", " ")


def _unmarked(text: str) -> str:
    """A passage without what only a renderer reads."""
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    return text.strip()


def marked(text: str) -> Markup:
    """A passage with what was looked for marked."""
    return Markup(  # noqa: S704 - escaped just here
        str(escape(_unmarked(text))).replace("\x02", "<mark>").replace("\x03", "</mark>")
    )


FILTERS = {
    "count": count,
    "duration": duration,
    "marked": marked,
    "plain": plain,
    "receipt": receipt,
    "size": size,
    "state_of": state_of,
    "tone": tone,
}
