"""Read a file with a list of links as a source: each listed URL is a page, even if it redirects."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from afresh.dataclass import dataclass, replace
from afresh.digest.records import FILES
from afresh.errors import SourceError
from afresh.files import open_regular_file, read_small_file
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, Refused, Request
from afresh.model.records import ListedUrl
from afresh.sources.linklist.parse import LINKS, LinkList, parse_links
from afresh.sources.registry import ClosableWeb, ListerBase, OpenedSource, SourceContext, SourceKind
from afresh.sources.web.guard import AddressPolicies, AddressPolicy
from afresh.text.plain import shortened
from afresh.urls.files import path_of

MAX_LIST_BYTES = 16 * 1024 * 1024
QUIET_SECONDS = 0.5  # after a more recent change, a process may still be writing the file
MAX_READS = 40
MAX_MOVES = 5
_MAX_NAMED = 3  # moved URLs that a note names
_MAX_URL_CHARS = 120  # characters of a URL in a note


@dataclass(frozen=True, slots=True)
class StableFile:
    """The content and state of a file that did not change between two readings."""

    data: bytes
    state: tuple[int, ...]  # device, inode, size and time of the last change


async def read_stable_file(
    file: Path, *, wall: Callable[[], float] = time.time, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> StableFile:
    """Return a file once two readings are equal; raise SourceError if it cannot be read or keeps changing."""
    last: StableFile | None = None
    for _ in range(MAX_READS):
        found = await asyncio.to_thread(_read, file)
        pause = 0.0
        if found is None:
            pause = QUIET_SECONDS / 10
        elif 0 <= (age := wall() - found.state[-1] / 1e9) < QUIET_SECONDS:  # negative: the time is in the future
            pause = QUIET_SECONDS - age
        if found is not None and found == last and not pause:
            return found
        if pause:
            await sleep(pause)
        last = found
    raise SourceError(f"{file} changed during every attempt to read it: try again later")


def _read(file: Path) -> StableFile | None:
    """Return the current content of a file; None if it changed while it was being read."""
    try:
        with open_regular_file(file) as opened:
            before = _state(os.fstat(opened.fileno()))
            data = opened.read(MAX_LIST_BYTES + 1)
            after = _state(os.fstat(opened.fileno()))
    except FileNotFoundError:
        raise SourceError(f"{file} does not exist: all stored pages are kept") from None
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror}): all stored pages are kept") from None
    if len(data) > MAX_LIST_BYTES:
        raise SourceError(f"{file} is larger than {MAX_LIST_BYTES // 1024 // 1024} MB: is it a list of links?")
    return StableFile(data, after) if before == after and len(data) == after[2] else None


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class LinkLister(ListerBase):
    """Lists the URLs in a file; raises SourceError if it has none, unless `may_be_empty` and it never had any."""

    kind = LINKS

    def __init__(self, file: Path, *, expects_links: bool = False, may_be_empty: bool = False) -> None:
        self._file, self.name = file, file.name
        self._expects_links = expects_links  # an earlier listing had URLs
        self._may_be_empty = may_be_empty and not expects_links
        self._list: LinkList | None = None
        self.moved: dict[str, str] = {}  # listed URLs that moved permanently in this run, and where to

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        notes = [f"{self.name} {note}" for note in (self._list.notes if self._list else ())]
        if self.moved:
            first = islice(self.moved.items(), _MAX_NAMED)
            named = ", ".join(
                f"{shortened(url, _MAX_URL_CHARS)} → {shortened(to, _MAX_URL_CHARS)}" for url, to in first
            )
            more = f" and {len(self.moved) - _MAX_NAMED} more" if len(self.moved) > _MAX_NAMED else ""
            notes.append(f"moved permanently and read at the new URL: {named}{more}")
        return notes

    async def list(self) -> AsyncIterator[ListedUrl]:
        self._list = await self._parsed()
        for url in self._list.lines:
            yield ListedUrl(url, 0)

    async def lists(self, url: str) -> bool:
        if self._list is None:
            self._list = await self._parsed()
        return url in self._list.lines

    async def _parsed(self) -> LinkList:
        stable = await read_stable_file(self._file)
        found = await asyncio.to_thread(parse_links, stable.data)
        if found.lines or (self._may_be_empty and not found.refused):
            return found
        problem = f"{self._file} lists no URL" + (f" ({found.refused[0]})" if found.refused else "")
        if not self._expects_links:
            raise SourceError(f"{problem}: write one http or https URL on each line")
        raise SourceError(f"{problem} although it did before: all pages are kept; `afresh remove` removes a source")


class LinkListFetcher:
    """Fetches the URLs in a list of links; with `never_gone`, they stay pages even if the server answers 404."""

    def __init__(self, web: ClosableWeb, lister: LinkLister, *, never_gone: bool = False) -> None:
        self._web = web
        self.refusal = web.refusal
        self.state = web.state
        self.close = web.close
        self._lister = lister
        self._never_gone = never_gone

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a listed URL and follow permanent redirects; the page keeps the listed URL."""
        try:
            listed = await self._lister.lists(request.url)
        except SourceError as error:
            return Failed(reason=str(error), hopeless=True)
        if not listed:
            return Gone(status_code=None, reason=f"no longer listed in {self._lister.name}")
        seen = await self._web.fetch(request)
        seen = await self._after_moves(request, seen) if isinstance(seen, Moved) else seen
        return _one_check(seen) if self._never_gone else seen

    async def _after_moves(self, request: Request, seen: Fetched) -> Fetched:
        validators = request.validators
        if validators is not None:  # with their URL, so that they are sent to no other URL
            validators = replace(validators, url=validators.url or request.url)
        chain = [request.url]
        while isinstance(seen, Moved):
            if refused := _why_not_follow(seen, chain):
                return refused
            chain.append(seen.to)
            seen = await self._web.fetch(Request(url=seen.to, validators=validators, root=request.url))
        self._lister.moved[request.url] = chain[-1]
        return _as_listed(seen, chain[-1])

    async def crawl_delay(self, url: str) -> float | None:
        """Return the delay that the site asks for; None if it is unknown or the URL is no longer in the list."""
        try:
            listed = await self._lister.lists(url)
        except SourceError:
            return None
        return await self._web.crawl_delay(url) if listed else None


