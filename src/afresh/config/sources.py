"""Settings of sources: requests, browser, crawling, policy, storage, files, git, GitHub and retention."""

from dataclasses import dataclass, fields
from pathlib import Path

from afresh import HOME_PAGE, __version__
from afresh.config import forms
from afresh.config.spec import InvalidValue, flag, number, text, texts, whole
from afresh.model.retention import Retention
from afresh.text.quantities import read_duration
from afresh.urls.globs import MAX_GLOBS

ENGINES = ("chromium", "firefox", "webkit")


def _engine(typed: str) -> str:
    if typed not in ENGINES:
        raise InvalidValue(f"expected {', '.join(ENGINES)}, got {typed!r}")
    return typed


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """How pages are shown that need a browser; which those are, `crawl.render` says."""

    engines: tuple[str, ...] = texts(
        "the engines that are tried on the home page of a site, the first that shows it is kept",
        default=ENGINES,
        form=_engine,
    )
    executable_path: str | None = text(
        None, "the Chromium to start; null: Playwright's own, or else that of the system", form=forms.file
    )
    channel: str | None = text(
        None,
        "a branded browser that Playwright knows, such as `chrome`; null: none",
        operator=True,
        form=forms.name,
    )
    sandbox: str = text(
        "auto",
        "whether Chromium locks up its pages; `auto`: yes, but not for root, for whom it does not start so",
        choices=("auto", "on", "off"),
        operator=True,
    )
    pages: int = whole(2, "pages that are shown at the same time", 1, 32)
    timeout_seconds: float = number(30.0, "the longest one page may take to be shown", 1, 600)
    settle_seconds: float = number(
        5.0, "how long a page that goes on changing is waited for; then it is read as it is", 0.5, 120
    )
    memory_mb: int = whole(
        2048, "memory of the browser in all; above it the page that takes most is ended", 256, 1_048_576
    )
    max_page_bytes: int = whole(
        52_428_800, "what one page may load in all, with its scripts and data", 65_536, 2**40
    )
    recycle_pages: int = whole(100, "pages after which the browser is started anew", 1, 1_000_000)


