"""Wrong tokens in the log: who came, never what was tried, and never without end."""

import logging
import time
from collections.abc import Callable

from afresh.server.asgi import Scope, values
from afresh.server.host_checks import peer_of
from afresh.server.limits import Buckets, caller

log = logging.getLogger(__name__)

LONGEST_CLAIM = 200  # characters of what a proxy says of who asked
PER_PEER, IN_ALL = (0.1, 10), (10.0, 100)  # lines a second in the long run, and at once


class FailedLogins:
    """Writes a line for each wrong token; those that are too many are counted in the next line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_peer = Buckets(*PER_PEER, clock)
        self._of_all = Buckets(*IN_ALL, clock)
        self._left_out = 0

    def tell(self, scope: Scope, reason: str) -> None:
        """Log one that failed."""
        peer = peer_of(scope)
        if self._of_peer.take(caller(peer)) or self._of_all.take("all"):
            self._left_out += 1
            return
        claimed = ", ".join(values(scope, b"x-forwarded-for"))[:LONGEST_CLAIM]
        data = {
            "peer": peer,
            "forwarded_for": claimed or None,  # what the peer claims
            "method": scope["method"],
            "path": scope["path"],
            "reason": reason,
            "left_out": self._left_out or None,
        }
        self._left_out = 0
        log.warning("login failed", extra={"data": data})
