"""The kinds of sources: how each is recognised and opened, and with which context.

A kind is an entry point of the group `afresh.sources`; other packages add theirs (docs/howto/plugins.md).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from afresh.dataclass import dataclass, field
from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Refused, Validators
from afresh.model.labels import check_name, name_for
from afresh.plugins import BUILT_IN, SOURCES, load_plugin
from afresh.ports import Clock, Lister, Web

if TYPE_CHECKING:
    from afresh.config import Config
    from afresh.extract.pool.pool import ParserPool
    from afresh.sources.web.guard import AddressPolicy
    from afresh.sources.web.robots import RobotsFetcher
    from afresh.urls.scope import Rules

Refusal = Callable[[str, str], Awaitable[Refused | Failed | None]]


class ClosableWeb(Web, Protocol):
    """A web that holds connections or processes."""

    async def close(self) -> None: ...


OpenedSource = tuple[ClosableWeb, Lister]


def local_body(url: str, data: bytes, validators: Validators) -> Body:
    return Body(url=url, data=data, media_type="", validators=validators, status_code=None, proven=True)


class LocalFetcher:
    """Base of fetchers without a server: no robots.txt, no delay, nothing to close."""

    async def refusal(self, url: str) -> Refused | Failed | None:
        return None

    async def crawl_delay(self, url: str) -> float | None:
        return 0.0

    def state(self, origin: str) -> str:
        return "open"

    async def close(self) -> None:
        pass


class WrappedFetcher:
    """Base of fetchers that change the results of another one."""

    def __init__(self, web: ClosableWeb) -> None:
        self._web = web

    async def refusal(self, url: str) -> Refused | Failed | None:
        return await self._web.refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        return await self._web.crawl_delay(url)

    def state(self, origin: str) -> str:
        return self._web.state(origin)

    async def close(self) -> None:
        await self._web.close()


class ListerBase:
    """Base of listers whose listing names every page, so that no links are followed."""

    mark: str | None = None  # of the listed state
    unchanged = False  # the state is that of the last mark, and nothing was listed
    listing_errors: Sequence[str] = ()
    dropped: Mapping[str, int] = MappingProxyType({})
    notes: Sequence[str] = ()

    def walks(self, url: str) -> bool:
        return False

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a URL is not part of the source; files that the rules leave out count as gone."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind of source."""

    open: "Callable[[SourceContext], OpenedSource]"  # returns what fetches its pages, and what lists them
    recognise: Callable[[str], str | None] | None = None  # the root that a target means
    name_of: Callable[[str], str] | None = None  # the name of a source without one, from its root
    settings: type[Any] | None = None  # a dataclass of fields of config.spec: the section `plugins.KIND`
    is_remote_safe: bool = False  # whether clients of the server may add sources of this kind


@dataclass(slots=True)
class SourceContext:
    """The context in which a source is opened, and what is known of it once it is open."""

    config: "Config"  # with the settings of the source
    rules: "Rules"
    clock: Clock
    parsers: "ParserPool"
    last_mark: str | None  # of the state that was read last
    policy: "AddressPolicy"  # where requests may go
    anonymous: bool = True  # without the operator's keys
    full: bool = False
    for_kb: bool = False  # a source of the digest, which has its own rules for pages
    kind: str = ""
    listed: bool = False  # earlier listings named pages
    modified: Callable[[str], datetime | None] = field(default=lambda url: None)  # as the source says
    has_change_dates: bool = False  # whether a listing shows which pages changed lately
    notes: Callable[[], Sequence[str]] = tuple  # about rendered pages
    engine: Callable[[], str | None] = field(default=lambda: None)  # of the browser for this site
    trim: Callable[[str], str] = str  # the URL under which the target of a link is stored; first that of the rules

    def __post_init__(self) -> None:
        self.trim = self.rules.trim

    @property
    def root(self) -> str:
        return self.rules.root

    @property
    def mark(self) -> str | None:
        """Return the mark of the last listing; None if everything is read again."""
        return None if self.full else self.last_mark

    @property
    def settings(self) -> Any:
        """Return the section `plugins.KIND`, with defaults for what is not set."""
        section = load_source_kind(self.kind).settings
        return self.config.plugins.get(self.kind) or (section() if section else None)

    def open(self, kind: str, *, listed: bool = False) -> OpenedSource:
        """Open a source of a kind; `listed`: earlier listings named pages."""
        self.kind, self.listed = kind, listed
        return load_source_kind(kind).open(self)

    def client(self, *, paced: bool = True) -> "RobotsFetcher":
        """Return the guarded client for any public URL; without `paced`, the caller limits the rate."""
        from afresh.sources.web.lister import open_client

        return open_client(self, paced=paced)


def load_source_kind(kind: str) -> SourceKind:
    """Return a kind of source; raise SourceError if none of that name is installed."""
    found = load_plugin(SOURCES, kind, SourceKind)
    if found is None:
        raise SourceError(f"this afresh cannot look at a source of the kind {kind}; update it")
    return found


def name_of_root(root: str, kind: str) -> str:
    """Return the name of a source that was added without one."""
    if kind in BUILT_IN[SOURCES]:
        return name_for(root, kind)
    name_of = load_source_kind(kind).name_of
    return check_name(name_of(root) if name_of else kind)
