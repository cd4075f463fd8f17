"""Draw the report of a run: what happened, what it saved, and what to do next."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from afresh.cli.tables import STATE_STYLES, states
from afresh.digest.records import FILES, LINKS
from afresh.model.records import RunMode, RunState
from afresh.model.reports import ReindexReport, RunReport
from afresh.present.wording import FOUND_NOTHING, clean, count, duration, label, moved_part, percent, size
from afresh.sync.reports import SyncReport

MEANINGS = (
    ("new", "green", "read for the first time"),
    ("changed", "yellow", "content replaced"),
    ("not_modified", "", "304 or unchanged file"),
    ("unchanged", "", "downloaded, same content"),
    ("moved", "cyan", "permanently redirected"),
    ("deleted", "red", "removed from the index"),
    ("missing", "", "no link leads to it any more; kept for now"),
    ("held", "yellow", "deletions awaiting confirmation"),
    ("refused", "magenta", "robots.txt, 401/403, private (network.allow), unreadable, or out of scope"),
    ("doubtful", "yellow", "looks like an error, login or empty page; any previous version kept"),
    ("failed", "bold red", "any previous version kept, retried later"),
)
OF_FIRST_CRAWL = {
    "doubtful": "looks like an error, login or empty page; not stored",
    "failed": "could not be read, retried later",
}
COUNTED = (
    *("checked", "new", "changed", "unchanged", "not_modified", "deleted", "missing", "moved", "failed"),
    *("refused", "doubtful", "flagged", "held", "bytes", "chunks_embedded", "chunks_reused"),
    *("summaries", "links_scored", "links_unscored", "links_saved", "link_calls", "link_calls_saved"),
    *("ai_calls", "ai_tokens"),
)
NEEDS_CONFIRMATION = 3  # exit code
_WHEN = {"running": "for", "cancelled": "after", "partial": "after", "needs_confirmation": "after"}
_WORST_FIRST = (
    *(RunState.FAILED, RunState.NEEDS_CONFIRMATION, RunState.CANCELLED, RunState.PARTIAL),
    *(RunState.QUEUED, RunState.RUNNING, RunState.COMPLETED),
)


def draw(report: RunReport, *, again: str = "", verbose: int = 0, quiet: bool = False) -> RenderableType:
    """Draw the report, or only headline and errors if `quiet`; `again` is the command that repeats the run."""
    if quiet:
        return Group(headline(report), *_problems(report, again))
    parts: list[RenderableType] = [headline(report), Padding(_counts(report), (0, 0, 0, 2), expand=False)]
    if saved := savings(report):
        parts.append(Text(f"  {saved}", style="bold" if report.state == RunState.COMPLETED else ""))
    if scores := link_scores(report):
        parts.append(Text(f"  {scores}"))
    parts += [Text(f"  {clean(each.sink)}: {states(each)}") for each in report.sinks or ()]
    if verbose:
        work = [f"run {report.run}", f"{size(report.bytes)} read"]
        if report.chunks_embedded or report.chunks_reused:
            made, reused = count(report.chunks_embedded, "passage"), count(report.chunks_reused)
            work.append(f"{made} embedded, {reused} reused")
        parts.append(Text(f"  {' · '.join(work)}", style="dim"))
    notes = [note for note in dict.fromkeys(report.notes) if _reason(note) not in clean(report.error or "")]
    return Group(*parts, *_problems(report, again, notes))


def _problems(report: RunReport, again: str, notes: Sequence[str] = ()) -> list[Text]:
    wrong = [Text(f"  {clean(report.error)}", style="red")] if report.error else []
    lines = [Text(f"  note: {clean(note)}") for note in notes]
    return wrong + lines + [Text.assemble("  ", line) for line in next_steps(report, again)]


def _reason(note: str) -> str:
    """Return a note without the URL that it may start with."""
    words = clean(note).rstrip(".")
    return words.partition(": ")[2] or words


def draw_all(reports: Sequence[RunReport], *, verbose: int = 0, quiet: bool = False) -> RenderableType:
    parts: list[RenderableType] = []
    for number, report in enumerate(reports):
        parts += [Text()] if number and not quiet else []
        parts.append(draw(report, verbose=verbose, quiet=quiet))
    return Group(*parts)


def headline(report: RunReport) -> Text:
    """Return a line such as `python-docs · refresh completed in 0.4 s`."""
    words = {"needs_confirmation": "paused", "partial": "partially completed"}
    named = Text.assemble((clean(label(report.source, report.version)), "bold"), f" · {report.mode} ")
    if report.found_nothing:
        return Text.assemble(named[:-1], ": ", (FOUND_NOTHING, STATE_STYLES[RunState.PARTIAL]))
    if report.state == RunState.QUEUED:
        return named.append("queued", STATE_STYLES["queued"]).append(f" as run {report.run}")
    if report.interrupted:
        when = f"after {duration(report.seconds)}" if report.seconds else "before it stored anything"
        return named.append("interrupted", STATE_STYLES[RunState.CANCELLED]).append(f" {when}")
    line = named + Text.assemble(
        (words.get(report.state, report.state), STATE_STYLES.get(report.state, "")),
        f" {_WHEN.get(report.state, 'in')} {duration(report.seconds)}",
    )
    return line.append(": confirmation needed") if report.state == RunState.NEEDS_CONFIRMATION else line


def savings(report: RunReport) -> str:
    """Return a line such as `30 checked: 23 skipped as unchanged, 4 processed, 3 redirected or gone; 85 % … saved`.

    The numbers behind the colon add up to the first one.
    """
    if not report.checked:
        return ""
    processed, unread = report.new + report.changed, report.refused + report.doubtful + report.failed
    moved = report.moved_read
    parts = [f"{count(report.not_modified)} skipped as unchanged"] if report.not_modified else []
    parts += [f"{count(report.unchanged)} downloaded with the same content"] if report.unchanged else []
    parts += [f"{count(processed)} processed"]
    parts += [moved_part(moved)] if moved else []
    parts += [f"{count(report.redirected_or_gone)} redirected or gone"] if report.redirected_or_gone else []
    parts += [f"{count(unread)} not read"] if unread else []
    line = f"{count(report.checked)} checked: {', '.join(parts)}"
    if not report.known:  # a first crawl has nothing to save
        return line
    asked = report.not_modified + report.unchanged + processed + moved + report.doubtful + report.failed
    share = percent(report.not_modified, asked)
    return f"{line}; {share} % of downloads saved" if share else line


def link_scores(report: RunReport) -> str:
    """Return a line such as `links: 40 scored, 1 call, 2,100 tokens; 5,000 known: 100 calls saved`."""
    if not (report.links_scored or report.links_unscored or report.links_saved):
        return ""
    parts = [f"{count(report.links_scored)} scored"]
    parts += [f"{count(report.links_unscored)} unscored"] if report.links_unscored else []
    parts += [count(report.link_calls, "call")] if report.link_calls else []
    parts += [count(report.ai_tokens, "token")] if report.ai_tokens else []
    line = f"links: {', '.join(parts)}"
    if not report.links_saved:
        return line
    saved = f": {count(report.link_calls_saved, 'call')} saved" if report.link_calls_saved else ""
    return f"{line}; {count(report.links_saved)} known{saved}"


def next_steps(report: RunReport, again: str = "") -> list[Text]:
    name = label(report.source, report.version)
    of_kb = report.source in (FILES, LINKS)
    verb = "sync" if report.documents is not None else "refresh"
    refresh = again or ("afresh init-kb" if of_kb else f"afresh {verb} {clean(name)}")
    match report.state:
        case RunState.NEEDS_CONFIRMATION:
            are = "page looks" if report.held == 1 else "pages look"
            held = f"{count(report.held)} {are} deleted. That exceeds the deletion limit, so nothing was removed yet."
            then = (" and then ", (refresh, "bold")) if of_kb else ()
            confirm = (f"afresh confirm {report.run}", "bold")
            return [Text(held), Text.assemble("If they are really gone, run ", confirm, *then)]
        case RunState.QUEUED:
            return [Text.assemble("Start a worker with ", ("afresh worker", "bold"), ".")]
        case RunState.CANCELLED:
            return [Text.assemble("To continue, run ", (refresh, "bold"))]
        case RunState.PARTIAL | RunState.FAILED if report.kept:
            when = " when it is due" if report.mode == RunMode.DUE else ""
            return [Text.assemble("To retry, run ", (refresh, "bold"), when)]
    if not report.kept and again:
        return [Text.assemble("To keep the source anyway, run ", (f"{again} --keep", "bold"))]
    return []


def _counts(report: RunReport) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right")
    grid.add_column(no_wrap=True)
    grid.add_column(style="dim")
    for name, style, _ in MEANINGS:
        number: int = getattr(report, name)
        if number:
            named = Text(name.replace("_", " "), style=style)
            grid.add_row(Text(count(number), style=style), named, _meaning(name, report))
    return grid


def _meaning(name: str, report: RunReport) -> str:
    if name == "failed" and not report.kept:
        return "could not be read"
    if name == "refused" and (reasons := sorted(report.refusals.items(), key=lambda item: (-item[1], item[0]))):
        return reasons[0][0] if len(reasons) == 1 else " · ".join(f"{why}: {count(each)}" for why, each in reasons)
    meaning = next(meaning for each, _, meaning in MEANINGS if each == name)
    return meaning if report.known else OF_FIRST_CRAWL.get(name, meaning)


def totals(reports: Sequence[RunReport]) -> dict[str, object]:
    """Return several reports as one object: sums, the worst state, and each run under `runs`."""
    alone = reports[0] if len(reports) == 1 else None
    return {
        "run": alone.run if alone else None,
        "source": alone.source if alone else None,
        "version": alone.version if alone else None,
        "mode": reports[0].mode if reports else "refresh",
        "state": worst(reports),
        **{name: sum(getattr(report, name) for report in reports) for name in COUNTED},
        "seconds": sum(report.seconds for report in reports),
        "error": next((report.error for report in reports if report.error), None),
        "notes": [note for report in reports for note in report.notes],
        "runs": list(reports),
    }


def worst(reports: Sequence[RunReport]) -> str:
    states = {report.state for report in reports}
    return next((str(state) for state in _WORST_FIRST if state in states), str(RunState.COMPLETED))


def exit_code(reports: Sequence[RunReport]) -> int:
    """Return 0 if all runs are completed, 3 if the only problem is a missing confirmation, else 1.

    It is also a problem if a new source was removed because its first run read nothing (`kept` is False).
    """
    states = {report.state for report in reports} - {RunState.COMPLETED, RunState.QUEUED}
    if not all(report.kept for report in reports):
        return 1
    if not states:
        return 0
    return NEEDS_CONFIRMATION if states == {RunState.NEEDS_CONFIRMATION} else 1


OUTCOME_STYLES = {"completed": "green", "planned": "cyan", "partial": "yellow"}


def draw_sync(report: SyncReport) -> Text:
    numbers = ", ".join(map(str, report.runs))  # as `afresh attempts` takes them
    runs = f", {'run' if len(report.runs) == 1 else 'runs'} {numbers}" if numbers else ""
    text = _head(report.sink, f"{report.kind} · sync", report, runs)
    text.append(f"  {_done(report)}\n")
    if report.stuck:
        text.append(f"  {count(report.stuck)} waiting too long (stuck): the next sync uploads them again\n", "yellow")
    if (audit := report.audit) is not None and (audit.listed or audit.missing):
        names = ("missing", "orphaned", "doubled", "stale", "adopted", "foreign")
        found = ", ".join(f"{count(getattr(audit, name))} {name}" for name in names)
        text.append(f"  listed {count(audit.listed, 'document')}: {found}\n", "dim")
        for name in audit.foreign_names:
            text.append(f"  not written by afresh: {clean(name)}\n", "dim")
    for failure in report.failures:
        text.append(f"  {clean(failure.url)}: {clean(failure.why)}\n", "red")
    return _end(text, report)


def _done(report: SyncReport) -> str:
    """Return a line such as `3 uploaded, 1 deleted, …`; for a dry run, such as `would upload 3, 2 waiting`."""
    if not report.dry_run:
        names = ("uploaded", "replaced", "deleted", "verified", "waiting", "failed")
        return ", ".join(f"{count(getattr(report, name))} {name}" for name in names)
    planned = (("upload", report.uploaded), ("replace", report.replaced), ("delete", report.deleted))
    parts = [f"would {verb} {count(number, 'document')}" for verb, number in planned if number]
    parts += [f"{count(getattr(report, name))} {name}" for name in ("waiting", "failed") if getattr(report, name)]
    return ", ".join(parts) or "nothing to do"


def draw_reindex(report: ReindexReport) -> Text:
    text = _head(report.source or "all sources", "reindex", report)
    made = [f"{count(report.chunks_embedded, 'passage')} embedded", f"{count(report.chunks_reused)} reused"]
    made += [f"{count(report.pages_cut, 'page')} split again"] if report.pages_cut else []
    text.append("  " + ", ".join(made) + "\n")
    text.append(f"  searches use {report.serving or 'keywords only'}\n", "dim")
    if report.left:
        text.append(f"  {count(report.left)} left: run `afresh reindex` again to continue\n", "yellow")
    return _end(text, report)


def _head(name: str, work: str, report: SyncReport | ReindexReport, more: str = "") -> Text:
    state = report.state, OUTCOME_STYLES.get(report.state, "red")
    return Text.assemble((clean(name), "bold"), f" · {work} ", state, f" in {duration(report.seconds)}{more}\n")


def _end(text: Text, report: SyncReport | ReindexReport) -> Text:
    if report.error:
        text.append(f"  {clean(report.error)}\n", "red")
    for note in report.notes:
        text.append(f"  {clean(note)}\n", "dim")
    text.rstrip()
    return text
