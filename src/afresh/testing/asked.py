"""What a scripted site was asked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

from afresh.core.doubt import PROBE


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that reached the site.

    `status` is None when the site hung up before its answer, and always for a raw answer of HostileSite.
    """

    method: str
    path: str  # as sent, with its query
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    visit: int = 1  # the number of this request for its path; only HostileSite counts
    body: bytes = b""  # only raw servers read it
    at: float = 0.0  # time.monotonic() when it came in

    @property
    def if_none_match(self) -> str | None:
        """The ETag it named."""
        return self.headers.get("if-none-match")

    @property
    def if_modified_since(self) -> str | None:
        """The date it named."""
        return self.headers.get("if-modified-since")

    @property
    def user_agent(self) -> str | None:
        """Who it said it was."""
        return self.headers.get("user-agent")

    @property
    def conditional(self) -> bool:
        """Whether it carried a validator."""
        return bool(self.if_none_match or self.if_modified_since)


class RequestLog:
    """The requests in the order they were added, probes apart; safe to read from any thread."""

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
