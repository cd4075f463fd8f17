"""What a scripted site was asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from afresh.core.doubt import PROBE


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that reached the site; `status` is None when the site hung up before its answer."""

    method: str
    path: str  # as sent, with its query
    status: int | None
    if_none_match: str | None
    if_modified_since: str | None
    user_agent: str | None
    at: float  # time.monotonic() when it came in

    @property
    def conditional(self) -> bool:
        """Whether it carried a validator."""
        return bool(self.if_none_match or self.if_modified_since)


class RequestLog:
    """The requests in the order of their answers, probes apart; safe to read from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: list[Asked] = []
        self.probes: list[Asked] = []  # questions for an address that cannot exist

    def add(self, asked: Asked) -> None:
        """Record one request."""
        with self._lock:
            (self.probes if PROBE in asked.path else self._asked).append(asked)

    def clear(self) -> None:
        """Forget all requests so far."""
        with self._lock:
            self._asked.clear()
            self.probes.clear()

    def count(self, path: str | None = None, *, status: int | None = None) -> int:
        """How many requests there were, for one path or with one status."""
        return sum(1 for each in self if path in (None, each.path) and status in (None, each.status))

    def paths(self) -> list[str]:
        """The paths in order, with repeats."""
        return [each.path for each in self]

    def __iter__(self) -> Iterator[Asked]:
        with self._lock:
            return iter(self._asked.copy())

    def __len__(self) -> int:
        with self._lock:
            return len(self._asked)

    def __getitem__(self, index: int) -> Asked:
        with self._lock:
            return self._asked[index]
