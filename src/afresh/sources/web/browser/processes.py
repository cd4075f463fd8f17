"""The processes of a browser: what memory they take, and their end."""

from collections.abc import Iterable
from contextlib import suppress

import psutil

MB = 1024 * 1024
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


def first_process(token: str) -> psutil.Process | None:
    """The process of the browser whose command line carries a token."""
    for process in psutil.Process().children(recursive=True):
        with suppress(*_GONE):
            if any(token in word for word in process.cmdline()):
                return process
    return None


def family(first: psutil.Process | None) -> list[psutil.Process]:
    """A process and all below it."""
    with suppress(*_GONE):
        return [first, *first.children(recursive=True)] if first else []
    return []


def heaviest_beyond(limit_mb: int, first: psutil.Process | None) -> psutil.Process | None:
    """The page process that takes most memory, if all of the browser takes more than it may."""
    sizes: list[tuple[int, psutil.Process]] = []
    for process in family(first):
        with suppress(*_GONE):
            sizes.append((process.memory_info().rss, process))
    if sum(size for size, _ in sizes) <= limit_mb * MB:
        return None
    pages = [pair for pair in sizes if _shows_a_page(pair[1])]
    return max(pages or sizes, key=lambda pair: pair[0])[1]


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs."""
    with suppress(*_GONE):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill processes, whether they are still there or not."""
    for process in processes:
        with suppress(*_GONE):
            process.kill()


def _shows_a_page(process: psutil.Process) -> bool:
    with suppress(*_GONE):
        return "--type=renderer" in process.cmdline()
    return False
