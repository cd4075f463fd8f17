"""Which of the paths that change are due: bookkeeping that is told the time."""

from dataclasses import dataclass

PATIENCE = 10  # times the quiet time: how long what never rests waits at most
MOST = 1_000  # paths, beyond which listing all costs less than asking for each


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be looked at now: some paths, or everything."""

    paths: frozenset[str] = frozenset()
    everything: bool = False


@dataclass(slots=True)
class _Stir:
    first: float
    last: float

    def at(self, quiet: float) -> float:
        """When it is due: when it has rested, or has not for too long."""
        return min(self.last + quiet, self.first + PATIENCE * quiet)


class Debounce:
    """Collects paths until each has been quiet for a while; too many become one look at everything."""

    def __init__(self, quiet: float, most: int = MOST) -> None:
        self._quiet = quiet
        self._most = most
        self._paths: dict[str, _Stir] = {}
        self._everything: _Stir | None = None

    def hear(self, path: str, now: float) -> None:
        """A path changed."""
        if self._everything is not None:
            self._everything.last = max(now, self._everything.last)
            return
        stir = self._paths.setdefault(path, _Stir(now, now))
        stir.last = now
        if len(self._paths) > self._most:
            self.hear_all(now, since=min(each.first for each in self._paths.values()))

    def hear_all(self, now: float, *, since: float | None = None) -> None:
        """Anything may have changed; what was heard of single paths is part of that."""
        self._paths.clear()
        if self._everything is None:
            self._everything = _Stir(now if since is None else since, now)
        self._everything.last = max(now, self._everything.last)

    def want_all(self, now: float) -> None:
        """Everything is to be looked at at once."""
        self._paths.clear()
        self._everything = _Stir(now - PATIENCE * self._quiet, now)

    def next_at(self) -> float | None:
        """When something will be due, if nothing more is heard."""
        stirs = [self._everything] if self._everything is not None else self._paths.values()
        return min((stir.at(self._quiet) for stir in stirs), default=None)

    def take(self, now: float) -> Due | None:
        """What is due now, which is forgotten here, with what has rested half as long; None if nothing is."""
        if self._everything is not None:
            if self._everything.at(self._quiet) > now:
                return None
            self._everything = None
            return Due(everything=True)
        if all(stir.at(self._quiet) > now for stir in self._paths.values()):
            return None
        due = frozenset(path for path, stir in self._paths.items() if stir.at(self._quiet / 2) <= now)
        for path in due:
            del self._paths[path]
        return Due(due)
