"""Read a GitHub repository as a source: files through the API, wiki pages as web pages."""

import os
from collections.abc import AsyncIterator, Mapping

from yarl import URL

from afresh.config.sources import GithubSettings
from afresh.dataclass import replace
from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, NotModified, Refused, Request, Validators
from afresh.model.records import ListedUrl
from afresh.sources.folder.filter import RepositoryRules, reported_counts, repository_rules
from afresh.sources.git.address import is_lfs_pointer
from afresh.sources.github.address import (
    PUBLIC_WEB,
    GithubAddress,
    blob_start,
    github_address,
    odd_wiki_page,
    wiki_root,
)
from afresh.sources.github.api import VARIABLES, GithubApi, GithubFile, GithubState, Unavailable
from afresh.sources.github.repository import GithubRepository, GithubSnapshot
from afresh.sources.registry import ListerBase, OpenedSource, SourceContext, SourceKind
from afresh.sources.web.answers import REDIRECTS
from afresh.sources.web.fetcher import WebFetcher
from afresh.sources.web.http import HttpFetcher, http_options
from afresh.sources.web.robots import RobotsFiles


class GithubFetcher:
    """Implements `ports.Web` for one repository and its wiki."""

    def __init__(self, repository: GithubRepository, api: GithubApi, web: WebFetcher) -> None:
        self._repository = repository
        self._api = api
        self._web = web
        self.state = web.state
        self._first_looks: dict[str, Fetched] = {}  # results from the listing, each used for one later fetch
        self._raw: dict[str, bool] = {}  # revision → whether its files are available as raw files

    async def fetch(self, request: Request) -> Fetched:
        if self.walks(request.url):
            return await self._look_at_wiki(request)
        try:
            snapshot = await self._repository.look()
            if snapshot.files is None and request.validators:
                return NotModified(validators=request.validators, status_code=None)
            if snapshot.files is None:
                if not request.url.startswith(_start(self._repository.address.web, snapshot.state)):
                    return Gone(status_code=None)
                snapshot = await self._repository.look(again=True)
            return await self._look_at_file(request, snapshot)
        except Unavailable as error:
            return error.seen

    def walks(self, url: str) -> bool:
        """Return whether the links of this page are followed, which is so for wiki pages only."""
        root = self._repository.wiki
        return root is not None and odd_wiki_page(url, root) is None

    async def find_wiki(self) -> str | None:
        """Return the URL of the first wiki page; None if there is no wiki, or no page in it (GitHub redirects then)."""
        if (root := self._repository.wiki) is None:
            return None
        seen = await self._web.fetch(Request(url=root))
        if isinstance(seen, Gone) or (isinstance(seen, Refused) and seen.status_code in REDIRECTS):
            self._repository.drop_wiki()
            return None
        self._first_looks[root] = seen
        return root

    async def refusal(self, url: str) -> Refused | Failed | None:
        return await self._web.refusal(url) if self.walks(url) else None

    async def crawl_delay(self, url: str) -> float | None:
        return await self._web.crawl_delay(url) if self._repository.wiki else 0.0

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
            return Gone() if seen.url == self._repository.wiki else Moved(to=seen.url, status_code=302)
        # GitHub sends `X-Robots-Tag: none` with most wikis to keep out search engines; here the user named the wiki
        return replace(seen, index=True, follow=True)

    async def _look_at_file(self, request: Request, snapshot: GithubSnapshot) -> Fetched:
        if (file := (snapshot.files or {}).get(request.url)) is None:
            return self._elsewhere(request.url, snapshot)
        if request.validators and request.validators.etag == file.etag:
            return NotModified(validators=request.validators, status_code=None)
        known = Validators(etag=file.etag)
        try:
            data = await self._content(file, snapshot)
        except Unavailable as error:
            if isinstance(error.seen, Refused) and error.seen.status_code is None:
                return replace(error.seen, validators=known)
            raise
        if is_lfs_pointer(data):
            return Refused(reason="stored in Git LFS, which is not supported", validators=known)
        return Body(url=request.url, data=data, media_type="", validators=known, proven=True)

    def _elsewhere(self, url: str, snapshot: GithubSnapshot) -> Fetched:
        """Return Moved if the branch or repository of a page was renamed, else Gone."""
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

    async def _content(self, file: GithubFile, snapshot: GithubSnapshot) -> bytes:
        """Return the content of a listed file, from the host of raw files if possible, else from the API."""
        state = snapshot.state
        for revision in () if state.private else (state.commit, state.branch):
            if self._raw.get(revision) is False:
                continue
            try:
                data = await self._api.raw_file(state.name, revision, file)
            except Unavailable as error:
                if isinstance(error.seen, Failed) or error.seen.status_code is None:
                    self._raw[revision] = True
                    raise
                data = Gone(status_code=error.seen.status_code)  # the host of raw files requires a login
            if not isinstance(data, Gone) or data.status_code is None:
                self._raw[revision] = True
            if not isinstance(data, Gone):
                return data
            self._raw.setdefault(revision, False)  # do not try raw files of this revision again
        data = await self._api.blob(state.name, file)
        if isinstance(data, Gone):
            reason = "GitHub returned no content that matches the file's id"
            raise Unavailable(Failed(reason=reason, status_code=data.status_code))
        return data


