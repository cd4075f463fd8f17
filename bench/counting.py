"""Counts the work of a command and its children: calls of functions, SQL statements, processes started.

Each process keeps its counts in a file of its own, which outlives a kill.
"""

import mmap
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkstemp
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("calls", "statements", "processes")
PAUSE_SECONDS = 0.05  # before each transaction, so that each takes as many pages as are ready, on any machine
CORES = 2  # what counted processes see, so that every machine starts as many parsers
_CALLS, _STATEMENTS, _PROCESSES = range(len(KINDS))
_WIDTH = 8  # bytes of a count
_START = "from pathlib import Path\nfrom bench.counting import begin\nbegin(Path(__file__).parent)\n"


def counting(folder: Path) -> Mapping[str, str]:
    """Return what to add to the environment of a command whose work is counted in this new folder."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(_START, "utf-8")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}


def counted(folder: Path) -> dict[str, int]:
    """Return the sums over all processes."""
    totals = [0] * len(KINDS)
    for path in folder.glob("*.counts"):
        for place, number in enumerate(memoryview(path.read_bytes()).cast("Q")):
            totals[place] += number
    return dict(zip(KINDS, totals, strict=True))


def begin(folder: Path) -> None:
    """Count in this process from now on."""
    file, _ = mkstemp(".counts", dir=folder)
    os.truncate(file, _WIDTH * len(KINDS))
    counts = memoryview(mmap.mmap(file, _WIDTH * len(KINDS))).cast("Q")
    opened: list[Any] = []  # connections that are not ready yet

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            counts[_CALLS] += 1
        while opened:
            opened.pop().set_trace_callback(on_statement)

    def on_statement(text: str) -> None:
        if not text.startswith("--"):  # the body of a trigger
            counts[_STATEMENTS] += 1
        if text.startswith("begin immediate"):
            time.sleep(PAUSE_SECONDS)

    def on_audit(event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen":
            counts[_PROCESSES] += 1
        elif event == "sqlite3.connect/handle":
            opened.append(arguments[0])

    os.cpu_count = lambda: CORES
    sys.addaudithook(on_audit)
    threading.setprofile(on_event)
    sys.setprofile(on_event)
