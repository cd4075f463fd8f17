"""The port of external stores: how documents get there, are looked at and leave again.

A store keeps documents and says of each whether it can be searched. It knows no update: replacing a
document is dropping one and putting another, in the order that the settings choose. Ours are told from
those of others by their mark, which is written into their metadata.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from afresh.sync.remote import Mark, Remote, RemoteState, Upload

__all__ = ["Mark", "Remote", "RemoteState", "Sink", "Upload"]


class Sink(Protocol):
    """An external store; trouble is a SinkError that says what helps."""

    name: str
    at_once: int  # uploads side by side

    async def put(self, upload: Upload) -> Remote:
        """Add a document; there is no update: replace = drop + put, or put + drop.

        Its errors tell whether a document may be there. Once one may have been handed over, the only error
        is SinkBusy without `retry_after`: the caller lists the store before it puts again. Every other error,
        SinkBusy with `retry_after` among them, says that nothing was taken.
        """
        ...

    async def drop(self, remote_id: str) -> None:
        """Delete a document; absent already is success."""
        ...

    async def look(self, remote_id: str) -> Remote | None:
        """A document as it stands; None: absent."""
        ...

    def all(self) -> AsyncIterator[Remote]:
        """Every document, ours and foreign."""
        ...

    async def close(self) -> None: ...
