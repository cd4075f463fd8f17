"""Provide an external store in memory that can be slow, failing, busy, full, missing or disconnected."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count

from afresh.errors import SinkBusy
from afresh.sync.copy import OwnerTag, Remote, RemoteState, Upload


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that a call raises instead of doing its work or, with `after`, when the work is done."""

    error: Exception
    after: bool = False


CUT = Fault(SinkBusy("the connection was cut"), after=True)  # the call had its effect, but its answer is lost


@dataclass(slots=True)
class ScriptedSink:
    """Implements `ports.Sink` in memory; each call raises the next scripted fault of its kind, if any.

    A new document gets the next state in `fates`, or the state `arrives` if there is none. If `down` is set, every call
    raises it.
    """

    name: str = "scripted"
    at_once: int = 3  # concurrent uploads
    arrives: RemoteState = RemoteState.ACTIVE
    documents: dict[str, Remote] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # document id → its Markdown
    faults: dict[str, deque[Fault | None]] = field(default_factory=dict)  # put, drop, look or all → next faults
    fates: deque[RemoteState] = field(default_factory=deque)
    down: Exception | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)  # kind of each call, and its URL or id
    most_at_once: int = 0
    closed: bool = False
    _under_way: int = 0
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def script(self, call: str, *faults: Fault | None) -> None:
        """Set the faults of the next calls of a kind; None: the call succeeds."""
        self.faults.setdefault(call, deque()).extend(faults)

    def settle(self, state: RemoteState = RemoteState.ACTIVE, reason: str | None = None) -> None:
        """Set the state of all documents that are not active yet."""
        for remote in list(self.documents.values()):
            if remote.state is not RemoteState.ACTIVE:
                self.documents[remote.id] = replace(remote, state=state, reason=reason)

    def add(self, name: str, mark: OwnerTag | None = None, text: str = "", *, url: str | None = None) -> Remote:
        """Add a document as if a user had uploaded it."""
        number = next(self._numbers)
        remote = Remote(id=f"documents/{number}", name=name, state=RemoteState.ACTIVE, mark=mark, url=url)
        self.documents[remote.id], self.texts[remote.id] = remote, text
        return remote

    def count(self, call: str) -> int:
        return sum(kind == call for kind, _ in self.calls)

    async def put(self, upload: Upload) -> Remote:
        fault = await self._meet("put", upload.url)
        state = self.fates.popleft() if self.fates else self.arrives
        remote = Remote(
            id=f"documents/{next(self._numbers)}",
            name=upload.name,
            state=state,
            mark=upload.mark,
            url=upload.url,
            size=len(upload.markdown.encode()),
        )
        self.documents[remote.id] = remote
        self.texts[remote.id] = upload.markdown
        self._raise(fault)
        return remote

    async def drop(self, remote_id: str) -> None:
        fault = await self._meet("drop", remote_id)
        self.documents.pop(remote_id, None)
        self._raise(fault)

    async def look(self, remote_id: str) -> Remote | None:
        await self._meet("look", remote_id)
        return self.documents.get(remote_id)

    async def all(self) -> AsyncIterator[Remote]:
        await self._meet("all", "")
        for remote in list(self.documents.values()):
            yield remote

    async def close(self) -> None:
        self.closed = True

    async def _meet(self, call: str, what: str) -> Fault | None:
        self.calls.append((call, what))
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        await asyncio.sleep(0)
        self._under_way -= 1
        if self.down is not None:
            raise self.down
        faults = self.faults.get(call)
        fault = faults.popleft() if faults else None
        if fault is not None and not fault.after:
            raise fault.error
        return fault

    def _raise(self, fault: Fault | None) -> None:
        if fault is not None:
            raise fault.error
