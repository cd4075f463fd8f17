"""The tree of settings: frozen sections, each value with its default, its range and what it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from afresh import HOME_PAGE, __version__
from afresh.config import forms
from afresh.config.access import AccessSettings
from afresh.config.ai import AiSettings
from afresh.config.browser import BrowserSettings
from afresh.config.embedding import EmbeddingSettings
from afresh.config.files import FilesSettings
from afresh.config.git import GitSettings
from afresh.config.github import GithubSettings
from afresh.config.kb import KbSettings
from afresh.config.links import LinksSettings
from afresh.config.notify import NOTIFY, NotifySettings
from afresh.config.places import network_place
from afresh.config.retention import RetentionSettings
from afresh.config.server import ServerSettings
from afresh.config.sinks import SINKS, SinkSettings
from afresh.config.spec import Spec, flag, nearest, number, text, texts, whole
from afresh.config.telemetry import TelemetrySettings
from afresh.config.webhooks import WEBHOOKS, WebhookSettings
from afresh.urls.globs import MAX_GLOBS

DAY = 86_400
YEAR = 366 * DAY


def default_store_url() -> str:
    """One SQLite file in the user's data folder; nothing if this user has no home."""
    import platformdirs

    try:
        folder = Path(platformdirs.user_data_dir("afresh", appauthor=False))
    except RuntimeError:
        return ""
    return f"sqlite:///{(folder / 'afresh.db').as_posix()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where everything is kept."""

    url: str = field(
        default_factory=default_store_url,
        repr=False,  # may hold a password
        metadata={
            "spec": Spec(
                kind="text",
                doc="where everything is kept: `sqlite:///FILE`, three slashes and then the path, "
                "or `postgresql://USER@HOST/DATABASE`",
                form=forms.store_url,
            )
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """How requests leave this machine."""

    allow: tuple[str, ...] = texts(
        "what may be reached although it is private or local, by sources that start there: blocks of "
        "addresses, addresses and host names, the last two also with a port, as `10.0.0.0/8`, "
        "`127.0.0.1:8000`, `docs.internal`",
        form=network_place,
    )
    contact: str = text(
        HOME_PAGE,
        "where the owners of sites complain, as a URL or an e-mail address: requests introduce themselves as "
        "`afresh/VERSION (+CONTACT)`",
        form=forms.contact,
    )
    user_agent: str | None = text(
        None,
        "how requests introduce themselves instead, as it is given; null: by `network.contact`",
        optional=True,
        form=forms.header,
    )
    timeout_seconds: float = number(60.0, "the longest one request may take in all", 0.1, 3600)
    connect_seconds: float = number(10.0, "the longest a connection may take to open", 0.1, 600)
    idle_seconds: float = number(20.0, "the longest pause between two pieces of an answer", 0.1, 600)
    max_body_bytes: int = whole(
        10_485_760, "the largest body that is read, counted after decompression", 1, 1_073_741_824
    )

    @property
    def agent(self) -> str:
        """The User-Agent of every request."""
        return self.user_agent or f"afresh/{__version__} (+{self.contact})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """What belongs to a source and how politely it is read; flags of `crawl` override it per source."""

    concurrency: int = whole(3, "requests at a time per host", 1, 64)
    delay_seconds: float = number(0.0, "pause after an answer before the next request to its host", 0, 3600)
    scope: str = text(
        "subpages",
        "which links belong: below the start address, on its host, or on its registrable domain",
        choices=("subpages", "hostname", "domain"),
    )
    max_pages: int = whole(10_000, "pages of one source at most", 1, 10_000_000)
    order: str = text(
        "breadth",
        "which new pages are read first: `breadth` near the start address, `score` those that the best "
        "links lead to; it matters where `crawl.max_pages` leaves some out and needs `links.keywords`",
        choices=("breadth", "score"),
    )
    max_depth: int = whole(20, "links to follow from the start address at most", 0, 1000)
    max_url_params: int | None = whole(
        None,
        "query parameters an address keeps, the rest is stripped; null: all of them",
        0,
        1000,
        optional=True,
    )
    max_path_components: int | None = whole(
        10, "addresses with more path components are left out; null: no limit", 0, 1000, optional=True
    )
    max_per_pattern: int | None = whole(
        200,
        "pages of one pattern such as `/cal/{n}/{n}` that links may lead to; more look endless; null: any",
        0,
        10_000_000,
        optional=True,
    )
    render: str = text(
        "auto",
        "show pages in a browser before they are read: `auto` those that are empty without their scripts or "
        "turn plain clients away, `always` every HTML page ([rendering.md](rendering.md))",
        choices=("auto", "never", "always"),
    )
    respect_robots: bool = flag(True, "obey robots.txt")
    respect_noindex: bool = flag(True, "leave out pages that ask not to be indexed")
    respect_nofollow: bool = flag(True, "do not follow links marked nofollow")
    include: tuple[str, ...] = texts(
        "only addresses that match one of these patterns, each of at most 200 characters",
        form=forms.glob,
        most=MAX_GLOBS,
    )
    exclude: tuple[str, ...] = texts(
        "no addresses that match one of these patterns, each of at most 200 characters",
        form=forms.glob,
        most=MAX_GLOBS,
    )
    hidden_links: bool = flag(
        True,
        "also follow links that no anchor shows: in Drupal settings, Next and Nuxt data, JSON-LD, "
        "`<link rel=next>`, `onclick`, `data-href`, `formaction` and jump menus",
    )
    sitemaps: bool = flag(
        True, "also look at the addresses that the site's sitemaps, llms.txt and feeds list"
    )
    markdown: str = text(
        "auto",
        "read new pages that the site lists as Markdown where it offers that; `never`: as HTML",
        choices=("auto", "never"),
    )
    trust_lastmod: bool = flag(
        False,
        "do not ask for pages that the site's sitemap or feed says did not change since the last look, "
        "until `policy.reread_seconds` have passed",
    )
    probe: bool = flag(
        True, "ask each site once a run for an address that cannot exist, to know its error page"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """When a page is looked at again, and what it takes to delete one."""

    gone_after: int = whole(1, "answers 404 or 410 in a row before a page is deleted", 1, 1000)
    missing_after: int = whole(
        3, "complete runs in a row that did not reach a page before it is deleted", 1, 1000
    )
    brake_percent: float = number(
        10.0, "a run that would delete more than this share waits for `confirm`", 0, 100
    )
    brake_pages: int = whole(10, "… unless it is at most this many pages", 0, 10_000_000)
    lease_seconds: float = number(
        60.0, "how long a worker may be silent before its pages are taken over", 1, DAY
    )
    heartbeat_seconds: float = number(10.0, "how often a worker says it is alive", 0.1, 3600)
    recheck_seconds: float = number(float(DAY), "age at which a page is due again", 1, YEAR)
    max_age_seconds: float | None = number(
        None,
        "time since its last answer at which a page is due, however long failures make it wait; null: off",
        1,
        YEAR,
        optional=True,
    )
    budget_per_run: int | None = whole(
        None,
        "pages of one source that `refresh --due` looks at, longest due first, the rest waits; null: all",
        1,
        10_000_000,
        optional=True,
    )
    adapt: bool = flag(
        False, "look less often at pages that stay as they are: after half the time since they last changed"
    )
    adapt_max_seconds: float = number(30.0 * DAY, "the longest wait that `policy.adapt` leads to", 1, YEAR)
    schedule: str | None = text(
        None,
        "when `afresh schedule` looks at a source, and `refresh --due` finds it due: five fields of cron, "
        "`@daily`, `every 6h`, or `auto`; null: whenever a page is due ([schedules.md](schedules.md))",
        optional=True,
        form=forms.schedule,
    )
    time_zone: str = text("UTC", "the time zone of `policy.schedule`", form=forms.zone)
    jitter_seconds: float = number(
        0.0, "a scheduled run starts up to this much later, each source by its own part of it", 0, DAY
    )
    budget: str = text(
        "500/h", "pages of a source that `schedule: auto` looks at in a length of time", form=forms.budget
    )
    backoff_base_seconds: float = number(
        2.0, "wait after a first failure; it doubles with each further one", 0, DAY
    )
    backoff_max_seconds: float = number(float(DAY), "the longest wait after failures", 0, YEAR)
    retries: int = whole(2, "further looks within one run after a failure that may pass", 0, 20)
    doubt: bool = flag(
        True, "keep what is on record when a page shows an error page, a wall or nothing, although with a 200"
    )
    reread_seconds: float = number(
        30.0 * DAY,
        'age at which a page is read anew, whatever "not modified" says; 0: never',
        0,
        YEAR,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """What is kept of a page besides its index."""

    body: str = text(
        "markdown",
        "`markdown` keeps the text of each page; `none` keeps only the words, for search; no text",
        choices=("markdown", "none"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is written down about the work itself."""

    file: str | None = text(
        None,
        "a file that gets a line for every event; null: none (`AFRESH_LOG` for short)",
        optional=True,
        form=forms.file,
    )
    level: str = text(
        "info", "the least that goes into the file", choices=("debug", "info", "warning", "error")
    )
    format: str = text("text", "a line of text, or one JSON object, per event", choices=("text", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, read once; each part of afresh is handed its own section."""

    store: StoreSettings = field(default_factory=StoreSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    files: FilesSettings = field(default_factory=FilesSettings)
    git: GitSettings = field(default_factory=GitSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    ai: AiSettings = field(default_factory=AiSettings)
    links: LinksSettings = field(default_factory=LinksSettings)
    github: GithubSettings = field(default_factory=GithubSettings)
    kb: KbSettings = field(default_factory=KbSettings)
    sinks: Mapping[str, SinkSettings] = field(default_factory=dict)
    server: ServerSettings = field(default_factory=ServerSettings)
    webhooks: Mapping[str, WebhookSettings] = field(default_factory=dict)
    notify: Mapping[str, NotifySettings] = field(default_factory=dict)
    access: AccessSettings = field(default_factory=AccessSettings)
    log: LogSettings = field(default_factory=LogSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    file: Path | None = field(default=None, compare=False)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def with_overrides(self, *partials: Mapping[str, object]) -> "Config":
        """A copy in which the rules and policy of a source take the place of the general settings."""
        from afresh.config.overlay import overlay

        return overlay(self, partials)


SECTIONS = {
    "store": StoreSettings,
    "network": NetworkSettings,
    "crawl": CrawlSettings,
    "browser": BrowserSettings,
    "files": FilesSettings,
    "git": GitSettings,
    "policy": PolicySettings,
    "storage": StorageSettings,
    "retention": RetentionSettings,
    "embedding": EmbeddingSettings,
    "ai": AiSettings,
    "links": LinksSettings,
    "github": GithubSettings,
    "kb": KbSettings,
    "server": ServerSettings,
    "access": AccessSettings,
    "log": LogSettings,
    "telemetry": TelemetrySettings,
}

NAMED = {section.name: section for section in (SINKS, WEBHOOKS, NOTIFY)}

Place = tuple[str, str]  # section and key


@dataclass(slots=True)
class Found:
    """What one layer sets, and where each value came from."""

    values: dict[Place, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, place: Place, value: object, origin: str) -> None:
        """Notes one value."""
        self.values[place] = value
        self.origins[".".join(place)] = origin

    def __or__(self, later: "Found") -> "Found":
        return Found(self.values | later.values, self.origins | later.origins)


def settings() -> dict[Place, Spec]:
    """Every setting with its spec, in the order of the tree."""
    return {
        (name, item.name): item.metadata["spec"] for name, kind in SECTIONS.items() for item in fields(kind)
    }


def suggestion(dotted: str, table: Mapping[Place, Spec]) -> str:
    """`; did you mean crawl.concurrency?` for a key that is almost right or stands in the wrong section."""
    key = dotted.rpartition(".")[2]
    same = next((place for place in table if place[1] == key), None)
    if same:
        return f"; did you mean {'.'.join(same)}?"
    return nearest(
        dotted, [".".join(place) for place in table] + ([*SECTIONS, *NAMED] if "." not in dotted else [])
    )


def replaced(config: Config, values: Mapping[Place, object]) -> Config:
    """A copy of the tree with the given leaves changed; values are already checked."""
    changed: dict[str, Any] = {}
    for name in dict.fromkeys(section for section, _ in values):
        own = {key: value for (section, key), value in values.items() if section == name}
        named = NAMED.get(name)
        changed[name] = named.built(own) if named else replace(getattr(config, name), **own)
    return replace(config, **changed)
