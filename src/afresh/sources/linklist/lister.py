"""A file of links as a source: every address in it is a page of its own, and nothing else is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, Outcome, Refused, Request
from afresh.model.records import Listed
from afresh.sources.linklist.parse import LINKS, LinkList, parse_links
from afresh.sources.linklist.stable_file import Settled, read_settled
from afresh.text.plain import shortened

MOST_MOVES = 5
_NAMED = 3  # moved addresses that a note names
_SHOWN = 120  # characters of an address in a note


class LinkLister:
    """Lists the addresses of a file; if it lists none or cannot be read that is an error, not "all gone".

    `may_be_empty`: a file without a word in it lists nothing, as long as it never did.
    """

    kind = LINKS
    mark: str | None = None  # every page is asked by itself, so there is no state of the whole
    unchanged = False

    def __init__(
        self,
        file: Path,
        *,
        expects_links: bool = False,
        may_be_empty: bool = False,
        read: Callable[[Path], Awaitable[Settled]] = read_settled,
    ) -> None:
        self._file = file
        self._expects_links = expects_links  # it listed something before
        self._may_be_empty = may_be_empty and not expects_links
        self._read = read
        self._list: LinkList | None = None
        self.moved: dict[str, str] = {}  # listed addresses that moved for good in this run, and where to
        self.listing_errors: list[str] = []  # a file that was read was read whole
        self.dropped: Mapping[str, int] = {}

    @property
    def name(self) -> str:
        """The name of the file, as messages tell it."""
        return self._file.name

    @property
    def notes(self) -> list[str]:
        """What is to be said about lines of the file, and about addresses that moved."""
        said = self._list.notes if self._list else []
        return [*(f"{self.name} {note}" for note in said), *self._moves()]

    def _moves(self) -> list[str]:
        first = list(self.moved.items())[:_NAMED]
        named = [f"{shortened(url, _SHOWN)} → {shortened(to, _SHOWN)}" for url, to in first]
        if not named:
            return []
        more = f" and {len(self.moved) - _NAMED} more" if len(self.moved) > _NAMED else ""
        return [f"moved for good, and read where they are now: {', '.join(named)}{more}"]

    async def list(self) -> AsyncIterator[Listed]:
        """Every address of the file once, in its order."""
        self._list = await self._parsed()
        for url in self._list.urls:
            yield Listed(url, 0)

    def walks(self, url: str) -> bool:
        """No page is found by links: the file tells all."""
        return False

    def refusal(self, url: str, depth: int) -> str | None:
        """Nothing is refused beforehand: what is not listed is told as gone."""
        return None

    async def lists(self, url: str) -> bool:
        """Whether the file names an address, as it was when it was first read in this run."""
        if self._list is None:
            self._list = await self._parsed()
        return url in self._list.lines

    async def _parsed(self) -> LinkList:
        settled = await self._read(self._file)
        found = await asyncio.to_thread(parse_links, settled.data)
        if not found.lines and (found.refused or not self._may_be_empty):
            raise SourceError(self._nothing(found))
        return found

    def _nothing(self, found: LinkList) -> str:
        said = f"{self._file} lists no address" + (f" ({found.refused[0]})" if found.refused else "")
        if not self._expects_links:
            return f"{said}: write one http or https address on each line"
        return f"{said} although it did before, so everything is kept; `afresh remove` forgets a source"


class Gate(Protocol):
    """Looks at addresses of any site, obeying robots.txt."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def refusal(self, url: str) -> Refused | Failed | None: ...

    async def crawl_delay(self, url: str) -> float | None: ...

    def state(self, origin: str) -> str: ...

    async def close(self) -> None: ...


class LinkedWeb:
    """Looks at what the file lists; what it lists no longer is gone, and nobody has to be asked."""

    def __init__(self, gate: Gate, lister: LinkLister) -> None:
        self._gate = gate
        self._lister = lister

    async def fetch(self, request: Request) -> Fetched:
        """Look at a listed address, or at where it moved: the page stays the one that is listed."""
        try:
            listed = await self._lister.lists(request.url)
        except SourceError as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error), hopeless=True)
        if not listed:
            return Gone(status_code=None, reason=f"no longer listed in {self._lister.name}")
        seen = await self._gate.fetch(request)
        return await self._after_moves(request, seen) if isinstance(seen, Moved) else seen

    async def _after_moves(self, request: Request, seen: Fetched) -> Fetched:
        """What stands where a listed address moved to."""
        asked = _issued(request)
        chain = [request.url]
        while isinstance(seen, Moved):
            if ended := _end_of(seen, chain):
                return ended
            chain.append(seen.to)
            seen = await self._gate.fetch(Request(url=seen.to, validators=asked.validators, root=request.url))
        self._lister.moved[request.url] = chain[-1]
        return _told(seen, chain[-1])

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why robots.txt keeps us from a page, or None if it does not."""
        return await self._gate.refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that a site asks for; None for one that will not be asked anything."""
        try:
            listed = await self._lister.lists(url)
        except SourceError:
            return None
        return await self._gate.crawl_delay(url) if listed else None

    def state(self, origin: str) -> str:
        """What is known of the robots.txt of an origin."""
        return self._gate.state(origin)

    async def close(self) -> None:
        """Close the wrapped fetcher."""
        await self._gate.close()


def _issued(request: Request) -> Request:
    """The request with validators that name who issued them, so that no other address is sent them."""
    validators = request.validators
    if validators is None:
        return request
    return replace(request, validators=replace(validators, url=validators.url or request.url))


def _end_of(seen: Moved, chain: list[str]) -> Refused | Failed | None:
    """Why a move is not followed further, or None if it is."""
    way = " → ".join((*chain, seen.to))
    if seen.to in chain or len(chain) > MOST_MOVES:
        what = "redirect loop" if seen.to in chain else f"more than {MOST_MOVES} redirects"
        return Refused(outcome=Outcome.FAILED, reason=f"{what}: {way}", status_code=seen.status_code)
    if seen.retry_after:
        reason = f"moved to {seen.to}, to be followed after {seen.retry_after:g} s"
        code = seen.status_code
        return Failed(outcome=Outcome.FAILED, reason=reason, status_code=code, retry_after=seen.retry_after)
    return None


def _told(seen: Fetched, to: str) -> Fetched:
    """An answer of the address that a listed one moved to, as the answer of the listed one."""
    match seen:
        case Body():
            validators = seen.validators
            return replace(seen, validators=replace(validators, url=validators.url or to))
        case Gone():
            return replace(seen, reason=f"moved to {to}, which is gone ({seen.reason or seen.status_code})")
        case Refused() | Failed():
            return replace(seen, reason=f"moved to {to}: {seen.reason}")
    return seen
