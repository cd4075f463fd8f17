"""An archive as a source: its entries are pages, its directory is the listing."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

from afresh.errors import SourceError
from afresh.model.records import Listed
from afresh.ports import Clock
from afresh.sources.archive.paths import Entry, entry_name, entry_url

RACY_SECONDS = 2.0  # a file written so shortly before may be written again without showing it

Ignored = Callable[[str], str | None]  # why the entry of a name is left out, None if it is not


class Archive(Protocol):
    """What a lister asks of an archive (sources/archive/fetcher.py)."""

    async def mark(self) -> tuple[str, float]: ...

    async def entries(self) -> Mapping[str, Entry]: ...


def nothing_ignored(name: str) -> str | None:
    """Leaves out no entry."""
    return None


class ArchiveLister:
    """Lists the files in an archive, with validators that tell whether they changed."""

    kind = "archive"

    def __init__(
        self,
        url: str,
        archive: Archive,
        *,
        clock: Clock,
        mark: str | None = None,
        rules: str = "",
        ignored: Ignored = nothing_ignored,
    ) -> None:
        self._url, self._archive, self._clock = url, archive, clock
        self._earlier, self._rules, self._ignored = mark, rules, ignored
        self.mark: str | None = None  # the file as it was listed, and the rules it was listed by
        self.unchanged = False
        self.dropped: Mapping[str, int] = {}
        self.listing_errors: Sequence[str] = ()
        self.notes: Sequence[str] = ()

    async def list(self) -> AsyncIterator[Listed]:
        """The entries that are pages; SourceError if the archive cannot be read or holds nothing at all."""
        named, written = await self._archive.mark()
        state = f"{named}-{self._rules}"
        self.mark = state if self._clock().timestamp() - written > RACY_SECONDS else None
        self.unchanged = state == self._earlier
        if self.unchanged:
            return
        entries = await self._archive.entries()
        if not entries:
            raise SourceError(f"the archive {self._url} is empty")
        dropped: Counter[str] = Counter()
        for entry in entries.values():
            reason = entry.refusal or self._ignored(entry.name)
            if reason is None:
                yield Listed(entry_url(self._url, entry.name), entry.name.count("/"), entry.validators)
            else:
                dropped[reason] += 1
        self.dropped = dropped

    def walks(self, url: str) -> bool:
        """No page of an archive is found by links: the listing tells all."""
        return False

    def refusal(self, url: str, depth: int) -> str | None:
        """Why an address is not part of the archive, or None; what the rules leave out is told as gone."""
        return "not in the archive" if entry_name(self._url, url) is None else None
