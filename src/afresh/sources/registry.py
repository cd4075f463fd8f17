"""What looks at a source of each kind: the lister that tells what there is, and the web that fetches it."""

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from afresh.config import Config, kb_paths
from afresh.errors import SourceError
from afresh.extract.pool.lazy import Named
from afresh.extract.pool.pool import Offload
from afresh.model.fetch import Failed, Outcome, Refused
from afresh.ports import Clock, Fetcher, Lister, Lookout
from afresh.ports.web import Web
from afresh.urls.files import path_of
from afresh.urls.scope import OTHER_SITE, Globs, Rules

if TYPE_CHECKING:
    from afresh.sources.folder.filter import Sieve
    from afresh.sources.web.browser.browser import Browsers
    from afresh.sources.web.guard import AddressPolicy
    from afresh.sources.web.http import HttpOptions
    from afresh.sources.web.robots import RobotsGate

Refusal = Callable[[str, str], Awaitable[Refused | Failed | None]]
_ELSEWHERE = "crawl that address instead or widen the scope"


class ClosableWeb(Web, Protocol):
    """A web that holds connections or processes."""

    async def close(self) -> None: ...


Eyes = tuple[ClosableWeb, Lister]


class Looking:
    """Makes the eyes of one run."""

    def __init__(
        self,
        own: Config,
        rules: Rules,
        clock: Clock,
        offload: Offload,
        mark: str | None,
        policy: "AddressPolicy",
        *,
        anonymous: bool = True,
        full: bool = False,
        for_kb: bool = False,
    ) -> None:
        self._own = own
        self._rules = rules
        self._clock = clock
        self._offload = offload
        self._policy = policy  # where requests may lead
        self._anonymous = anonymous  # without the operator's keys
        self._known = mark  # of the state that was read last
        self._full = full
        self._for_kb = for_kb  # a cache says what is known of pages, by rules of its own
        self._mark = None if full else mark  # None to read all anew
        self.modified: Callable[[str], datetime | None] = lambda url: (
            None
        )  # when the source says a page changed
        self.tells_news = False  # whether a listing shows which pages changed lately
        self.notes: Callable[[], Sequence[str]] = tuple  # of what was shown in a browser
        self._engine: Callable[[], str | None] = lambda: None  # that shows the pages of the site
        self.trim = rules.trim  # the address by which the page is known that a link leads to

    def at(self, kind: str, *, listed: bool = False) -> Eyes:
        """The web and the lister for a kind of source; `listed`: its listings named pages before."""
        match kind:
            case "web":
                return self._site(listed)
            case "folder" | "file":
                return self._folder(single=kind == "file")
            case "archive":
                return self._archive()
            case "github":
                return self._github()
            case "links":
                return self._links(listed)
            case "git":
                return self._repository()
            case _:
                raise SourceError(f"this afresh cannot look at a source of the kind {kind}; update it")

    def _site(self, listed: bool) -> Eyes:
        from afresh.sources.web.hinted_fetcher import HintedWeb
        from afresh.sources.web.lister import WebLister
        from afresh.sources.web.sitemap_file import SitemapFile

        rules = self._rules

        async def refusal(url: str, asked: str) -> Refused | Failed | None:
            if not rules.may_lead(asked, url):
                why = OTHER_SITE if asked == rules.root else f"{rules.refusal(url, 0)}; {_ELSEWHERE}"
                return Refused(outcome=Outcome.FAILED, reason=why)
            return await gate.refusal(url)

        gate = self._gate(refusal)
        lister = WebLister(
            rules,
            gate,
            gate.sitemaps,
            parse=partial(self._offload.call, Named(SitemapFile.__module__, "parse_sitemap", SitemapFile)),
            use_sitemaps=self._own.crawl.sitemaps,
            expects_sitemap=listed,
            mark=self._known,
            full=self._full,
            engine=self._engine,
        )
        self.trim, self.modified = lister.trim, lister.hints.modified.get
        self.tells_news = lister.tells_news
        return HintedWeb(gate, lister.hints, markdown=self._own.crawl.markdown == "auto"), lister

    def anywhere(self, *, paced: bool = True) -> "RobotsGate":
        """What looks at any address of the web that is not private; not `paced`: the caller sees to it."""

        async def refusal(url: str, asked: str) -> Refused | Failed | None:
            return await gate.refusal(url)

        gate = self._gate(refusal, paced=paced)
        return gate

    def _gate_within(self, policy: "AddressPolicy") -> "RobotsGate":
        """The same for URLs of a list that may reach the same private places."""
        other, before = copy(self), self.notes
        other._policy = policy
        gate = other.anywhere()
        self.notes = lambda: (*before(), *other.notes())
        return gate

    def _gate(self, refusal: Refusal, *, paced: bool = True) -> "RobotsGate":
        """The guarded client behind robots.txt; `refusal` says where redirects may not lead."""
        from afresh.sources.web.http import HttpFetcher
        from afresh.sources.web.robots import RobotsGate

        options = self._options() if paced else replace(self._options(), delay_seconds=0.0)
        http = HttpFetcher(options, clock=self._clock, refusal=refusal)
        learn = http.pace.learn if paced else None
        pages = http if self._own.crawl.render == "never" else self._rendering(http, refusal)
        respect = self._own.crawl.respect_robots
        return RobotsGate(pages, http, respect=respect, clock=self._clock, learn=learn)

    def _rendering(self, http: Fetcher, refusal: Refusal) -> Fetcher:
        """The client with a browser behind it, for pages that need one."""
        from afresh.sources.web.browser.engines import Engines
        from afresh.sources.web.browser.launch import must_be_installed, why_unsandboxed
        from afresh.sources.web.browser.rendering import RenderingFetcher, RenderingOptions
        from afresh.sources.web.lister_state import mark_from

        own, root = self._own, self._rules.root
        always = own.crawl.render == "always"
        if always:
            must_be_installed()
        known = None if self._full else mark_from(self._known).engine
        warning = why_unsandboxed(own.browser.sandbox)
        engines = Engines(self._browsers, own.browser.engines, root=root, known=known, unsandboxed=warning)
        options = RenderingOptions(always=always, total_seconds=own.network.timeout_seconds)
        fetcher = RenderingFetcher(http, engines, options, clock=self._clock, refusal=refusal)
        self.notes, self._engine = (lambda: fetcher.notes), (lambda: engines.remembered)
        return fetcher

    def _browsers(self) -> "Browsers":
        from afresh.sources.web.browser.browser import Browsers
        from afresh.sources.web.browser.launch import BrowserOptions

        browser, network = self._own.browser, self._own.network
        return Browsers(
            BrowserOptions(
                executable_path=browser.executable_path,
                channel=browser.channel,
                sandbox=browser.sandbox,
                pages=browser.pages,
                timeout_seconds=browser.timeout_seconds,
                settle_seconds=browser.settle_seconds,
                memory_mb=browser.memory_mb,
                max_page_bytes=browser.max_page_bytes,
                recycle_pages=browser.recycle_pages,
                max_body_bytes=network.max_body_bytes,
                connect_seconds=network.connect_seconds,
                user_agent=network.agent,
                policy=self._policy,
            )
        )

    def _links(self, listed: bool) -> Eyes:
        from afresh.sources.linklist.digest_links import KbWeb
        from afresh.sources.linklist.lister import LinkedWeb, LinkLister
        from afresh.sources.linklist.rooted_gate import RootedGate
        from afresh.sources.web.reach import Reach

        network = self._own.network
        reach = Reach(network.allow, pins=False, seconds=network.connect_seconds)
        gate = RootedGate(reach.policy_at, self._gate_within)  # a listed URL may lead to any site
        file = Path(path_of(self._rules.root))
        lister = LinkLister(file, expects_links=listed, may_be_empty=self._for_kb)
        web = LinkedWeb(gate, lister)
        return KbWeb(web) if self._for_kb else web, lister

    def _folder(self, *, single: bool) -> Eyes:
        from afresh.sources.folder.fetcher import FileFetcher, FileOptions
        from afresh.sources.folder.lister import FolderLister

        files = self._own.files
        path = path_of(self._rules.root)  # without links since it was added; one in its place is not followed
        folder, name = os.path.split(path) if single else (path, None)
        sieve = sieve_for(self._own, self._rules, folder)
        lister = FolderLister(sieve, only=name, mark=self._mark, verify=files.verify)
        options = FileOptions(
            max_bytes=files.max_file_bytes,
            trusts_times=files.verify == "stat",
            symlinks=files.symlinks,
            single=single,
            doubts_new=not self._for_kb,
        )
        return FileFetcher(path, options, lister.why_not), lister

    def _archive(self) -> Eyes:
        from afresh.sources.archive.fetcher import ArchiveFetcher
        from afresh.sources.archive.limits import Unpacking
        from afresh.sources.archive.lister import ArchiveLister
        from afresh.sources.folder.filter import FolderRules, Sieve

        files, rules = self._own.files, self._rules
        path = os.path.realpath(path_of(rules.root))
        # nothing of the disk is asked: no .gitignore is read, no link looked for
        inside = FolderRules(gitignore=False, symlinks=True, hidden=files.hidden, ignore=files.ignore)
        sieve = Sieve(path, inside, Globs(rules.include, rules.exclude))
        limits = Unpacking(entry_bytes=files.max_file_bytes, entries=min(files.max_files, 100_000))
        fetcher = ArchiveFetcher(Path(path), rules.root, limits, sieve.why_not)
        lister = ArchiveLister(
            rules.root,
            fetcher,
            clock=self._clock,
            mark=self._mark,
            rules=f"{sieve.rules!r}{sieve.wishes!r}{limits!r}",
            ignored=sieve.why_not,
        )
        return fetcher, lister

    def _github(self) -> Eyes:
        from afresh.sources.github.address import github_address
        from afresh.sources.github.lister import GithubLister
        from afresh.sources.github.open import GithubPlaces, open_github

        own, rules, github = self._own, self._rules, self._own.github
        address = github_address(rules.root, github.web_urls)
        if address is None:
            raise SourceError(f"{rules.root} is on no GitHub server that github.web_url names")
        sieve, most, terms = self._tree_sieve()
        repository, fetcher = open_github(
            address,
            GithubPlaces(
                web_url=github.web_url, api_url=github.api_url, raw_url=github.raw_url, token=github.token
            ),
            self._options(),
            os.environ,
            anonymous=self._anonymous,
            mark=self._mark,
            rules=terms,
            refusal=sieve.why_not,
            max_file_bytes=own.files.max_file_bytes,
            wiki=github.wiki,
            most_files=most,
            respect_robots=own.crawl.respect_robots,
            clock=self._clock,
        )
        return fetcher, GithubLister(repository, fetcher, most_walked=own.crawl.max_pages)

    def _options(self) -> "HttpOptions":
        from afresh.sources.web.http import HttpOptions

        network = self._own.network
        return HttpOptions(
            user_agent=network.agent,
            total_seconds=network.timeout_seconds,
            connect_seconds=network.connect_seconds,
            idle_seconds=network.idle_seconds,
            max_body_bytes=network.max_body_bytes,
            connections_per_host=self._own.crawl.concurrency,
            delay_seconds=self._own.crawl.delay_seconds,
            policy=self._policy,
            finds_challenges=self._own.crawl.render != "never",
        )

    def _repository(self) -> Eyes:
        from afresh.config.git import default_cache_dir
        from afresh.sources.git.address import parse_git
        from afresh.sources.git.cache import GitCache
        from afresh.sources.git.environment import GitOptions
        from afresh.sources.git.fetcher import GitFetcher, GitRepository
        from afresh.sources.git.lister import GitLister
        from afresh.sources.git.remote import GitRemote

        own, rules, git = self._own, self._rules, self._own.git
        options = GitOptions(
            user_agent=own.network.agent,
            connect_seconds=own.network.connect_seconds,
            answer_seconds=own.network.timeout_seconds,
            total_seconds=git.timeout_seconds,
            max_fetch_bytes=git.max_fetch_bytes,
            max_file_bytes=own.files.max_file_bytes,
            credential_helper=git.credential_helper,
            token=git.token,
            token_host=git.token_host,
            policy=self._policy,
            anonymous=self._anonymous,
        )
        sieve, most, terms = self._tree_sieve()
        folder = Path(git.cache_dir or default_cache_dir()).expanduser()
        if self._anonymous:  # a clone that was made with keys is not for everybody
            folder = folder.with_name(f"{folder.name}-anonymous")
        cache = GitCache(folder, git.cache_max_bytes)
        remote = GitRemote(parse_git(rules.root), options, cache.folder)
        repository = GitRepository(remote, cache, sieve.why_not)
        lister = GitLister(repository, mark=self._mark, rules=terms, max_files=most)
        return GitFetcher(repository, options.max_file_bytes), lister

    def _tree_sieve(self) -> "tuple[Sieve, int, str]":
        """Which files of a repository are let in, how many at most, and that as text."""
        from afresh.sources.folder.filter import BINARY, FolderRules, Sieve

        own, rules = self._own, self._rules
        folder = FolderRules(
            gitignore=False,  # whoever committed a file wants it
            hidden=own.files.hidden,
            symlinks=True,  # a tree tells them apart by itself: nothing is looked up on disk
            ignore=own.files.ignore,
            max_bytes=own.files.max_file_bytes,
            max_depth=rules.max_depth,
        )
        sieve = Sieve("", folder, Globs(rules.include, rules.exclude))
        most = min(own.files.max_files, rules.max_pages)
        return sieve, most, f"{sieve.rules!r}{sieve.wishes!r}{most}{sorted(BINARY)}"


