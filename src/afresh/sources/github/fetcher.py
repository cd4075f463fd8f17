"""Looks at the pages of a GitHub source: files by the id of their content, wiki pages as web pages."""

from dataclasses import replace

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
from afresh.sources.github.address import blob_start, odd_wiki_page, wiki_root
from afresh.sources.github.api import GithubApi
from afresh.sources.github.repository import GithubRepository, Snapshot
from afresh.sources.github.tree import File, State
from afresh.sources.web.answers import REDIRECTS
from afresh.sources.web.robots import RobotsGate

_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1_024


class GithubFetcher:
    """Fulfils `crawl.tools.Web` for one repository and its wiki."""

    def __init__(self, repository: GithubRepository, api: GithubApi, web: RobotsGate) -> None:
        self._repository = repository
        self._api = api
        self._web = web
        self._first_looks: dict[str, Fetched] = {}  # taken while listing, to be handed out once
        self._raw: dict[str, bool] = {}  # whether raw files are found under a revision

    async def fetch(self, request: Request) -> Fetched:
        """Look at a file or a wiki page."""
        if self.walks(request.url):
            return await self._look_at_wiki(request)
        snapshot = await self._repository.look()
        if not isinstance(snapshot, Snapshot):
            return snapshot
        if snapshot.files is None and request.validators:
            return NotModified(validators=request.validators, status_code=None)
        if snapshot.files is None:
            if not request.url.startswith(_start(self._repository.address.web, snapshot.state)):
                return Gone(status_code=None)
            snapshot = await self._repository.look(anew=True)
            if not isinstance(snapshot, Snapshot):
                return snapshot
        return await self._look_at_file(request, snapshot)

    def walks(self, url: str) -> bool:
        """Whether an address is one of the wiki, which is read as web pages are."""
        root = self._repository.wiki
        return root is not None and odd_wiki_page(url, root) is None

    async def find_wiki(self) -> str | None:
        """The first page of the wiki, or None where it has none: GitHub then leads elsewhere."""
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
        """Why robots.txt keeps us from a wiki page; files come from an API that has none."""
        return await self._web.refusal(url) if self.walks(url) else None

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that the site asks for, where its wiki is read; it holds for all of it."""
        return await self._web.crawl_delay(url) if self._repository.wiki else 0.0

    def state(self, origin: str) -> str:
        """What is known of the robots.txt that rules the wiki."""
        return self._web.state(origin)

    async def close(self) -> None:
        """Close all connections."""
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
        if seen.url != request.url:  # GitHub leads from a page that is gone to the first one
            root = self._repository.wiki
            return Gone() if seen.url == root else Moved(to=seen.url, status_code=302)
        # GitHub sends `X-Robots-Tag: none` with most wikis, against search engines; this one was named
        return replace(seen, index=True, follow=True)

    async def _look_at_file(self, request: Request, snapshot: Snapshot) -> Fetched:
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
        if len(data) <= _LONGEST_POINTER and data.startswith(_POINTER):
            reason = "kept in Git LFS, which is not read"
            return Refused(outcome=Outcome.FAILED, reason=reason, validators=known)
        return Body(url=request.url, data=data, media_type="", validators=known, proven=True)

    def _elsewhere(self, url: str, snapshot: Snapshot) -> Fetched:
        """Where a page went whose branch or repository has another name now, or nowhere."""
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

    async def _content(self, file: File, snapshot: Snapshot) -> bytes | Refused | Failed:
        """The content that the listing names: a raw file, or a blob where that is another version or none."""
        state = snapshot.state
        for revision in () if state.private else (state.commit, state.branch):
            if self._raw.get(revision) is False:
                continue
            data = await self._api.raw_file(state.name, revision, file)
            if isinstance(data, Refused) and data.status_code is not None:
                data = Gone(status_code=data.status_code)  # a raw host that wants people to sign in
            if not isinstance(data, Gone) or data.status_code is None:
                self._raw[revision] = True
            if not isinstance(data, Gone):
                return data
            self._raw.setdefault(revision, False)  # none was found there yet: nobody asks again
        data = await self._api.blob(state.name, file)
        if isinstance(data, Gone):
            reason = "GitHub has no content for it that fits its id"
            return Failed(outcome=Outcome.FAILED, reason=reason, status_code=data.status_code)
        return data


def _start(web: str, state: State) -> str:
    return blob_start(web, state.shown, state.branch)
