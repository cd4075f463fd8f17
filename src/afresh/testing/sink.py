"""An external store in memory that does what a script says: late, failing, busy, full, gone, cut off."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count

from afresh.errors import SinkBusy
from afresh.sync.remote import Mark, Remote, RemoteState, Upload


@dataclass(frozen=True, slots=True)
class Fault:
    """What a call meets instead of an answer; `after`: the store has done what it was asked."""

    error: Exception
    after: bool = False


CUT = Fault(SinkBusy("the connection was cut"), after=True)  # it did it, and nobody heard of it


@dataclass(slots=True)
class ScriptedSink:
    """Fulfils `ports.sinks.Sink`; every call takes the next fault of its kind, then works."""

    name: str = "scripted"
    at_once: int = 3
    arrives: RemoteState = RemoteState.ACTIVE  # what becomes of a document when it is put
    documents: dict[str, Remote] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # Markdown by id
    faults: dict[str, deque[Fault | None]] = field(default_factory=dict)  # by call: put, drop, look, all
    fates: deque[RemoteState] = field(default_factory=deque)  # of the next documents, before `arrives`
    down: Exception | None = None  # what every call meets
    calls: list[tuple[str, str]] = field(default_factory=list)  # kind, and url or id
    most_at_once: int = 0
    closed: bool = False
    _under_way: int = 0
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def script(self, call: str, *faults: Fault | None) -> None:
        """What the next calls of a kind meet; None: nothing."""
        self.faults.setdefault(call, deque()).extend(faults)

    def settle(self, state: RemoteState = RemoteState.ACTIVE, reason: str | None = None) -> None:
        """End the work on all documents that are still processed or failed."""
        for remote in list(self.documents.values()):
            if remote.state is not RemoteState.ACTIVE:
                self.documents[remote.id] = replace(remote, state=state, reason=reason)

    def add(self, name: str, mark: Mark | None = None, text: str = "", *, url: str | None = None) -> Remote:
        """A document that somebody put there by hand."""
        number = next(self._numbers)
        remote = Remote(id=f"documents/{number}", name=name, state=RemoteState.ACTIVE, mark=mark, url=url)
        self.documents[remote.id], self.texts[remote.id] = remote, text
        return remote

    def count(self, call: str) -> int:
        """How many calls of a kind were made."""
        return sum(kind == call for kind, _ in self.calls)

    async def put(self, upload: Upload) -> Remote:
        """Add a document."""
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
        """Delete a document; absent already is success."""
        fault = await self._meet("drop", remote_id)
        self.documents.pop(remote_id, None)
        self._raise(fault)

    async def look(self, remote_id: str) -> Remote | None:
        """A document as it stands."""
        await self._meet("look", remote_id)
        return self.documents.get(remote_id)

    async def all(self) -> AsyncIterator[Remote]:
        """Every document."""
        await self._meet("all", "")
        for remote in list(self.documents.values()):
            yield remote

    async def close(self) -> None:
        """Remember that the owner closed it."""
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
