"""A repository on GitHub as a source: files by the id of their content, wiki pages as web pages."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace

from yarl import URL

from afresh.config.sources import GithubSettings
from afresh.errors import SourceError
from afresh.model.fetch import (
    Body,
    Failed,
    Fetched,
    Gone,
    Moved,
    NotModified,
    Outcome,
    Refused,
    Request,
    Validators,
)
from afresh.model.records import ListedUrl
from afresh.ports import Clock
from afresh.sources.folder.filter import counts_to_tell, tree_sieve_for
from afresh.sources.git.address import is_lfs_pointer
from afresh.sources.github.address import (
    PUBLIC_WEB,
    GithubAddress,
    blob_start,
    github_address,
    odd_wiki_page,
    wiki_root,
)
from afresh.sources.github.api import VARIABLES, GithubApi, GithubFile, GithubState, GithubToken
from afresh.sources.github.repository import GithubRepository, GithubSnapshot
from afresh.sources.registry import ListerBase, OpenedSource, SourceContext, SourceKind, look_failed
from afresh.sources.web.answers import REDIRECTS
from afresh.sources.web.api_client import ApiClient
from afresh.sources.web.http import HttpFetcher, HttpOptions, http_options
from afresh.sources.web.robots import RobotsFetcher


class GithubFetcher:
    """Implements `ports.Web` for one repository and its wiki."""

    def __init__(self, repository: GithubRepository, api: GithubApi, web: RobotsFetcher) -> None:
        self._repository = repository
        self._api = api
        self._web = web
        self._first_looks: dict[str, Fetched] = {}  # fetched while listing, each returned once
        self._raw: dict[str, bool] = {}  # whether raw files are found under a revision

    async def fetch(self, request: Request) -> Fetched:
        """Fetch a file or a wiki page."""
        if self.walks(request.url):
            return await self._look_at_wiki(request)
        snapshot = await self._repository.look()
        if not isinstance(snapshot, GithubSnapshot):
            return snapshot
        if snapshot.files is None and request.validators:
            return NotModified(validators=request.validators, status_code=None)
        if snapshot.files is None:
            if not request.url.startswith(_start(self._repository.address.web, snapshot.state)):
                return Gone(status_code=None)
            snapshot = await self._repository.look(again=True)
            if not isinstance(snapshot, GithubSnapshot):
                return snapshot
        return await self._look_at_file(request, snapshot)

    def walks(self, url: str) -> bool:
        """Return whether a URL is a page of the wiki, which is crawled like a web site."""
        root = self._repository.wiki
        return root is not None and odd_wiki_page(url, root) is None

    async def find_wiki(self) -> str | None:
        """Return the first page of the wiki, or None if it has none: GitHub then redirects elsewhere."""
        root = self._repository.wiki
        if root is None:
            return None
        seen = await self._web.fetch(Request(url=root))
        if isinstance(seen, Gone) or (isinstance(seen, Refused) and seen.status_code in REDIRECTS):
            self._repository.drop_wiki()
            return None
        self._first_looks[root] = seen
        return root

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Return why robots.txt forbids a wiki page; files come from an API without robots.txt."""
        return await self._web.refusal(url) if self.walks(url) else None

    async def crawl_delay(self, url: str) -> float | None:
        """Return the seconds between requests that the site asks for, for all requests; 0 without a wiki."""
        return await self._web.crawl_delay(url) if self._repository.wiki else 0.0

    def state(self, origin: str) -> str:
        """Return the state of the robots.txt that applies to the wiki."""
        return self._web.state(origin)

    async def close(self) -> None:
        await self._api.close()
        await self._web.close()

    async def _look_at_wiki(self, request: Request) -> Fetched:
        seen = self._first_looks.pop(request.url, None)
        if isinstance(seen, Body):
            tag = seen.validators.etag
            if request.validators and tag and request.validators.etag == tag:
                seen = NotModified(validators=request.validators)
        elif seen is None:
            seen = await self._web.fetch(request)
        if not isinstance(seen, Body):
            return seen
        if seen.url != request.url:  # GitHub redirects from a deleted page to the first one
            root = self._repository.wiki
            return Gone() if seen.url == root else Moved(to=seen.url, status_code=302)
        # GitHub sends `X-Robots-Tag: none` with most wikis, against search engines; the user named this one
        return replace(seen, index=True, follow=True)

    async def _look_at_file(self, request: Request, snapshot: GithubSnapshot) -> Fetched:
        file = (snapshot.files or {}).get(request.url)
        if file is None:
            return self._elsewhere(request.url, snapshot)
        if request.validators and request.validators.etag == file.etag:
            return NotModified(validators=request.validators, status_code=None)
        data = await self._content(file, snapshot)
        known = Validators(etag=file.etag)
        if isinstance(data, Refused) and data.status_code is None:
            return replace(data, validators=known)
        if not isinstance(data, bytes):
            return data
        if is_lfs_pointer(data):
            return look_failed("kept in Git LFS, which is not read", known)
        return Body(url=request.url, data=data, media_type="", validators=known, proven=True)

    def _elsewhere(self, url: str, snapshot: GithubSnapshot) -> Fetched:
        """Return where a page of a renamed branch or repository is now, or Gone."""
        old, now = self._repository.old, snapshot.state
        if old is None:
            return Gone(status_code=None)
        web = self._repository.address.web
        target = url.replace(_start(web, old), _start(web, now), 1)
        if target != url and target in (snapshot.files or {}):
            return Moved(to=target, status_code=None)
        target = url.replace(wiki_root(web, old.name), wiki_root(web, now.name), 1)
        if target != url and self.walks(target):
            return Moved(to=target, status_code=None)
        return Gone(status_code=None)

    async def _content(self, file: GithubFile, snapshot: GithubSnapshot) -> bytes | Refused | Failed:
        """Return the listed version of a file: as a raw file, else as a blob."""
        state = snapshot.state
        for revision in () if state.private else (state.commit, state.branch):
            if self._raw.get(revision) is False:
                continue
            data = await self._api.raw_file(state.name, revision, file)
            if isinstance(data, Refused) and data.status_code is not None:
                data = Gone(status_code=data.status_code)  # a raw host that requires a login
            if not isinstance(data, Gone) or data.status_code is None:
                self._raw[revision] = True
            if not isinstance(data, Gone):
                return data
            self._raw.setdefault(revision, False)  # nothing found under this revision: skip it from now on
        data = await self._api.blob(state.name, file)
        if isinstance(data, Gone):
            reason = "GitHub has no content for it that fits its id"
            return Failed(outcome=Outcome.FAILED, reason=reason, status_code=data.status_code)
        return data


