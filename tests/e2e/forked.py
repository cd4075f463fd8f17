"""Commands in processes that begin with everything imported: a tenth of what a new interpreter costs."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from tests.e2e import mortal
from tests.forking import forking


class Forked(subprocess.Popen[str]):
    """What `python -m tests.e2e.mortal` does; its callers handle it as what `subprocess.Popen` gives."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.args, self.stdin = [*words], None
        context = forking()
        (out, reported), (err, complained) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        given = (self.args, dict(environment), folder, reported, complained)
        self._process = context.Process(target=_command, args=given, daemon=True)
        self._process.start()
        for writer in (reported, complained):
            writer.close()
        self.pid, self.returncode = self._process.pid or 0, None
        self.stdout, self.stderr = _file(out), _file(err)
        self._message = ["", ""]
        self._readers: list[threading.Thread] = []

    def poll(self) -> int | None:
        """The exit code of a command that has ended."""
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, as soon as there is one."""
        self._process.join(timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """All that it says until it ends."""
        end = time.monotonic() + (timeout or threading.TIMEOUT_MAX / 2)
        if not self._readers:
            streams = (self.stdout, self.stderr)
            self._readers = [threading.Thread(target=self._read, args=each) for each in enumerate(streams)]
            for reader in self._readers:
                reader.start()
        for reader in self._readers:
            reader.join(max(0.0, end - time.monotonic()))
        if any(reader.is_alive() for reader in self._readers):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(timeout)
        return self._message[0], self._message[1]

    def _read(self, number: int, stream: IO[str]) -> None:
        with stream:
            self._message[number] = stream.read()


def _file(reader: Connection) -> IO[str]:
    number = os.dup(reader.fileno())
    reader.close()
    return os.fdopen(number, encoding="utf-8")


def _command(words: list[str], environment: dict[str, str], folder: Path, out: Connection, err: Connection) -> None:
    """In the new process: become the command."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    for number, writer in ((1, out), (2, err)):
        os.dup2(writer.fileno(), number)
        writer.close()
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.argv = ["afresh", *words]
    sys.exit(mortal.command())
