"""Define the settings of sources: requests, browser, crawling, policy, storage, files, git, GitHub, retention."""

from pathlib import Path

from afresh import HOME_PAGE, __version__
from afresh.config import forms
from afresh.config.spec import flag, number, text, texts, whole
from afresh.dataclass import dataclass, fields
from afresh.model.retention import Retention
from afresh.text.quantities import read_duration
from afresh.urls.globs import MAX_GLOBS

ENGINES = ("chromium", "firefox", "webkit")
DAY = 86_400
YEAR = 366 * DAY
API_URL = "https://api.github.com"
RAW_URL = "https://raw.githubusercontent.com"
WEB_URL = "https://github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """The browser that renders pages; `crawl.render` says which pages need it."""

    engines: tuple[str, ...] = texts(
        "browser engines to try on the home page of a site; the first that renders it is used",
        default=ENGINES,
        choices=ENGINES,
    )
    executable_path: str | None = text(
        None, "the Chromium to start; null: Playwright's own, or else that of the system", form=forms.file
    )
    channel: str | None = text(
        None, "a branded browser that Playwright knows, such as `chrome`; null: none", operator=True, form=forms.name
    )
    sandbox: str = text(
        "auto",
        "Chromium's sandbox; `auto`: on, but off if afresh runs as root, because Chromium would not start",
        choices=("auto", "on", "off"),
        operator=True,
    )
    pages: int = whole(2, "pages rendered at the same time", 1, 32)
    timeout_seconds: float = number(30.0, "maximum time to render one page", 1, 600)
    settle_seconds: float = number(5.0, "maximum wait for a page to stop changing; then it is read as it is", 0.5, 120)
    memory_mb: int = whole(
        2048, "memory limit of the browser; above it, the page that uses the most memory is closed", 256, 1_048_576
    )
    max_page_bytes: int = whole(52_428_800, "maximum download of one page, with its scripts and data", 65_536, 2**40)
    recycle_pages: int = whole(100, "pages after which the browser is restarted", 1, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """The settings for sending requests, and the private hosts that requests may reach."""

    allow: tuple[str, ...] = texts(
        "private or local hosts that a source may reach if its start URL is there: networks, IP addresses and host "
        "names, the last two also with a port, such as `10.0.0.0/8`, `127.0.0.1:8000`, `docs.internal`",
        form=forms.network_place,
    )
    contact: str = text(
        HOME_PAGE,
        "a URL or e-mail address where site owners can reach you; it is part of the User-Agent "
        "`afresh/VERSION (+CONTACT)`",
        form=forms.contact,
    )
    user_agent: str | None = text(
        None, "the whole User-Agent header, used as it is; null: made from `network.contact`", form=forms.header
    )
    timeout_seconds: float = number(60.0, "maximum time of one request", 0.1, 3600)
    connect_seconds: float = number(10.0, "maximum time to open a connection", 0.1, 600)
    idle_seconds: float = number(20.0, "maximum pause between two parts of a response", 0.1, 600)
    max_body_bytes: int = whole(10_485_760, "maximum size of a response body after decompression", 1, 1_073_741_824)

    @property
    def agent(self) -> str:
        return self.user_agent or f"afresh/{__version__} (+{self.contact})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """The pages that belong to a source, and how fast they are fetched; flags of `afresh crawl` set this per source."""

    concurrency: int = whole(3, "concurrent requests per host", 1, 64)
    delay_seconds: float = number(0.0, "pause between two requests to a host", 0, 3600)
    scope: str = text(
        "subpages",
        "which links are followed: below the start URL, on its host, or on its registrable domain",
        choices=("subpages", "hostname", "domain"),
    )
    max_pages: int = whole(10_000, "maximum pages of one source", 1, 10_000_000)
    order: str = text(
        "breadth",
        "which new pages are read first: `breadth` those near the start URL, `score` those with the best links to them "
        "(needs `links.keywords`); it matters if `crawl.max_pages` is reached",
        choices=("breadth", "score"),
    )
    max_depth: int = whole(20, "maximum number of links to follow from the start URL", 0, 1000)
    max_url_params: int | None = whole(
        None, "maximum query parameters of a URL; further ones are removed from it; null: no limit", 0, 1000
    )
    max_path_components: int | None = whole(
        10, "maximum path components of a URL; URLs with more are skipped; null: no limit", 0, 1000, optional=True
    )
    max_per_pattern: int | None = whole(
        200,
        "maximum pages whose URLs differ only in numbers or ids (`/cal/{n}/{n}`); more are treated as an infinite URL "
        "space; null: no limit",
        0,
        10_000_000,
        optional=True,
    )
    render: str = text(
        "auto",
        "which pages are rendered in a browser: `auto` those that are empty without JavaScript or reject plain "
        "clients, `always` every HTML page (docs/howto/browser.md)",
        choices=("auto", "never", "always"),
    )
    respect_robots: bool = flag(True, "obey robots.txt")
    respect_noindex: bool = flag(True, "skip pages marked noindex")
    respect_nofollow: bool = flag(True, "do not follow links marked nofollow")
    include: tuple[str, ...] = texts(
        "crawl only URLs that match one of these patterns, each of at most 200 characters; empty: all",
        form=forms.glob,
        most=MAX_GLOBS,
    )
    exclude: tuple[str, ...] = texts(
        "skip URLs that match one of these patterns, each of at most 200 characters", form=forms.glob, most=MAX_GLOBS
    )
    hidden_links: bool = flag(
        True,
        "also follow links outside of anchors: in Drupal settings, Next and Nuxt data, JSON-LD, "
        "`<link rel=next>`, `onclick`, `data-href`, `formaction` and jump menus",
    )
    sitemaps: bool = flag(True, "also crawl URLs listed in the site's sitemaps, llms.txt and feeds")
    markdown: str = text(
        "auto",
        "`auto`: fetch pages that the site lists as Markdown if it offers that; `never`: as HTML",
        choices=("auto", "never"),
    )
    trust_lastmod: bool = flag(
        False,
        "skip pages that did not change since the last check according to the sitemap or feed, until "
        "`policy.reread_seconds` have passed",
    )
    probe: bool = flag(
        True, "once per site and run, request a URL that cannot exist, to learn what the site's error page looks like"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """The times at which pages are checked again, and the conditions for deleting them."""

    gone_after: int = whole(1, "404 or 410 responses in a row before a page is deleted", 1, 1000)
    missing_after: int = whole(3, "complete runs in a row that did not reach a page before it is deleted", 1, 1000)
    brake_percent: float = number(
        10.0, "a run that would delete more than this share of a source (in percent) waits for `afresh confirm`", 0, 100
    )
    brake_pages: int = whole(10, "a run that would delete at most this many pages needs no confirmation", 0, 10_000_000)
    lease_seconds: float = number(
        60.0, "time without a heartbeat after which other workers take over a worker's pages", 1, DAY
    )
    heartbeat_seconds: float = number(10.0, "time between two heartbeats of a worker", 0.1, 3600)
    recheck_seconds: float = number(float(DAY), "time after a response until a page is due again", 1, YEAR)
    max_age_seconds: float | None = number(
        None, "a page whose last response is older than this is due, even after failures; null: off", 1, YEAR
    )
    budget_per_run: int | None = whole(
        None, "maximum pages of a source that `refresh --due` checks, longest due first; null: all", 1, 10_000_000
    )
    adapt: bool = flag(
        False, "check a page less often, the longer it has not changed: after half the time since its last change"
    )
    adapt_max_seconds: float = number(
        30.0 * DAY, "maximum time between two checks with `policy.adapt` or `schedule: auto`", 1, YEAR
    )
    schedule: str | None = text(
        None,
        "when `afresh schedule` and `refresh --due` check a source: five cron fields, `@daily`, `every 6h`, or `auto`; "
        "null: whenever a page is due (docs/howto/schedules.md)",
        form=forms.schedule,
    )
    time_zone: str = text("UTC", "the time zone of `policy.schedule`", form=forms.zone)
    jitter_seconds: float = number(
        0.0, "maximum delay of a scheduled run; each source has its own delay, so that not all start at once", 0, DAY
    )
    budget: str = text(
        "500/h",
        "maximum checks of a source with `schedule: auto`: a number per hour (`500/h`) or per day (`5000/d`)",
        form=forms.budget,
    )
    backoff_base_seconds: float = number(2.0, "wait after the first failure; it doubles with each further one", 0, DAY)
    backoff_max_seconds: float = number(float(DAY), "maximum wait after failures", 0, YEAR)
    retries: int = whole(2, "retries within a run after a temporary failure", 0, 20)
    doubt: bool = flag(True, "keep the previous version if a 200 response looks like an error, login or empty page")
    reread_seconds: float = number(
        30.0 * DAY,
        "time after which a page is downloaded again, even if the server says that it has not changed; 0: never",
        0,
        YEAR,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """The parts of a page that are stored besides the index."""

    body: str = text(
        "markdown",
        "`markdown` stores the text of each page; `none` stores only what search needs, such as words and vectors",
        choices=("markdown", "none"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """The files of a folder that are read, and how changes are detected."""

    verify: str = text(
        "stat",
        "how a changed file is detected: `stat` by size and time, `hash` by content (every file is read)",
        choices=("stat", "hash"),
    )
    gitignore: bool = flag(True, "skip files that `.gitignore` files name")
    ignore: tuple[str, ...] = texts(
        "more patterns to skip, written as in `.gitignore`, each of at most 200 characters",
        form=forms.glob,
        most=MAX_GLOBS,
    )
    hidden: bool = flag(False, "also read files and folders whose names begin with a dot")
    symlinks: bool = flag(False, "follow symbolic links that stay inside the folder")
    max_file_bytes: int = whole(10_485_760, "larger files are skipped", 1, 1_073_741_824)
    max_files: int = whole(200_000, "maximum files of one folder", 1, 10_000_000)


def default_cache_dir() -> str:
    """Return the user's cache folder; a temporary folder if the user has no home folder."""
    import tempfile

    folder = forms.user_folder("cache") or Path(tempfile.gettempdir()) / "afresh"
    return str(folder / "git")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSettings:
    """How git repositories are read; the section `files` says which of their files are read."""

    cache_dir: str | None = text(None, "the folder of clones; null: in the user's cache folder", form=forms.file)
    cache_max_bytes: int = whole(
        2_147_483_648, "maximum size of all clones; the least recently used are removed", 0, 2**50
    )
    timeout_seconds: float = number(600.0, "maximum time of one fetch", 1, 86_400)
    max_fetch_bytes: int = whole(2_147_483_648, "maximum download of one fetch", 1_000, 2**50)
    credential_helper: str | None = text(
        None,
        "the credential helper that git asks for user name and password, such as `store`, `osxkeychain` or "
        "`!gh auth git-credential`; null: none",
        operator=True,
        form=forms.name,
    )
    token: str | None = forms.secret_text(None, "a token for https, sent only to `git.token_host`; null: none")
    token_host: str | None = text(
        None,
        "the host that `git.token` is for, such as github.com; null: it is not sent",
        operator=True,
        form=forms.name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubSettings:
    """The GitHub server that is used; an Enterprise server has its own three URLs."""

    web_url: str = text(
        WEB_URL,
        "the web pages of repositories; this and the other two URLs may be on a private host",
        form=forms.api_url,
    )
    api_url: str = text(API_URL, "the REST API; Enterprise: `https://HOST/api/v3`", form=forms.api_url)
    raw_url: str = text(RAW_URL, "the raw files; Enterprise: `https://HOST/raw`", form=forms.api_url)
    token: str | None = forms.secret_text(
        None, "the token for the API; null: GITHUB_TOKEN, GH_TOKEN, or the token of `gh`"
    )
    wiki: bool = flag(True, "also read the wiki, if the target is a repository without a branch, tag, commit or folder")

    @property
    def web_urls(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.web_url, WEB_URL)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long old records are kept until `afresh prune`, a run or the scheduler deletes them."""

    deleted_pages: str | None = text(
        "30d",
        "how long the record of a deleted page is kept, so that `why` can explain it and a page that returns "
        "keeps its id; null: forever",
        optional=True,
        form=forms.duration,
    )
    attempts: str | None = text(
        None,
        "how long attempts are kept; the latest of each page and those of open runs always are; null: forever",
        form=forms.duration,
    )
    changes: str | None = text(None, "how long the changes of pages are kept; null: forever", form=forms.duration)
    outbox: str | None = text(
        "30d",
        "how long delivered and undeliverable messages are kept; null: forever",
        optional=True,
        form=forms.duration,
    )
    former_texts: str | None = text(
        "30d",
        "how long the former text of a page that lost nearly all of it is kept, for `afresh restore`; null: forever",
        optional=True,
        form=forms.duration,
    )


def retention_from(settings: RetentionSettings) -> Retention:
    lengths = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return Retention(**{name: kept and read_duration(kept) for name, kept in lengths.items()})