def _start(web: str, state: GithubState) -> str:
    return blob_start(web, state.url_name, state.branch)


def open_github(
    context: SourceContext, address: GithubAddress, environment: Mapping[str, str], rules: RepositoryRules
) -> tuple[GithubRepository, GithubFetcher]:
    config, clock = context.config, context.clock
    places, options = config.github, http_options(config, context.policy)
    if address.web != places.web_url:  # github.com must not get the token of a configured Enterprise server
        places = GithubSettings()
        environment = {name: value for name, value in environment.items() if name not in VARIABLES}
    api = GithubApi(places, environment, options, clock, rules.max_file_bytes, anonymous=context.anonymous)
    repository = GithubRepository(api, address, context.mark, rules, wiki=config.github.wiki)
    if places.web_url != PUBLIC_WEB:
        web = URL(places.web_url)
        options = replace(options, policy=options.policy.also(f"{web.host_subcomponent}:{web.port}"))

    async def barred(url: str, asked: str) -> Refused | Failed | None:
        root = repository.wiki
        outside = odd_wiki_page(url, root) if root else "no wiki"
        return Refused(reason=outside) if outside is not None else await robots.refusal(url)

    http = HttpFetcher(options, clock=clock, refusal=barred)
    robots = RobotsFiles(http, respect=config.crawl.respect_robots, clock=clock, learn=http.pace.learn)
    return repository, GithubFetcher(repository, api, WebFetcher(http, robots))


class GithubLister(ListerBase):
    kind = "github"

    def __init__(self, repository: GithubRepository, wiki: GithubFetcher, *, most_walked: int = 10_000) -> None:
        self._repository = repository
        self._wiki = wiki
        self._most_walked = most_walked
        self._walked: set[str] = set()
        self._listed = False

    @property
    def mark(self) -> str | None:  # type: ignore[override]
        return self._repository.seen.mark if self._listed and self._repository.seen else None

    def walks(self, url: str) -> bool:
        return self._wiki.walks(url)

    async def list(self) -> AsyncIterator[ListedUrl]:
        try:
            seen = await self._repository.look()
        except Unavailable as error:
            raise SourceError(str(error)) from None
        self.listing_errors, self.unchanged, self.notes = seen.errors, seen.files is None, seen.notes
        self.dropped = reported_counts(seen.left_out)
        for url, file in (seen.files or {}).items():
            yield ListedUrl(url, file.path.count("/"), Validators(etag=file.etag))
        root = self._repository.wiki if seen.files is None else await self._wiki.find_wiki()
        if root is not None:
            yield ListedUrl(root, 0)
        self._listed = True

    def refusal(self, url: str, depth: int) -> str | None:
        """Return a reason if the maximum number of wiki pages is reached, else None; files are never refused here."""
        if url in self._walked or not self.walks(url):
            return None
        if len(self._walked) >= self._most_walked:
            return f"more than {self._most_walked:,} pages of a wiki (crawl.max_pages)"
        self._walked.add(url)
        return None


def open_source(context: SourceContext) -> OpenedSource:
    if (address := github_address(context.root, context.config.github.web_urls)) is None:
        raise SourceError(f"{context.root} is not on github.com or the GitHub server that github.web_url names")
    repository, fetcher = open_github(context, address, os.environ, repository_rules(context.config, context.rules))
    return fetcher, GithubLister(repository, fetcher, most_walked=context.config.crawl.max_pages)


KIND = SourceKind(open=open_source)
