"""Tables of what was measured."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from afresh.search.evaluation import METRICS, MeanDifference
from eval.floors import MAIN
from eval.links import LinkFigures
from eval.measure import HYBRID, MODES, PLAIN, TEXT, VECTOR, Measured

ORDER = (PLAIN, *MODES)
AGAINST = (TEXT, VECTOR, PLAIN)


def show(all_measured: Sequence[Measured], console: Console, worst: int) -> None:
    """Print the scores of each set, and how sure the differences are."""
    for measured in all_measured:
        head = f"{measured.name}: {len(measured.questions)} questions, model {measured.model}, "
        console.print(f"{head}indexed in {measured.index_seconds:.1f} s")
        table = Table()
        table.add_column("mode")
        for metric in METRICS:
            table.add_column(metric, justify="right")
        for mode in ORDER:
            table.add_row(mode, *(f"{measured.mean(mode, metric):.3f}" for metric in METRICS))
        console.print(table)
        for other in AGAINST:
            console.print(f"hybrid − {other}: {_interval_text(measured.gap(HYBRID, other))} {MAIN}")
        for part, each in measured.weak.items():
            without = f"{each.weak_without} of {each.without} without an answer"
            console.print(f"called weak, {part}: {without}, {each.weak_answered} of {each.answered} with one")
        console.print()
        _show_worst(measured, console, worst)


def show_links(figures: Sequence[LinkFigures], console: Console) -> None:
    """Print how well links are told apart; nothing where none were looked at."""
    if not figures:
        return
    table = Table(title="links: the offline scorer, at least one right keyword", title_justify="left")
    for column in ("part", "links", "about a keyword", "scored", "right", "precision", "recall"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for each in figures:
        counts = (each.links, each.about_one, each.scored, each.right)
        table.add_row(each.part, *map(str, counts), f"{each.precision:.3f}", f"{each.recall:.3f}")
    console.print(table)


def as_json(measured: Measured) -> dict[str, Any]:
    """The same as data."""
    return {
        "set": measured.name,
        "model": measured.model,
        "questions": len(measured.questions),
        "index_seconds": round(measured.index_seconds, 2),
        "modes": {mode: {metric: round(measured.mean(mode, metric), 4) for metric in METRICS} for mode in ORDER},
        "weak": {part: asdict(each) for part, each in measured.weak.items()},
        "differences": {f"hybrid-{other}": _plain(measured.gap(HYBRID, other)) for other in AGAINST},
    }


def _show_worst(measured: Measured, console: Console, number: int) -> None:
    place = METRICS.index(MAIN)
    rows = zip(measured.questions, measured.rows[HYBRID], measured.found[HYBRID], strict=True)
    for question, row, found in sorted(rows, key=lambda each: each[1][place])[:number]:
        best = max(question.grades, key=lambda page: question.grades[page])
        console.print(f"{row[place]:.2f} {question.query}", markup=False)
        console.print(f"     wants {best}, found {', '.join(found[:3])}", markup=False)


def _interval_text(gap: MeanDifference) -> str:
    return f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def _plain(gap: MeanDifference) -> dict[str, float]:
    return {"mean": round(gap.mean, 4), "low": round(gap.low, 4), "high": round(gap.high, 4)}