def _why_not_follow(seen: Moved, chain: list[str]) -> Refused | Failed | None:
    way = " → ".join((*chain, seen.to))
    if seen.to in chain or len(chain) > MAX_MOVES:
        what = "redirect loop" if seen.to in chain else f"more than {MAX_MOVES} redirects"
        return Refused(reason=f"{what}: {way}", status_code=seen.status_code)
    if seen.retry_after:
        reason = f"redirects to {seen.to} after a wait of {seen.retry_after:g} s"
        return Failed(reason=reason, status_code=seen.status_code, retry_after=seen.retry_after)
    return None


def _as_listed(seen: Fetched, to: str) -> Fetched:
    """Convert the result for `to`, the new URL of a moved page, to a result for its listed URL."""
    match seen:
        case Body():
            validators = seen.validators
            return replace(seen, validators=replace(validators, url=validators.url or to))
        case Gone():
            return replace(seen, reason=f"moved to {to}, which is gone ({seen.reason or seen.status_code})")
        case Refused() | Failed():
            return replace(seen, reason=f"moved to {to}: {seen.reason}")
    return seen


class PerPolicyFetcher:
    """Fetches each URL with the client of its address policy, as reused connections are not checked again."""

    def __init__(self, policies: AddressPolicies, make: Callable[[AddressPolicy], ClosableWeb]) -> None:
        self._policies = policies
        self._make = make
        self._clients: dict[AddressPolicy, ClosableWeb] = {}

    async def fetch(self, request: Request) -> Fetched:
        return await (await self._client(request.root or request.url)).fetch(request)

    async def refusal(self, url: str) -> Refused | Failed | None:
        return await (await self._client(url)).refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        return await (await self._client(url)).crawl_delay(url)

    def state(self, origin: str) -> str:
        """Return the state of the robots.txt of an origin; "unknown" if none was requested."""
        known = (client.state(origin) for client in self._clients.values())
        return next((state for state in known if state != "unknown"), "unknown")

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def _client(self, root: str) -> ClosableWeb:
        policy = await self._policies.policy_at(root)
        if policy not in self._clients:
            self._clients[policy] = self._make(policy)
        return self._clients[policy]


def _one_check(seen: Fetched) -> Fetched:
    """Convert a 404 to a failure, to keep the page; drop Retry-After, which would cause a retry in the same run."""
    match seen:
        case Gone(status_code=int(code)):
            reason = seen.reason or f"{code}: the page does not exist"
            return Failed(reason=reason, status_code=code)
        case Failed():
            return replace(seen, retry_after=None)
    return seen


def is_filled(place: Path | None, name: str) -> bool:
    """Return whether the folder (if `name` is FILES) or list of links (if LINKS) at `place` has any content."""
    with suppress(OSError):
        if place is not None:
            return any(place.iterdir()) if name == FILES else bool(typed_links(place))
    return False


def typed_links(links: Path | None) -> Mapping[str, str]:
    """Return the canonical URLs in a list, each with its original text; none if the list is unreadable."""
    with suppress(OSError):
        return parse_links(read_small_file(links, MAX_LIST_BYTES)).typed if links is not None else {}
    return {}


def open_links(context: SourceContext) -> OpenedSource:
    """Open a list of links, which may lead to any public site and to hosts that network.allow permits."""
    from afresh.sources.web.lister import open_client

    def open_within(policy: AddressPolicy) -> ClosableWeb:
        other, before = replace(context, policy=policy), context.notes
        gate = open_client(other)
        context.notes = lambda: (*before(), *other.notes())
        return gate

    network = context.config.network
    policies = AddressPolicies(network.allow, pins=False, seconds=network.connect_seconds)
    lister = LinkLister(Path(path_of(context.root)), expects_links=context.listed, may_be_empty=context.for_kb)
    return LinkListFetcher(PerPolicyFetcher(policies, open_within), lister, never_gone=context.for_kb), lister


KIND = SourceKind(open=open_links)
