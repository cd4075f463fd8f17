"""Runs a command and tells what it cost: time, CPU of its process tree, peak memory of the tree."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import struct_rusage

import psutil

EVERY_SECONDS = 0.05
PSS_EVERY = 4  # samples; reading it stops the process for a moment, so it is read more rarely
MAX_SECONDS = 1800.0


@dataclass(frozen=True)
class Cost:
    """What one command cost."""

    exit_code: int
    output: str
    errors: str
    started_at: float
    wall_s: float
    cpu_s: float
    rss_mb: float  # shared pages count once per process
    pss_mb: float | None  # shared pages are shared out; only Linux tells


class Memory:
    """Peak memory of a process and its descendants, sampled in a thread."""

    def __init__(self, pid: int) -> None:
        self.rss = 0
        self.pss: int | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(pid,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()

    def _watch(self, pid: int) -> None:
        try:
            root = psutil.Process(pid)
            family = [root]
            number = 0
            while not self._ended.wait(EVERY_SECONDS):
                if number % PSS_EVERY == 0:
                    family = [root, *root.children(recursive=True)]
                    self._sample_pss(family)
                self.rss = max(self.rss, sum(_rss(each) for each in family))
                number += 1
        except psutil.Error:
            return  # it has ended

    def _sample_pss(self, family: list[psutil.Process]) -> None:
        shares = [_pss(each) for each in family]
        known = [share for share in shares if share is not None]
        if known:
            self.pss = max(self.pss or 0, sum(known))


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _pss(process: psutil.Process) -> int | None:
    try:
        for row in Path(f"/proc/{process.pid}/smaps_rollup").read_text("ascii").splitlines():
            if row.startswith("Pss:"):
                return int(row.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def run(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> Cost:
    """Run a command to its end; its output goes through files, so that nobody has to read along."""
    log.parent.mkdir(parents=True, exist_ok=True)
    out, err = log.with_suffix(".out"), log.with_suffix(".err")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        started_at, began = time.time(), time.perf_counter()
        process = subprocess.Popen(command, env=dict(env), cwd=cwd, stdout=stdout, stderr=stderr)
    memory = Memory(process.pid)
    usage = _wait(process)
    wall = time.perf_counter() - began
    memory.end()
    return Cost(
        exit_code=process.returncode,
        output=out.read_text("utf-8", "replace"),
        errors=err.read_text("utf-8", "replace"),
        started_at=started_at,
        wall_s=wall,
        cpu_s=usage.ru_utime + usage.ru_stime,
        rss_mb=memory.rss / 2**20,
        pss_mb=None if memory.pss is None else memory.pss / 2**20,
    )


def _wait(process: subprocess.Popen[bytes]) -> struct_rusage:
    """Wait for the end, and tell what the process and the children it waited for have used."""
    limit = threading.Timer(MAX_SECONDS, process.kill)
    limit.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        limit.cancel()
    return usage