DAY = 86_400
YEAR = 366 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """How requests leave this machine."""

    allow: tuple[str, ...] = texts(
        "what may be reached although it is private or local, by sources that start there: blocks of "
        "addresses, addresses and host names, the last two also with a port, as `10.0.0.0/8`, "
        "`127.0.0.1:8000`, `docs.internal`",
        form=forms.network_place,
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
        """Return the User-Agent of every request."""
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
        None, "query parameters an address keeps, the rest is stripped; null: all of them", 0, 1000
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
        "turn plain clients away, `always` every HTML page (docs/howto/browser.md)",
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
    )
    budget_per_run: int | None = whole(
        None,
        "pages of one source that `refresh --due` looks at, longest due first, the rest waits; null: all",
        1,
        10_000_000,
    )
    adapt: bool = flag(
        False, "look less often at pages that stay as they are: after half the time since they last changed"
    )
    adapt_max_seconds: float = number(30.0 * DAY, "the longest wait that `policy.adapt` leads to", 1, YEAR)
    schedule: str | None = text(
        None,
        "when `afresh schedule` looks at a source, and `refresh --due` finds it due: five fields of cron, "
        "`@daily`, `every 6h`, or `auto`; null: whenever a page is due (docs/howto/schedules.md)",
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
        30.0 * DAY, 'age at which a page is read anew, whatever "not modified" says; 0: never', 0, YEAR
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
class FilesSettings:
    """Which files of a folder are read, and what tells that one changed."""

    verify: str = text(
        "stat",
        "what tells that a file changed: `stat` its size and time, `hash` what it holds (every file is read)",
        choices=("stat", "hash"),
    )
    gitignore: bool = flag(True, "leave out what `.gitignore` files name")
    ignore: tuple[str, ...] = texts(
        "more patterns to leave out, written as in `.gitignore`, each of at most 200 characters",
        form=forms.glob,
        most=MAX_GLOBS,
    )
    hidden: bool = flag(False, "also read files and folders whose names begin with a dot")
    symlinks: bool = flag(False, "follow symbolic links that stay inside the folder")
    max_file_bytes: int = whole(10_485_760, "larger files are left out", 1, 1_073_741_824)
    max_files: int = whole(200_000, "files of one folder at most", 1, 10_000_000)


def default_cache_dir() -> str:
    """Return the cache folder of the user, or a temporary one without a home folder."""
    import tempfile

    import platformdirs

    try:
        folder = Path(platformdirs.user_cache_dir("afresh", appauthor=False))
    except RuntimeError:
        folder = Path(tempfile.gettempdir()) / "afresh"
    return str(folder / "git")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSettings:
    """How git repositories are read; which of their files, section `files` says."""

    cache_dir: str | None = text(
        None,
        "the folder of clones, which are kept between runs; null: in the user's cache folder",
        form=forms.file,
    )
    cache_max_bytes: int = whole(
        2_147_483_648, "clones above this size in all are removed, the longest unused first", 0, 2**50
    )
    timeout_seconds: float = number(600.0, "the longest one fetch may take", 1, 86_400)
    max_fetch_bytes: int = whole(2_147_483_648, "the most that one fetch may bring", 1_000, 2**50)
    credential_helper: str | None = text(
        None,
        "the credential helper that git asks for user name and password, such as `store`, `osxkeychain` or "
        "`!gh auth git-credential`; null: none",
        operator=True,
        form=forms.name,
    )
    token: str | None = forms.secret_text(
        None, "a token for https, sent to `git.token_host` alone; null: none"
    )
    token_host: str | None = text(
        None,
        "the host that `git.token` is for, such as github.com; null: it is not sent",
        operator=True,
        form=forms.name,
    )


API_URL = "https://api.github.com"
RAW_URL = "https://raw.githubusercontent.com"
WEB_URL = "https://github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubSettings:
    """Where repositories are read; an Enterprise server has its own three addresses."""

    web_url: str = text(
        WEB_URL,
        "where repositories have their pages; its host may be a private one, as those of the two below",
        form=forms.api_url,
    )
    api_url: str = text(
        API_URL, "where its REST API is; Enterprise: `https://HOST/api/v3`", form=forms.api_url
    )
    raw_url: str = text(
        RAW_URL, "where its raw files are; Enterprise: `https://HOST/raw`", form=forms.api_url
    )
    token: str | None = forms.secret_text(
        None, "the token that the API is asked with; null: GITHUB_TOKEN, GH_TOKEN, or what `gh` has"
    )
    wiki: bool = flag(True, "also read the wiki of a repository that is read as a whole")

    @property
    def web_urls(self) -> tuple[str, ...]:
        """Return the known servers of repositories: the configured one and the public one."""
        return tuple(dict.fromkeys((self.web_url, WEB_URL)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """Lengths of time after which `afresh prune`, runs and the scheduler remove records."""

    deleted_pages: str | None = text(
        "30d",
        "how long the record of a deleted page stays, so that `why` can explain it and a page that returns "
        "keeps its id; null: for ever",
        optional=True,
        form=forms.duration,
    )
    attempts: str | None = text(
        None,
        "how long attempts stay; the latest of each page and those of open runs stay in any case; "
        "null: for ever",
        form=forms.duration,
    )
    changes: str | None = text(
        None, "how long the changes of pages stay; null: for ever", form=forms.duration
    )
    outbox: str | None = text(
        "30d",
        "how long messages that were delivered, or given up, stay; null: for ever",
        optional=True,
        form=forms.duration,
    )
    former_texts: str | None = text(
        "30d",
        "how long the text stays that a page had before it lost nearly all of it, for `afresh restore`; "
        "null: for ever",
        optional=True,
        form=forms.duration,
    )


def retention_of(settings: RetentionSettings) -> Retention:
    """Return the settings as lengths of time."""
    lengths = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return Retention(**{name: kept and read_duration(kept) for name, kept in lengths.items()})
