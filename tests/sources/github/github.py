"""A GitHub source on a loopback server: opened, listed, and every page looked at as a run would."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from tests.fakes.github_server import GithubServer

from afresh.app import utc_now
from afresh.config import Config
from afresh.config.sources import FilesSettings, GithubSettings, NetworkSettings
from afresh.extract.pool.pool import ParserPool
from afresh.model.fetch import Body, Fetched, Request, Validators
from afresh.model.records import ListedUrl
from afresh.sources.folder.filter import RepositoryRules
from afresh.sources.github.address import github_address
from afresh.sources.github.fetcher import GithubFetcher, GithubLister, open_github
from afresh.sources.github.repository import GithubRepository
from afresh.sources.registry import SourceContext
from afresh.sources.web.guard import AddressPolicy
from afresh.urls.scope import Rules


def only_markdown(path: str) -> str | None:
    """Leaves out what the tests do not read."""
    return None if path.endswith(".md") else "of a kind that is not read"


@dataclass
class Opened:
    """The parts of one source in one run."""

    repository: GithubRepository
    fetcher: GithubFetcher
    lister: GithubLister

    async def list(self) -> dict[str, ListedUrl]:
        return {each.url: each async for each in self.lister.list()}

    async def look(self, url: str, etag: str | None = None) -> Fetched:
        return await self.fetcher.fetch(Request(url=url, validators=Validators(etag=etag) if etag else None))


@asynccontextmanager
async def opening(
    server: GithubServer,
    target: str | None = None,
    *,
    mark: str | None = None,
    token: str | None = None,
    wiki: bool = True,
    most_files: int = 1_000,
    environment: Mapping[str, str] | None = None,
    max_body_bytes: int = 100_000,
    rules: str = "",
) -> AsyncIterator[Opened]:
    """A source of one run, closed afterwards."""
    address = github_address(target or server.repository.name, (server.web_url, "https://github.com"))
    assert address is not None
    places = GithubSettings(
        web_url=server.web_url, api_url=server.api_url, raw_url=server.raw_url, token=token, wiki=wiki
    )
    limits = FilesSettings(max_file_bytes=max_body_bytes)
    config = Config(github=places, network=NetworkSettings(max_body_bytes=max_body_bytes), files=limits)
    repository, fetcher = open_github(
        SourceContext(
            config, Rules(root=address.url), utc_now, cast("ParserPool", None), mark, AddressPolicy(), anonymous=False
        ),
        address,
        environment or {"PATH": ""},
        RepositoryRules(only_markdown, most_files, max_body_bytes, rules),
    )
    try:
        yield Opened(repository, fetcher, GithubLister(repository, fetcher))
    finally:
        await fetcher.close()


@dataclass
class Reader:
    """Remembers pages between runs, as a store does: those whose validators stayed are not looked at."""

    server: GithubServer
    target: str | None = None
    mark: str | None = None
    pages: dict[str, Validators] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)

    async def run(self) -> dict[str, str]:
        """One run over the files; what happened to which page."""
        results: dict[str, str] = {}
        async with opening(self.server, self.target, mark=self.mark, wiki=False) as opened:
            listed = await opened.list()
            if not opened.lister.unchanged:
                for url in [*listed, *(url for url in self.pages if url not in listed)]:
                    known = self.pages.get(url)
                    if url not in listed or listed[url].validators != known:
                        results[url] = self._keep(url, await opened.fetcher.fetch(Request(url=url, validators=known)))
            self.mark = opened.lister.mark
        return results

    def _keep(self, url: str, seen: Fetched) -> str:
        if isinstance(seen, Body):
            kind = "changed" if url in self.pages else "new"
            self.pages[url], self.texts[url] = seen.validators, seen.data
            return kind
        del self.pages[url], self.texts[url]
        return type(seen).__name__.lower()
