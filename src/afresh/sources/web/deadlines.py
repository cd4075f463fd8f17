"""Deadlines of many requests, watched together: a timer for each would cost more than a 304 itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

LARGEST_TICK = 0.5


class Late(TimeoutError):
    """A request ran into a deadline; the text says into which."""


class Deadline:
    """One request under way: when it began and when something last came."""

    __slots__ = ("began", "late", "stirred", "task")

    def __init__(self, task: "asyncio.Task[object]", now: float) -> None:
        self.task = task
        self.began = self.stirred = now
        self.late: str | None = None


class Deadlines:
    """Cancels requests that take too long in all, or that hear nothing for too long."""

    def __init__(self, total: float, idle: float) -> None:
        self._total = total
        self._idle = idle
        self._tick = min(LARGEST_TICK, total / 8, idle / 8)
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> Deadline:
        """Watch the current task from now on."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request needs a task to be cancelled")
        deadline = Deadline(task, loop.time())
        self._open.add(deadline)
        if self._timer is None:
            self._timer = loop.call_later(self._tick, self._look)
        return deadline

    def end(self, deadline: Deadline) -> None:
        """Stop watching."""
        self._open.discard(deadline)

    @contextmanager
    def paused(self, deadline: Deadline) -> Iterator[None]:
        """Let time pass that does not count, as while a host is not to be asked yet."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._open.discard(deadline)
        try:
            yield
        finally:
            deadline.began += loop.time() - began
            deadline.stirred = loop.time()
            self._open.add(deadline)
            if self._timer is None:
                self._timer = loop.call_later(self._tick, self._look)

    def stir(self, deadline: Deadline) -> None:
        """Note that something came."""
        deadline.stirred = asyncio.get_running_loop().time()

    def explain(self, deadline: Deadline) -> Late | None:
        """The deadline that cancelled a request, or None if somebody else did."""
        if deadline.late is None or deadline.task.uncancel() > 0:
            return None
        return Late(deadline.late)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for deadline in [each for each in self._open if each.late is None]:
            if now - deadline.began > self._total:
                deadline.late = f"not finished within {self._total:g} s"
            elif now - deadline.stirred > self._idle:
                deadline.late = f"nothing came for {self._idle:g} s"
            if deadline.late is not None:
                deadline.task.cancel()
        self._timer = loop.call_later(self._tick, self._look) if self._open else None

    def close(self) -> None:
        """Forget everything."""
        self._open.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
