"""List the files of a GitHub repository, folder by folder if one answer of the API cannot contain them."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import islice

from afresh.dataclass import dataclass, field, replace
from afresh.model.fetch import Failed, Gone, NotModified, Outcome, Refused
from afresh.sources.folder.filter import RepositoryRules
from afresh.sources.git.address import ANONYMOUS
from afresh.sources.github.address import GithubAddress, blob_start, blob_url, wiki_root
from afresh.sources.github.api import (
    GithubApi,
    GithubFile,
    GithubState,
    GithubTree,
    RepositoryFacts,
    Unavailable,
    read_mark,
)

_MAX_REQUESTS = 200
TOO_LONG = "with a name too long for a URL"
_MAX_TRIES = 3
WIKI_ALONE = "wiki"  # stored in place of the ETag if the source is only a wiki


async def by_levels(
    api: GithubApi, name: str, commit: str, path: str, most_files: int
) -> tuple[GithubTree, str | None]:
    """Return all files at or below `path`, listed level by level if they are too many, and why some are missing."""
    files: dict[str, GithubFile] = {}
    left_out: Counter[str] = Counter()
    folders, asked, cut = [("", commit, False)], 0, False
    while folders and asked < _MAX_REQUESTS and len(files) <= most_files:
        folder, tree, whole = folders.pop()
        listing = await api.tree(name, tree, below=f"{folder}/" if folder else "", whole=whole)
        if not isinstance(listing, GithubTree):
            raise Unavailable(Failed(reason="a folder was deleted before it was listed"))
        asked += 1
        if listing.truncated and whole:
            folders.append((folder, tree, False))
            continue
        files.update((each.path, each) for each in listing.files if is_at(each.path, path))
        left_out.update(listing.left_out)
        if not whole:
            near = (each for each in listing.folders if is_at(each[0], path) or is_at(path, each[0]))
            folders.extend((each, its, True) for each, its in near)
            cut = cut or listing.truncated
    found = GithubTree(id=commit, files=tuple(files.values()), folders=(), left_out=left_out)
    many = f"{name} has more files than can be listed: {asked} requests found only {len(files):,} of them"
    return found, many if folders or cut else None


def is_at(path: str, folder: str) -> bool:
    """Return whether a path is equal to a folder or inside it; "" contains every path."""
    return not folder or path == folder or path.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubSnapshot:
    state: GithubState
    files: Mapping[str, GithubFile] | None  # by page URL; None: unchanged since the mark
    left_out: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[str] = ()  # why the listing is incomplete

    @property
    def notes(self) -> Sequence[str]:
        name, url_name = self.state.name, self.state.url_name
        return () if name.lower() == url_name.lower() else (f"{url_name} is called {name} now",)

    @property
    def mark(self) -> str | None:
        """Return the state as text for the next run; None if it has no ETag or the listing is incomplete."""
        return self.state.as_text() if self.state.etag and not self.errors else None


class GithubRepository:
    """Lists the files of a repository once per run, for lister and fetcher."""

    def __init__(
        self, api: GithubApi, address: GithubAddress, mark: str | None, rules: RepositoryRules, *, wiki: bool
    ) -> None:
        self._api = api
        self.address = address
        self._wiki = wiki and address.has_wiki
        text = f"{address.url} {self._wiki} {rules.terms}"
        self._terms = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._rules = rules
        self.old = read_mark(mark, self._terms)  # the state of the last listing
        self._lock = asyncio.Lock()
        self._tries = 0
        self._error: Unavailable | None = None
        self.seen: GithubSnapshot | None = None

    @property
    def wiki(self) -> str | None:
        """Return the URL of the first wiki page; None if the source has no wiki or it is known to be empty."""
        state = self.seen.state if self.seen else self.old
        name = state.name if state else self.address.name
        return wiki_root(self.address.web, name) if (state.wiki if state else self._wiki) else None

    async def look(self, *, again: bool = False) -> GithubSnapshot:
        """List the files once; with `again`, even if nothing has changed since the last run."""
        async with self._lock:
            if self.seen is None or (again and self.seen.files is None):
                if self._error is not None:
                    raise self._error
                try:
                    self.seen = await (self._find() if self.seen is None else self._again(self.seen.state))
                except Unavailable as error:
                    self._tries += 1
                    if isinstance(error.seen, Refused):  # a repetition would fail too, so do not try it for every page
                        self._error = error
                    elif self._tries >= _MAX_TRIES:
                        self._error = Unavailable(replace(error.seen, hopeless=True))
                    raise
            return self.seen

    def drop_wiki(self) -> None:
        """Record that the wiki has no pages; it is requested again after a change of the repository."""
        if self.seen is not None:
            self.seen = replace(self.seen, state=replace(self.seen.state, wiki=False))

    async def _find(self) -> GithubSnapshot:
        old = self.old
        if self.address.wiki_only:
            # the API is not needed, because wiki pages have their own validators
            name, rules = self.address.name, self._terms
            state = GithubState(
                etag=WIKI_ALONE, name=name, url_name=name, ref="", path="", branch="", commit="",
                private=False, wiki=True, rules=rules,
            )  # fmt: skip
            return GithubSnapshot(state=state, files={})
        if old is not None:
            listing = await self._api.tree(old.name, old.ref, etag=old.etag)
            if isinstance(listing, NotModified):
                return GithubSnapshot(state=old, files=None)
            if isinstance(listing, GithubTree):
                return await self._read(listing, old.name, old.ref, old.path)
        found: tuple[GithubTree, str, str] | None = None
        for ref, path in self.address.readings():
            listing = await self._api.tree(self.address.name, ref)
            if isinstance(listing, GithubTree):
                found = listing, ref, path
                if listing.truncated or _holds(listing, path):
                    break  # otherwise try the next pair: the ref may be longer
        if found:
            return await self._read(found[0], self.address.name, *found[1:])
        await self._facts(self.address.name)
        ref = self.address.ref or "/".join(self.address.rest) or "HEAD"
        raise _refused(f"{self.address.name} has no branch, tag or commit {ref}")

    async def _again(self, state: GithubState) -> GithubSnapshot:
        """List the files of the commit of the last run; a newer commit is read in the next run."""
        listing = await self._api.tree(state.name, state.commit)
        if not isinstance(listing, GithubTree):
            raise Unavailable(Failed(reason="the commit of the last listing no longer exists"))
        return await self._listed(listing, state)

    async def _facts(self, name: str) -> RepositoryFacts:
        facts = await self._api.facts(name)
        if not isinstance(facts, Gone):
            return facts
        if self._api.is_anonymous:
            raise _refused(f"{name} does not exist on {self.address.web}, or it is private; {ANONYMOUS}")
        why = "the token has no access to it" if await self._api.token() else "it is private and needs a token"
        raise _refused(f"{name} does not exist on {self.address.web}, or {why} (github.token, GITHUB_TOKEN)")

    async def _read(self, tree: GithubTree, name: str, ref: str, path: str) -> GithubSnapshot:
        """Request name, default branch and visibility of the repository; return its state and the files in `tree`."""
        facts = await self._facts(name)
        renamed = facts.name.lower() != self.address.name.lower()
        state = GithubState(
            etag=tree.etag,
            name=facts.name,
            url_name=self.address.name if renamed else facts.name,
            ref=ref,
            path=path,
            branch=facts.branch if ref == "HEAD" else ref,
            commit=tree.id,
            private=facts.private,
            wiki=self._wiki and facts.wiki and not facts.private,
            rules=self._terms,
        )
        return await self._listed(tree, state)

    async def _listed(self, tree: GithubTree, state: GithubState) -> GithubSnapshot:
        """Return the accepted files in `tree`; if it is truncated, request all folders first."""
        errors = []
        if tree.truncated:
            tree, missing = await by_levels(self._api, state.name, state.commit, state.path, self._rules.max_files)
            errors = [missing] if missing else []
        if not _holds(tree, state.path):
            raise _refused(f"{state.name} has no file or folder {state.path} on {state.ref}")
        files, left_out = await asyncio.to_thread(self._files, tree, state)
        if len(files) > (most := self._rules.max_files):
            errors.append(f"the repository has {len(files):,} files; only {most:,} of them are read (files.max_files)")
            files = dict(islice(files.items(), most))
        return GithubSnapshot(state=state, files=files, left_out=left_out, errors=errors)

    def _files(self, tree: GithubTree, state: GithubState) -> tuple[dict[str, GithubFile], Counter[str]]:
        files: dict[str, GithubFile] = {}
        left_out = Counter(tree.left_out)
        start = blob_start(self.address.web, state.url_name, state.branch)
        for file in tree.files:
            if not is_at(file.path, state.path):
                continue
            url = blob_url(start, file.path)
            why = self._rules.why_not(file.path) if url else TOO_LONG
            if why is None and (file.size or 0) > self._rules.max_file_bytes:
                why = "larger than files.max_file_bytes"
            if url is None or why is not None:
                left_out[why or TOO_LONG] += 1
            else:
                files[url] = file
        return files, left_out


def _holds(tree: GithubTree, path: str) -> bool:
    return not path or any(is_at(each.path, path) for each in tree.files)


def _refused(reason: str) -> Unavailable:
    return Unavailable(Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=404))
