"""Places where a test may kill, stop or trip the process; nothing happens unless AFRESH_FAILPOINTS says so.

`AFRESH_FAILPOINTS="commit.pages=kill, fetch.body=raise@3"`: what happens there, at which hit (or the first).
"""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from afresh.errors import AfreshError, ConfigError

VARIABLE = "AFRESH_FAILPOINTS"
ACTIONS = ("kill", "raise", "stop")
POINTS = {
    "run.started": "the run is on record, nothing is queued",
    "run.filled": "everything known is queued, nobody has claimed it",
    "page.claimed": "a lane took a claim, nothing was asked",
    "page.request": "the request is made up, not sent",
    "fetch.body": "a piece of the body has arrived",
    "page.fetched": "the look is over, nothing was read from it",
    "page.extracted": "the body is a document",
    "page.decided": "the decision is made, nothing was prepared",
    "page.chunked": "the document is cut, nothing is embedded",
    "embed.made": "a batch of vectors is made, not kept",
    "embed.kept": "a batch of vectors is kept, no page has its chunks",
    "links.answered": "a batch of links is scored, nothing of it is kept",
    "links.kept": "a batch of scores is kept",
    "page.prepared": "chunks, diff and links are made, nothing is written",
    "commit.begin": "a batch is ready, its transaction has not begun",
    "commit.stamp": "attempts are stamped",
    "commit.next": "the next looks are queued",
    "commit.pages": "pages are written",
    "commit.chunks": "chunks are swapped",
    "commit.links": "links are swapped",
    "commit.changes": "changes are noted",
    "commit.children": "children are queued",
    "commit.counts": "everything is counted, nothing is committed",
    "commit.done": "a batch is committed, the worker has not heard of it",
    "finish.begin": "the run is judged, its end has not begun",
    "finish.missing": "missing counts are written",
    "finish.drop": "pages are dropped",
    "finish.closed": "the run is closed, nothing is committed",
    "finish.done": "the end of the run is committed, nobody was told",
    "reindex.cut": "pages are cut anew, nothing is written",
    "reindex.embedded": "chunks have vectors of the new model, the old one answers",
    "kb.cache": "the store has what is new, the cache has not",
    "kb.index": "the cache is written, the index is not",
    "kb.written": "cache and index are written, the store has not noted it",
    "copy.commit": "rows of a copy are written, their transaction is not over",
    "copy.batch": "a batch of a copy is written",
    "copy.filled": "a copy has every row, and nothing is compared",
    "sync.taken": "an external store is taken, nothing was asked of it",
    "sync.audited": "a store was listed, nothing of it is written",
    "sync.dropping": "what is to leave a store is on record, nothing was dropped",
    "sync.dropped": "documents left a store, nobody noted it",
    "sync.putting": "what is to be put is on record, nothing was put",
    "sync.put": "a document is put, its id is not on record",
    "sync.kept": "documents are put and on record",
    "sync.looked": "documents were looked at, nothing is written",
    "sync.done": "a store is in line, and still taken",
    "confirm.begin": "a braked run is about to be let go",
    "sql.begin": "a writing transaction has begun",
    "sql": "a statement of a writing transaction was run",
    "sql.commit": "everything of a writing transaction was run, it is not committed",
    "sql.done": "a writing transaction is committed, its caller has not heard of it",
}


class Tripped(AfreshError):
    """A failpoint raised, as it was told to."""


@dataclass(slots=True)
class _Armed:
    action: str
    left: int  # hits until it acts


_armed: dict[str, _Armed] = {}


def failpoint(name: str) -> None:
    """Do what the environment asks for at this place; nothing at all in ordinary life."""
    if _armed:
        _hit(name)


def arm(environment: Mapping[str, str] = os.environ) -> None:
    """Take the failpoints that the environment names, and no others; a wrong name is a ConfigError."""
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


def _hit(name: str) -> None:
    armed = _armed.get(name)
    if armed is None:
        return
    armed.left -= 1
    if armed.left != 0:
        return
    match armed.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            raise Tripped(f"failpoint {name}")
