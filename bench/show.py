"""The figures as tables."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.checks import Check
from bench.figures import Goal, Row
from bench.results import Results


def show(results: Results, console: Console) -> None:
    """Print everything that a reader needs, the verdicts last."""
    console.print(_about(results))
    console.print(_table("Measured now", results.rows))
    if results.rows_of_peers:
        console.print(_table("Peers, run now", results.rows_of_peers))
    console.print(_start(results))
    console.print(_ratios(results.rows))
    console.print(_goals(results.goals))
    for text in _verdict(results.checks):
        console.print(text)
    for note in results.notes:
        console.print(Text(f"note: {note}", style="yellow"))


def _about(results: Results) -> Text:
    machine = results.machine
    sites = ", ".join(f"{c['name']}: {c['pages']} pages, {c['megabytes']} MB" for c in results.corpora)
    return Text(
        f"\nafresh {results.version} · {sites} · served by {results.server} · {results.rounds} round(s)\n"
        f"{machine['processor']}, {machine['cores']} cores · Python {machine['python']} · "
        f"load {machine['load_before']} before"
    )


def _table(title: str, rows: Iterable[Row]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("system", "phase", "corpus"):
        table.add_column(name, overflow="fold")
    for name in ("pages/s", "× bare loop", "goal", "wall s", "min–max", "CPU s", "RSS MB", "PSS MB"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.system, row.phase, row.corpus, *_cells(row))
    return table


def _cells(row: Row) -> list[Text | str]:
    return [
        _number(row.pages_per_s),
        Text(_number(row.ratio), style=_style(row)),
        "" if row.ratio_goal is None else f"≤ {row.ratio_goal:g}",
        _number(row.wall_s, 2),
        "" if row.wall_min_s is None else f"{row.wall_min_s:.2f}–{row.wall_max_s:.2f}",
        _number(row.cpu_s, 2),
        _number(row.rss_mb, 0),
        _number(row.pss_mb, 0),
    ]


def _style(row: Row) -> str:
    if row.ratio is None or row.ratio_goal is None:
        return ""
    return "green" if row.ratio <= row.ratio_goal else "red"


def _number(value: float | None, digits: int = 1) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}f}"


def _start(results: Results) -> Table:
    table = Table(title="Start-up, in seconds", title_justify="left", title_style="bold")
    table.add_column("what")
    table.add_column("s", justify="right")
    for what, seconds in results.start_up.items():
        table.add_row(what, f"{seconds:.3f}")
    return table


def _ratios(rows: Iterable[Row]) -> Table:
    table = Table(title="× bare loop, by what counts as the run's time", title_justify="left", title_style="bold")
    for name in ("phase", "corpus"):
        table.add_column(name)
    kinds = ("after_start", "whole_command", "minus_idle_refresh", "own_report")
    for name in ("from its first request", "whole command", "less an idle refresh", "its own report"):
        table.add_column(name, justify="right")
    for row in rows:
        if row.ratios:
            table.add_row(row.phase, row.corpus, *(_number(row.ratios[kind]) for kind in kinds))
    return table


def _goals(goals: Sequence[Goal]) -> Table:
    table = Table(title="Goals", title_justify="left", title_style="bold")
    for name in ("goal", "corpus"):
        table.add_column(name)
    for name in ("at most", "measured", ""):
        table.add_column(name, justify="right")
    for goal in goals:
        word = Text("met", style="green") if goal.met else Text("missed", style="red")
        table.add_row(goal.what, goal.corpus, f"{goal.limit:g} {goal.unit}", f"{goal.value:.3g} {goal.unit}", word)
    return table


def _verdict(checks: Sequence[Check]) -> Iterable[Text]:
    wrong = [check for check in checks if not check.ok]
    for check in wrong:
        yield Text(
            f"WRONG: {check.corpus}, round {check.round}, {check.step}: {check.what}: "
            f"expected {check.expected}, got {check.got} {check.detail}",
            style="red",
        )
    right = f"{len(checks) - len(wrong)} of {len(checks)} checks of the results are right"
    yield Text(right, style="red" if wrong else "green")
