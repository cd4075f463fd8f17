"""Format numbers, times and receipts for templates."""

from collections.abc import Callable
from datetime import UTC, datetime

from markupsafe import Markup

from afresh.dataclass import asdict
from afresh.model.charts import RunSavings
from afresh.model.reports import RunReport
from afresh.present.wording import FOUND_NOTHING, ago, count, due, duration, moved_part, percent, size
from afresh.server.web.rendered import passage, safe_address

STATES: dict[str | None, str] = {"partial": "partially completed", "needs_confirmation": "needs confirmation"}
_STATES_BY_TONE = {  # a tone sets the colour of a state
    "good": "completed active ready_for_indexing new uploaded replaced adopted verified success not_modified",
    "info": "waiting running queued processing moved redirect",
    "warn": "stuck partial cancelled needs_confirmation changed blocked_robots abandoned",
    "bad": "failed error deleted gone timeout blocked_4xx blocked_5xx",
}
TONES = {state: tone for tone, states in _STATES_BY_TONE.items() for state in states.split()}


def moment(when: datetime | None, now: datetime, never: str = "never", *, ahead: bool = False) -> Markup:
    """Return a relative time as HTML, with the exact time as title; with `ahead`, a past time becomes `due now`."""
    if when is None:
        return Markup('<span class="soft">{}</span>').format(never)
    exact = when.astimezone(UTC)
    relative = due(when, now) if ahead else ago(when, now)
    iso, title = exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M:%S} UTC"
    return Markup(f'<time datetime="{iso}" title="{title}">{relative}</time>')  # noqa: S704 - made of times


def receipt(run: RunReport, savings: RunSavings | None = None) -> str:
    """Return a line such as `1,169 checked: 82 processed, 1,087 skipped; saved 93 % of the downloads`.

    The numbers behind the colon add up to the first one. `savings` is ignored if it belongs to another run.
    """
    if run.documents is not None:  # `3 uploaded, 1 stuck`
        done = [f"{count(number)} {name}" for name, number in asdict(run.documents).items() if number]
        return ", ".join(done) or "no changes needed"
    if not run.checked:
        return "nothing was checked"
    if savings is not None and (savings.run is None or savings.run.run != run.run):
        savings = None
    skipped = run.not_modified + run.unchanged
    processed = run.new + run.changed
    parts = [f"{count(processed)} processed", f"{count(skipped)} skipped"]
    parts += [moved_part(run.moved_read)] if run.moved_read else []
    parts += [f"{count(run.redirected_or_gone)} redirected or gone"] if run.redirected_or_gone else []
    parts += [f"{count(run.refused + run.doubtful)} not read"] if run.refused + run.doubtful else []
    parts += [f"{count(run.failed)} failed"] if run.failed else []
    lines = [f"{count(run.checked)} checked: {', '.join(parts)}"]
    lines += [f"{count(run.deleted)} deleted"] if run.deleted else []
    lines += [f"{count(run.held, 'deletion')} awaiting confirmation"] if run.held else []
    saved = []
    if share := percent(run.not_modified, skipped + processed + run.moved_read + run.doubtful + run.failed):
        saved.append(f"{share} % of the downloads")
    if savings and savings.embeddings_saved:
        saved.append(count(savings.embeddings_saved, "embedding"))
    elif not savings and run.chunks_reused:
        saved.append(f"{count(run.chunks_reused, 'embedding')} of changed pages")
    if saved and run.known:  # a first crawl has nothing to save
        lines.append(f"saved {' and '.join(saved)}")
    return "; ".join(lines)


def state_of(state: str | None) -> str:
    return STATES.get(state) or state or "not crawled yet"


def run_state(run: RunReport) -> str:
    """Return the state of a run in words; a run whose worker died is interrupted."""
    if run.found_nothing:
        return FOUND_NOTHING
    return "interrupted" if run.interrupted else state_of(run.state)


def tone(state: object) -> str:
    return TONES.get(str(state), "plain")


def plain(text: object) -> str:
    return str(text).replace("_", " ")


_NAMED: tuple[Callable[..., object], ...] = (count, duration, passage, plain, receipt, run_state, size, state_of, tone)
FILTERS = {"address": safe_address, **{each.__name__: each for each in _NAMED}}
