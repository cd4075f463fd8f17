"""A place where requests wait until a test lets them through."""

import asyncio
from concurrent.futures import Future
from threading import Condition


class Gate:
    """Holds requests back; `wait` tells when they have come, `release` lets them through for good."""

    def __init__(self) -> None:
        self._open: Future[None] = Future()
        self._came = Condition()
        self._count = 0

    @property
    def waiting(self) -> int:
        """How many requests have come to the gate so far."""
        return self._count

    def wait(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """Block until that many requests have come, or raise TimeoutError."""
        with self._came:
            if not self._came.wait_for(lambda: self._count >= count, timeout):
                raise TimeoutError(f"{self._count} of {count} requests came to the gate in {timeout} s")

    async def arrived(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """The same for async code: the event loop goes on meanwhile."""
        await asyncio.to_thread(self.wait, count, timeout=timeout)

    def release(self) -> None:
        """Open the gate; doing it twice is harmless."""
        with self._came:
            if not self._open.done():
                self._open.set_result(None)

    async def passed(self) -> None:
        """Wait, on the server's loop, until the gate is open."""
        with self._came:
            self._count += 1
            self._came.notify_all()
        # Shielded, so that one client that hangs up does not open the gate for the others.
        await asyncio.shield(asyncio.wrap_future(self._open))