def sieve_for(own: Config, rules: Rules, root: str) -> "Sieve":
    """Which files of a folder are let in; those that afresh itself writes never are."""
    from afresh.sources.folder.filter import FolderRules, Sieve

    files = own.files
    folder = FolderRules(
        gitignore=files.gitignore,
        hidden=files.hidden,
        symlinks=files.symlinks,
        ignore=(*files.ignore, *_written_below(root, own)),
        max_files=min(files.max_files, rules.max_pages),
        max_bytes=files.max_file_bytes,
        limited_by="files.max_files" if files.max_files <= rules.max_pages else "crawl.max_pages",
        max_depth=rules.max_depth,
    )
    return Sieve(root, folder, Globs(rules.include, rules.exclude))


def why_left_out(own: Config, rules: Rules, kind: str, url: str) -> str | None:
    """Why a file is no part of a folder, or None if it is, or stands elsewhere."""
    root, path = path_of(rules.root), path_of(url)
    if kind != "folder" or not path.startswith(root.rstrip("/") + "/"):
        return None
    try:
        return sieve_for(own, rules, root).why_not(os.path.relpath(path, root))
    except OSError as error:
        return error.strerror


def lookout_for(own: Config, rules: Rules, kind: str) -> Lookout:
    """What hears of changes at the root of a source; single files tell something only of a folder."""
    from afresh.sources.folder.change_feed import FileEvents

    path = path_of(rules.root)
    sieve = sieve_for(own, rules, path) if kind == "folder" else None
    return FileEvents(path, sieve)


def _written_below(root: str, own: Config) -> list[str]:
    """Patterns for what afresh keeps of its own, where it stands inside a folder."""
    from afresh.config.store_url import file_of

    ways = [(own.log.file, ".*")] if own.log.file else []
    if (store := file_of(own.store.url)) is not None:
        ways.append((str(store), "-*"))
    if own.kb.sources_dir and str((kb := kb_paths(own, Path.cwd())).sources_dir) == root:
        ways += [(str(path), more) for path, more in kb.no_sources]
    patterns = []
    for name, more in ways:
        path = os.path.realpath(name)
        if path.startswith(root.rstrip("/") + "/"):
            plain = re.sub(r"([\\*?\[\]!# ])", r"\\\1", path[len(root.rstrip("/")) :])
            patterns += [plain, plain + more]
    return patterns
