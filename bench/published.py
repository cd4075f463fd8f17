"""The figures that the documentation shows: `bench/results.json`, which a full run of `make bench` writes."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results.json"
MAX_COMMITS = 60  # that touched src since the figures were measured
Figures = Mapping[str, Any]


def read() -> Figures:
    """Return the published figures."""
    found: Figures = json.loads(RESULTS.read_text("utf-8"))
    return found


def commit(root: Path = ROOT) -> str | None:
    """Return the commit that is measured, or None if src differs from every commit."""
    return None if _git(root, "status", "--porcelain", "--", "src") else _git(root, "rev-parse", "HEAD")


def commits_since(found: Figures, root: Path = ROOT) -> int | None:
    """Return how many commits have touched src since the figures; None without the history that tells."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    # A rebase may have replaced the commit.
    known = _git(root, "merge-base", "--is-ancestor", found["commit"], "HEAD") is not None
    since = f"{found['commit']}..HEAD" if known else f"--since={found['date']}T23:59:59"
    number = _git(root, "rev-list", "--count", since, *([] if known else ["HEAD"]), "--", "src")
    return None if number is None else int(number)


def too_old(found: Figures, root: Path = ROOT) -> str:
    """Return what is wrong if the figures are too old, else nothing."""
    number = commits_since(found, root)
    if number is None or number <= MAX_COMMITS:
        return ""
    return f"bench/results.json: {number} commits touched src since {found['commit'][:8]}, at most {MAX_COMMITS}"


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


def speed_table() -> str:
    """Return the figures that README.md names."""
    found = read()
    system = _peer(found)
    lines = [f"| PostgreSQL's documentation | pages per second | afresh | {system} |", "|---|---|---|---|"]
    for row in _runs(found):
        if row["corpus"] == "pg":
            peer = _same(found["peers"], row)
            lines.append(f"| {row['phase']} | {row['pages_per_s']:,.0f} | {_ratio(row)} | {_ratio(peer)} |")
    return "\n".join(lines)


def benchmark_tables() -> str:
    """Return the figures as docs/explanation/benchmarks.md has to hold them."""
    found = read()
    machine, system = found["machine"], _peer(found)
    lines = [
        f"`{found['command']}` of commit `{found['commit'][:8]}`, {found['date']}, {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}, {found['rounds']} rounds. "
        f"{'All results were correct.' if found['right'] else 'SOME RESULTS WERE WRONG.'}",
        *(f"Note: {note}." for note in found["notes"]),
        "",
        f"| | site | pages/s | CPU s | CPU ms a page | × bare loop | goal | {system}, × bare loop | {system}, CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in _runs(found):
        peer = _same(found["peers"], row)
        cells = (
            *(row["phase"], row["corpus"], f"{row['pages_per_s']:,.0f}", _number(row, "cpu_s")),
            *(f"{1000 * row['cpu_s'] / row['pages']:.2f}", _ratio(row), f"{row['ratio_goal']:g}"),
            *(_ratio(peer), _number(peer, "cpu_s")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| | site | measured | goal |", "|---|---|---|---|"]
    for goal in found["goals"]:
        if goal["unit"] != "×":
            value, limit = (f"{goal[key]:.3g} {goal['unit']}" for key in ("value", "limit"))
            lines.append(f"| {goal['what']} | {goal['corpus']} | {value} | {limit} |")
    return "\n".join(lines)


def _runs(found: Figures) -> Iterable[Figures]:
    return (row for row in found["rows"] if row["system"] == "afresh" and row["ratio"])


def _same(peers: Iterable[Figures], wanted: Figures) -> Figures:
    """Return the row of the peer for the same work, or an empty one."""
    keys = ("phase", "corpus")
    return next((row for row in peers if all(row[key] == wanted[key] for key in keys)), {})


def _peer(found: Figures) -> str:
    return str(found["peers"][0]["system"]).partition(" ")[0] if found["peers"] else "peer"


def _ratio(row: Figures) -> str:
    return f"{row['ratio']:.{0 if row['ratio'] >= 10 else 1}f} ×" if row else ""


def _number(row: Figures, key: str) -> str:
    return f"{row[key]:.1f}" if row else ""
