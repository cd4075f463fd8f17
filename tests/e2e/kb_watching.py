"""A running `afresh watch --kb`, and what it says."""

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from tests.e2e.kb_files import Base
from tests.e2e.program import TIMEOUT


class Watching:
    """A running `afresh watch --kb`."""

    def __init__(self, base: Base) -> None:
        self.process: subprocess.Popen[str] = base.program.start("watch", "--kb", "--json")
        self._lines: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append)),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, take: Callable[[str], object]) -> None:
        for line in stream:
            take(line)
        take("")

    def until(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next thing said that is meant."""
        while True:
            line = self._lines.get(timeout=TIMEOUT)
            assert line, f"it ended: {self.errors}"
            message: dict[str, Any] = json.loads(line)
            if is_it(message):
                return message

    def report(self, source: str, **counts: int) -> dict[str, Any]:
        """The next report of a source with these counts."""
        return self.until(
            lambda message: message.get("source") == source and all(message[name] == n for name, n in counts.items())
        )

    def watched(self, number: int = 0) -> set[str]:
        """The sources that are told to be watched: the next ones, or those among the rest."""
        prefix = "Watching "
        notices = [self.until(lambda message: message.get("notice", "").startswith(prefix)) for _ in range(number)]
        return {message["notice"].removeprefix(prefix) for message in notices or self.rest() if "notice" in message}

    def rest(self) -> list[dict[str, Any]]:
        """What was said and not asked for, once it has ended."""
        lines = iter(self._lines.get_nowait, "")
        return [json.loads(line) for line in lines]

    def stop(self) -> int:
        """Ask it to end."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT)
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return self.process.returncode
