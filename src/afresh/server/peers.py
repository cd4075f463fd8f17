"""How many connections one peer may have, so that it cannot take those of all others."""

from collections import Counter
from collections.abc import Callable, Hashable

from afresh.server.host_checks import is_loopback
from afresh.server.limits import caller


class Peers:
    """The connections of each peer, and which of them have not asked for anything yet.

    A peer with too many loses the one that has been silent for longest, so that who comes next is answered.
    On this machine itself only silent ones count: all callers of a reverse proxy come from there.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()
        self._peers: dict[Hashable, str] = {}
        self._silent: dict[str, dict[Hashable, Callable[[], object]]] = {}

    def enter(self, address: str, connection: Hashable, close: Callable[[], object]) -> bool:
        """Note a connection that `close` ends; False if its peer has too many that are in use."""
        peer = caller(address)
        silent = self._silent.setdefault(peer, {})
        if (len(silent) if is_loopback(address) else self._open[peer]) >= self._most:
            if not silent:
                return False
            oldest = next(iter(silent))
            end = silent[oldest]
            self.leave(oldest)
            end()
            silent = self._silent.setdefault(peer, {})
        self._peers[connection] = peer
        self._open[peer] += 1
        silent[connection] = close
        return True

    def asks(self, connection: Hashable) -> None:
        """A connection has asked for something."""
        if peer := self._peers.get(connection):
            self._silent.get(peer, {}).pop(connection, None)

    def leave(self, connection: Hashable) -> None:
        """A connection is over."""
        peer = self._peers.pop(connection, None)
        if peer is None:
            return
        self._open[peer] -= 1
        self._silent[peer].pop(connection, None)
        if self._open[peer] <= 0:
            del self._open[peer], self._silent[peer]
