"""A list of links in a file as a source: every listed URL is a page, wherever it moved."""

import asyncio
import os
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from afresh.digest.records import FILES
from afresh.errors import SourceError
from afresh.files import read_small_file
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, Outcome, Refused, Request
from afresh.model.records import ListedUrl
from afresh.sources.linklist.parse import LINKS, LinkList, parse_links
from afresh.sources.registry import (
    ClosableWeb,
    ListerBase,
    OpenedSource,
    SourceContext,
    SourceKind,
    WrappedFetcher,
)
from afresh.sources.web.guard import AddressPolicies, AddressPolicy
from afresh.text.plain import shortened
from afresh.urls.files import path_of

MOST_BYTES = 16 * 1024 * 1024
QUIET_SECONDS = 0.5  # a file with a more recent change may still be written
MOST_READS = 40


@dataclass(frozen=True, slots=True)
class StableFile:
    """A file that two reads found the same."""

    data: bytes
    state: tuple[int, ...]  # device, inode, size and time of the last change


async def read_settled(
    file: Path,
    *,
    wall: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> StableFile:
    """Read a file twice, when no process writes to it; raise SourceError if it cannot be read."""
    last: StableFile | None = None
    for _ in range(MOST_READS):
        found = await asyncio.to_thread(_read, file)
        pause = 0.0
        if found is None:
            pause = QUIET_SECONDS / 10
        elif 0 <= (age := wall() - found.state[-1] / 1e9) < QUIET_SECONDS:  # not a time in the future
            pause = QUIET_SECONDS - age
        if found is not None and found == last and not pause:
            return found
        if pause:
            await sleep(pause)
        last = found
    raise SourceError(f"{file} is being written to all the time: try again later")


def _read(file: Path) -> StableFile | None:
    """Return the file as it is now; None if it changed while it was read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            before = _state(os.fstat(descriptor), file)
            data = opened.read(MOST_BYTES + 1)
            after = _state(os.fstat(descriptor), file)
    except FileNotFoundError:
        raise SourceError(f"{file} is not there: everything is kept") from None
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror}): everything is kept") from None
    if len(data) > MOST_BYTES:
        raise SourceError(f"{file} is larger than {MOST_BYTES // 1024 // 1024} MB: is it a list of links?")
    return StableFile(data, after) if before == after and len(data) == after[2] else None


def _state(found: os.stat_result, file: Path) -> tuple[int, ...]:
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(f"{file} is no ordinary file: everything is kept")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


MOST_MOVES = 5
_NAMED = 3  # moved URLs that a note names
_SHOWN = 120  # characters of a URL in a note


class LinkLister(ListerBase):
    """Lists the URLs of a file; an unreadable file or one without URLs is an error, not "all gone".

    `may_be_empty`: an empty file is no error, as long as it never listed anything.
    """

    kind = LINKS  # every page is requested by itself, so there is no mark of the whole

    def __init__(
        self,
        file: Path,
        *,
        expects_links: bool = False,
        may_be_empty: bool = False,
        read: Callable[[Path], Awaitable[StableFile]] = read_settled,
    ) -> None:
        self._file = file
        self._expects_links = expects_links  # it listed something before
        self._may_be_empty = may_be_empty and not expects_links
        self._read = read
        self._list: LinkList | None = None
        self.moved: dict[str, str] = {}  # listed URLs that moved permanently in this run, and where to

    @property
    def name(self) -> str:
        """Return the name of the file, for messages."""
        return self._file.name

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """Return notes about lines of the file, and about URLs that moved."""
        notes = [f"{self.name} {note}" for note in (self._list.notes if self._list else ())]
        if self.moved:
            first = islice(self.moved.items(), _NAMED)
            named = ", ".join(f"{shortened(url, _SHOWN)} → {shortened(to, _SHOWN)}" for url, to in first)
            more = f" and {len(self.moved) - _NAMED} more" if len(self.moved) > _NAMED else ""
            notes.append(f"moved for good, and read where they are now: {named}{more}")
        return notes

    async def list(self) -> AsyncIterator[ListedUrl]:
        """Yield every URL of the file once, in its order."""
        self._list = await self._parsed()
        for url in self._list.urls:
            yield ListedUrl(url, 0)

    async def lists(self, url: str) -> bool:
        """Return whether the file lists a URL; it is read once per run."""
        if self._list is None:
            self._list = await self._parsed()
        return url in self._list.lines

    async def _parsed(self) -> LinkList:
        settled = await self._read(self._file)
        found = await asyncio.to_thread(parse_links, settled.data)
        if found.lines or (self._may_be_empty and not found.refused):
            return found
        said = f"{self._file} lists no address" + (f" ({found.refused[0]})" if found.refused else "")
        if not self._expects_links:
            raise SourceError(f"{said}: write one http or https address on each line")
        raise SourceError(
            f"{said} although it did before, so everything is kept; `afresh remove` forgets a source"
        )


class LinkListFetcher(WrappedFetcher):
    """Fetches what the file lists; what it no longer lists is gone, without a request.

    `never_gone`: a listed URL stays a page of the digest, whatever a server responds.
    """

    def __init__(self, web: ClosableWeb, lister: LinkLister, *, never_gone: bool = False) -> None:
        super().__init__(web)
        self._lister = lister
        self._never_gone = never_gone

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a listed URL, or its target if it moved; the page keeps the listed URL."""
        try:
            listed = await self._lister.lists(request.url)
        except SourceError as error:
            return Failed(outcome=Outcome.FAILED, reason=str(error), hopeless=True)
        if not listed:
            return Gone(status_code=None, reason=f"no longer listed in {self._lister.name}")
        seen = await self._web.fetch(request)
        seen = await self._after_moves(request, seen) if isinstance(seen, Moved) else seen
        return _one_check(seen) if self._never_gone else seen

    async def _after_moves(self, request: Request, seen: Fetched) -> Fetched:
        """Return the content of the URL that a listed URL moved to."""
        validators = request.validators
        if validators is not None:  # they name their issuer, so that no other URL gets them
            validators = replace(validators, url=validators.url or request.url)
        chain = [request.url]
        while isinstance(seen, Moved):
            if ended := _end_of(seen, chain):
                return ended
            chain.append(seen.to)
            seen = await self._web.fetch(Request(url=seen.to, validators=validators, root=request.url))
        self._lister.moved[request.url] = chain[-1]
        return _told(seen, chain[-1])

    async def crawl_delay(self, url: str) -> float | None:
        """Return the seconds between requests that a site asks for; None if it is not requested at all."""
        try:
            listed = await self._lister.lists(url)
        except SourceError:
            return None
        return await self._web.crawl_delay(url) if listed else None


def _end_of(seen: Moved, chain: list[str]) -> Refused | Failed | None:
    """Return why a move is not followed further, or None if it is."""
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
    """Return the result of the URL that a listed URL moved to as the result of the listed URL."""
    match seen:
        case Body():
            validators = seen.validators
            return replace(seen, validators=replace(validators, url=validators.url or to))
        case Gone():
            return replace(seen, reason=f"moved to {to}, which is gone ({seen.reason or seen.status_code})")
        case Refused() | Failed():
            return replace(seen, reason=f"moved to {to}: {seen.reason}")
    return seen


Place = TypeVar("Place", bound=Hashable)


class PerUrlFetcher(Generic[Place]):
    """Fetches each URL through a client with the policy of that URL; clients are created when first needed.

    Clients are not shared between policies: a connection that is kept open is not checked again.
    """

    def __init__(
        self, place_of: Callable[[str], Awaitable[Place]], make: Callable[[Place], ClosableWeb]
    ) -> None:
        self._place_of = place_of
        self._make = make
        self._gates: dict[Place, ClosableWeb] = {}

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a page, or the URL that a root moved to."""
        return await (await self._gate(request.root or request.url)).fetch(request)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Return why robots.txt forbids a page, or None if it does not."""
        return await (await self._gate(url)).refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        """Return the seconds between requests that a site asks for."""
        return await (await self._gate(url)).crawl_delay(url)

    def state(self, origin: str) -> str:
        """Return the state of the robots.txt of an origin; "unknown" if it was not requested."""
        known = (gate.state(origin) for gate in self._gates.values())
        return next((state for state in known if state != "unknown"), "unknown")

    async def close(self) -> None:
        for gate in self._gates.values():
            await gate.close()

    async def _gate(self, root: str) -> ClosableWeb:
        place = await self._place_of(root)
        if place not in self._gates:
            self._gates[place] = self._make(place)
        return self._gates[place]


MAX_LIST_BYTES = 16 * 1024 * 1024


def _one_check(seen: Fetched) -> Fetched:
    """Return a 404 as a failure, and ignore Retry-After."""
    match seen:
        case Gone(status_code=int(code)):
            reason = seen.reason or f"{code}: there is nothing at this address"
            return Failed(outcome=Outcome.FAILED, reason=reason, status_code=code)
        case Failed():
            return replace(seen, retry_after=None)
    return seen


def is_filled(place: Path | None, name: str) -> bool:
    """Return whether a folder is not empty, or whether a list has URLs."""
    with suppress(OSError):
        if place is not None:
            return any(place.iterdir()) if name == FILES else bool(typed_links(place))
    return False


def typed_links(links: Path | None) -> Mapping[str, str]:
    """Return the listed URLs, each as the list writes it; empty if the list cannot be read."""
    with suppress(OSError):
        return parse_links(read_small_file(links, MAX_LIST_BYTES)).typed if links is not None else {}
    return {}


def open_links(context: SourceContext) -> OpenedSource:
    """Open a list of links; each URL may lead to any public site, and to what network.allow opens for it."""
    from afresh.sources.web.lister import open_client

    def open_within(policy: AddressPolicy) -> ClosableWeb:
        other, before = replace(context, policy=policy), context.notes
        gate = open_client(other)
        context.notes = lambda: (*before(), *other.notes())
        return gate

    network = context.config.network
    reach = AddressPolicies(network.allow, pins=False, seconds=network.connect_seconds)
    lister = LinkLister(
        Path(path_of(context.root)), expects_links=context.listed, may_be_empty=context.for_kb
    )
    return LinkListFetcher(
        PerUrlFetcher(reach.policy_at, open_within), lister, never_gone=context.for_kb
    ), lister


KIND = SourceKind(open=open_links)
