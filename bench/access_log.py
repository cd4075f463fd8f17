"""What a server was asked, one line per request, in the form that both of our servers write."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# nginx's words for: end of the request, its duration, method, status, bytes, path
NGINX_FORMAT = "$msec $request_time $request_method $status $body_bytes_sent $request_uri"


@dataclass(frozen=True)
class Asked:
    """One request."""

    began_at: float
    method: str
    status: int
    size: int
    path: str


def line(asked: Asked, seconds: float) -> str:
    """A request in the form of the log."""
    ended = asked.began_at + seconds
    return f"{ended:.3f} {seconds:.3f} {asked.method} {asked.status} {asked.size} {asked.path}\n"


def parse(text: str) -> list[Asked]:
    """The requests of a log."""
    return [_parsed(each) for each in text.splitlines() if each]


def _parsed(row: str) -> Asked:
    ended, seconds, method, status, size, path = row.split(" ", 5)
    return Asked(float(ended) - float(seconds), method, int(status), int(size), path)


def statuses(requests: list[Asked], below: str) -> Counter[int]:
    """How often each status was given to requests for pages below a path."""
    return Counter(each.status for each in requests if each.path.startswith(below))


class AccessLog:
    """A growing log, read in steps; each step is also kept as a file of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def step(self, name: str) -> list[Asked]:
        """The requests since the last step."""
        text = self._read_stable()
        self._read += len(text)
        (self.path.parent / f"{name}.log").write_bytes(text)
        return parse(text.decode())

    def _read_stable(self) -> bytes:
        """What is new, once the server has written its last line."""
        size = -1
        while size != (size := self.path.stat().st_size if self.path.exists() else 0):
            time.sleep(0.1)
        with self.path.open("rb") as file:
            file.seek(self._read)
            return file.read()
