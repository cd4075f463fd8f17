"""Load the kinds of sources, and define how each is recognised and opened.

A kind is an entry point in the group `afresh.sources`; plug-ins add further ones (docs/howto/plugins.md).
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
    from afresh.sources.web.fetcher import WebFetcher
    from afresh.sources.web.guard import AddressPolicy
    from afresh.urls.scope import Rules

Refusal = Callable[[str, str], Awaitable[Refused | Failed | None]]


class ClosableWeb(Web, Protocol):
    async def close(self) -> None: ...


OpenedSource = tuple[ClosableWeb, Lister]


def local_body(url: str, data: bytes, validators: Validators) -> Body:
    return Body(url=url, data=data, media_type="", validators=validators, status_code=None, proven=True)


class LocalFetcher:
    """Base of fetchers of local files: no robots.txt, no delay, nothing to close."""

    async def refusal(self, url: str) -> Refused | Failed | None:
        return None

    async def crawl_delay(self, url: str) -> float | None:
        return 0.0

    def state(self, origin: str) -> str:
        return "open"

    async def close(self) -> None:
        pass


class ListerBase:
    """Base of listers that list every page, so that no links are followed."""

    mark: str | None = None  # a text that identifies this state of the listing, for the next run
    unchanged = False  # the state is equal to that of the last mark, so nothing was listed
    listing_errors: Sequence[str] = ()
    dropped: Mapping[str, int] = MappingProxyType({})
    notes: Sequence[str] = ()

    def walks(self, url: str) -> bool:
        return False

    def refusal(self, url: str, depth: int) -> str | None:
        """Return None: files that the rules exclude are not listed in the first place."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    open: "Callable[[SourceContext], OpenedSource]"  # returns the fetcher and the lister of a source
    recognise: Callable[[str], str | None] | None = None  # returns the root that a target names; None if it names none
    name_of: Callable[[str], str] | None = None  # returns the default name of a source with this root
    settings: type[Any] | None = None  # a dataclass of fields of config.spec: the section `plugins.KIND`
    is_remote_safe: bool = False  # clients of the server may add sources of this kind


@dataclass(slots=True)
class SourceContext:
    """What a source kind needs to open a source; the kind itself sets `modified` and the fields after it."""

    config: "Config"  # includes the source's own settings
    rules: "Rules"
    clock: Clock
    parsers: "ParserPool"
    last_mark: str | None  # `mark` of the lister after the last listing; None: not known
    policy: "AddressPolicy"  # decides which IP addresses may be connected to
    anonymous: bool = True  # do not use the operator's keys
    full: bool = False  # read everything again, without the mark of the last listing
    for_kb: bool = False  # the source belongs to a digest (`init-kb`), which has its own rules for pages
    kind: str = ""
    listed: bool = False  # an earlier listing had pages
    modified: Callable[[str], datetime | None] = field(default=lambda url: None)  # last change of a page, if listed
    has_change_dates: bool = False  # the listing shows which pages changed
    notes: Callable[[], Sequence[str]] = tuple  # returns notes about rendered pages
    engine: Callable[[], str | None] = field(default=lambda: None)  # returns the browser engine for this site
    trim: Callable[[str], str] = str  # returns the URL under which a link's target is stored; at first `rules.trim`

    def __post_init__(self) -> None:
        self.trim = self.rules.trim

    @property
    def root(self) -> str:
        return self.rules.root

    @property
    def mark(self) -> str | None:
        """Return the text that identifies the listed state of the last run; None if all is read again."""
        return None if self.full else self.last_mark

    @property
    def settings(self) -> Any:
        """Return the settings `plugins.KIND` with their defaults."""
        section = load_source_kind(self.kind).settings
        return self.config.plugins.get(self.kind) or (section() if section else None)

    def open(self, kind: str, *, listed: bool = False) -> OpenedSource:
        """Open the source as this kind; if `listed`, an earlier listing had pages, so a missing listing is an error."""
        self.kind, self.listed = kind, listed
        return load_source_kind(kind).open(self)

    def client(self, *, paced: bool = True) -> "WebFetcher":
        """Return a client that respects robots.txt; without `paced`, the caller limits the rate."""
        from afresh.sources.web.lister import open_client

        return open_client(self, paced=paced)


def load_source_kind(kind: str) -> SourceKind:
    found = load_plugin(SOURCES, kind, SourceKind)
    if found is None:
        raise SourceError(f"sources of kind {kind} are not supported: update afresh, or install the plug-in for them")
    return found


def name_of_root(root: str, kind: str) -> str:
    if kind in BUILT_IN[SOURCES]:
        return name_for(root, kind)
    name_of = load_source_kind(kind).name_of
    return check_name(name_of(root) if name_of else kind)
