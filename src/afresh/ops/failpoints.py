"""Define points at which a test can kill, stop or fail the process; they do nothing without AFRESH_FAILPOINTS.

`AFRESH_FAILPOINTS="commit.pages=kill, fetch.body=raise@3"` kills the process when it first reaches `commit.pages`, and
raises an error when it reaches `fetch.body` for the third time.
"""

import os
import signal
from collections.abc import Mapping

from afresh.dataclass import dataclass
from afresh.errors import AfreshError, ConfigError

VARIABLE = "AFRESH_FAILPOINTS"
ACTIONS = ("kill", "raise", "stop")
POINTS = (  # the process passes each point between the step in its name and the next step
    *("run.started", "run.filled"),
    *("page.claimed", "page.request", "fetch.body", "page.fetched", "page.extracted", "page.decided"),
    *("page.chunked", "embed.made", "embed.kept", "links.answered", "links.kept", "page.prepared"),
    *("commit.begin", "commit.stamp", "commit.next", "commit.pages", "commit.chunks", "commit.links"),
    *("commit.changes", "commit.children", "commit.counts", "commit.done"),
    *("finish.begin", "finish.missing", "finish.drop", "finish.closed", "finish.done"),
    *("reindex.cut", "reindex.embedded", "kb.cache", "kb.index", "kb.written"),
    *("copy.commit", "copy.batch", "copy.filled"),
    *("sync.taken", "sync.audited", "sync.dropping", "sync.dropped", "sync.putting", "sync.put"),
    *("sync.kept", "sync.looked", "sync.done", "confirm.begin"),
    *("sql.begin", "sql", "sql.commit", "sql.done"),
)


class FailpointRaised(AfreshError):
    pass


@dataclass(slots=True)
class _Armed:
    action: str
    left: int  # how often the process has yet to reach the point until the action is executed


_armed: dict[str, _Armed] = {}


def failpoint(name: str) -> None:
    """Execute the action that is set for this failpoint, if any."""
    if _armed:
        _hit(name)


def _hit(name: str) -> None:
    armed = _armed.get(name)
    if armed is None:
        return
    armed.left -= 1
    if armed.left == 0:
        if armed.action == "raise":
            raise FailpointRaised(f"failpoint {name}")
        os.kill(os.getpid(), signal.SIGKILL if armed.action == "kill" else signal.SIGSTOP)


def arm(environment: Mapping[str, str] = os.environ) -> None:
    """Set the failpoints that the environment names, and clear all others."""
    wanted = dict(_parsed(part) for part in environment.get(VARIABLE, "").split(",") if part.strip())
    _armed.clear()
    _armed.update(wanted)


def _parsed(part: str) -> tuple[str, _Armed]:
    name, _, rest = part.strip().partition("=")
    action, _, nth = rest.partition("@")
    if name not in POINTS:
        raise ConfigError(f"{VARIABLE}: there is no failpoint {name!r}; there are {', '.join(POINTS)}")
    if action not in ACTIONS or not (nth or "1").isdecimal() or nth == "0":
        raise ConfigError(f"{VARIABLE}: {part.strip()!r} should look like {name}=kill or {name}=raise@3")
    return name, _Armed(action, int(nth or 1))