def _start(web: str, state: GithubState) -> str:
    return blob_start(web, state.shown, state.branch)


def open_github(
    address: GithubAddress,
    places: GithubSettings,
    options: HttpOptions,
    environment: Mapping[str, str],
    *,
    anonymous: bool = False,
    mark: str | None,
    rules: str,
    refusal: Callable[[str], str | None],
    max_file_bytes: int,
    wiki: bool,
    most_files: int,
    respect_robots: bool,
    clock: Clock,
) -> tuple[GithubRepository, GithubFetcher]:
    """Open a repository; `refusal` leaves out paths, and `rules` is a text that identifies its rules."""
    if address.web != places.web_url:  # github.com beside an Enterprise server, whose token it must not get
        places = GithubSettings()
        environment = {name: value for name, value in environment.items() if name not in VARIABLES}
    web = URL(places.web_url)
    api = GithubApi(
        ApiClient(
            [places.api_url, places.raw_url],
            user_agent=options.agent,
            connect_seconds=options.connect_seconds,
        ),
        api_url=places.api_url,
        raw_url=places.raw_url,
        token=GithubToken(places.token, environment, web.host or "", anonymous=anonymous),
        clock=clock,
        timeout=options.timeout_seconds,
        max_file_bytes=max_file_bytes,
    )
    repository = GithubRepository(
        api,
        address,
        mark=mark,
        rules=rules,
        refusal=refusal,
        wiki=wiki,
        most_files=most_files,
        max_file_bytes=max_file_bytes,
    )
    if places.web_url != PUBLIC_WEB:
        options = replace(options, policy=options.policy.also(f"{web.host_subcomponent}:{web.port}"))

    async def barred(url: str, asked: str) -> Refused | Failed | None:
        root = repository.wiki
        outside = odd_wiki_page(url, root) if root else "no wiki"
        if outside is not None:
            return look_failed(outside)
        return await gate.refusal(url)

    http = HttpFetcher(options, clock=clock, refusal=barred)
    gate = RobotsFetcher(http, http, respect=respect_robots, clock=clock, learn=http.pace.learn)
    return repository, GithubFetcher(repository, api, gate)


class GithubLister(ListerBase):
    """Lists the files of a repository with the ids of their contents, and the first page of its wiki."""

    kind = "github"

    def __init__(
        self, repository: GithubRepository, wiki: GithubFetcher, *, most_walked: int = 10_000
    ) -> None:
        self._repository = repository
        self._wiki = wiki
        self._most_walked = most_walked
        self._walked: set[str] = set()
        self._listed = False

    @property
    def mark(self) -> str | None:  # type: ignore[override]
        """Return the listed state as text; it includes whether the wiki has pages."""
        return self._repository.seen.mark if self._listed and self._repository.seen else None

    def walks(self, url: str) -> bool:
        """Return whether a page belongs to the wiki, which is crawled by its links."""
        return self._wiki.walks(url)

    async def list(self) -> AsyncIterator[ListedUrl]:
        """Yield the files, unless nothing changed, and the first page of the wiki."""
        seen = await self._repository.look()
        if isinstance(seen, Refused | Failed):
            raise SourceError(seen.reason)
        self.listing_errors, self.unchanged, self.notes = seen.errors, seen.files is None, seen.notes
        self.dropped = counts_to_tell(seen.left_out)
        for url, file in (seen.files or {}).items():
            yield ListedUrl(url, file.path.count("/"), Validators(etag=file.etag))
        root = self._repository.wiki if seen.files is None else await self._wiki.find_wiki()
        if root is not None:
            yield ListedUrl(root, 0)
        self._listed = True

    def refusal(self, url: str, depth: int) -> str | None:
        """Return why a page of the wiki exceeds the limit; files are limited by the listing."""
        if url in self._walked or not self.walks(url):
            return None
        if len(self._walked) >= self._most_walked:
            return f"more than {self._most_walked:,} pages of a wiki (crawl.max_pages)"
        self._walked.add(url)
        return None


def open_source(context: SourceContext) -> OpenedSource:
    """Open a repository on GitHub."""
    config, github = context.config, context.config.github
    address = github_address(context.root, github.web_urls)
    if address is None:
        raise SourceError(f"{context.root} is on no GitHub server that github.web_url names")
    file_filter, most, terms = tree_sieve_for(config, context.rules)
    repository, fetcher = open_github(
        address,
        github,
        http_options(config, context.policy),
        os.environ,
        anonymous=context.anonymous,
        mark=context.mark,
        rules=terms,
        refusal=file_filter.why_not,
        max_file_bytes=config.files.max_file_bytes,
        wiki=github.wiki,
        most_files=most,
        respect_robots=config.crawl.respect_robots,
        clock=context.clock,
    )
    return fetcher, GithubLister(repository, fetcher, most_walked=config.crawl.max_pages)


KIND = SourceKind(open=open_source)
