"""The guard counts the work of a command and its children, and fails when there is more of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench import guard
from bench.counting import counted, counting

PROGRAM = """
import sqlite3, subprocess, sys, threading
connection = sqlite3.connect(":memory:")
connection.execute("create table t (x)")
rows = int(sys.argv[1])
def insert():
    for number in range(rows):
        abs(number)
thread = threading.Thread(target=insert); thread.start(); thread.join()
connection.executemany("insert into t values (?)", [(number,) for number in range(rows)])
if len(sys.argv) < 3:
    subprocess.run([sys.executable, "-c", f"for number in range({rows}): abs(number)"], check=True)
"""
PINNED = {"python": guard.PYTHON, "pinned": {"crawl: calls a page": 100.0, "crawl: processes": 2.0}}


def counts(folder: Path, *arguments: str) -> dict[str, int]:
    env = {**os.environ, **counting(folder)}
    subprocess.run([sys.executable, "-c", PROGRAM, *arguments], env=env, check=True)
    return counted(folder)


def test_calls_of_threads_and_children_statements_and_processes_count(tmp_path: Path) -> None:
    none, some = counts(tmp_path / "none", "0"), counts(tmp_path / "some", "1000")
    assert some["calls"] - none["calls"] >= 2000  # of the thread and of the child
    assert some["statements"] - none["statements"] == 1000
    assert (none["processes"], some["processes"]) == (1, 1)
    alone = counts(tmp_path / "alone", "1000", "no child")
    assert alone["processes"] == 0
    assert some["calls"] - alone["calls"] > 1000


@pytest.mark.parametrize(
    ("found", "above"),
    [
        ({"crawl: calls a page": 104.0, "crawl: processes": 2.0}, []),
        ({"crawl: calls a page": 106.0, "crawl: processes": 2.0}, ["crawl: calls a page"]),
        ({"crawl: calls a page": 90.0, "crawl: processes": 3.0}, ["crawl: processes"]),
        ({"refresh: calls a page": 1.0}, ["refresh: calls a page"]),  # nothing is pinned for it
    ],
)
def test_more_work_passes_a_ceiling(found: dict[str, float], above: list[str]) -> None:
    assert guard.passed(found, PINNED) == above
    assert [line.split("  ")[0] for line in guard.table(found, PINNED) if "TOO MUCH" in line] == above


def test_figures_of_another_python_get_more_room() -> None:
    assert guard.passed({"crawl: calls a page": 120.0}, {**PINNED, "python": "3.9"}) == []


@pytest.mark.slow
def test_the_guard_fails_when_the_work_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crawl passes its own figures, and not those of a tenth less work."""
    monkeypatch.setattr(guard, "PINNED", tmp_path / "ceilings.json")
    found = guard.work()
    monkeypatch.setattr(guard, "work", lambda: found)
    for share, code in ((1.0, 0), (0.9, 1)):
        pinned = {name: number * share for name, number in found.items()}
        guard.PINNED.write_text(json.dumps({"python": guard.PYTHON, "pinned": pinned}), "utf-8")
        assert guard.main([]) == code
        assert ("The work has grown" in capsys.readouterr().out) == bool(code)
