"""A tree that is too large for one answer, listed folder by folder."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice

from afresh.model.fetch import Failed, Gone, NotModified, Outcome, Refused
from afresh.sources.git.address import ANONYMOUS
from afresh.sources.github.address import GithubAddress, blob_start, blob_url, wiki_root
from afresh.sources.github.api import GithubApi, Listing
from afresh.sources.github.tree import Facts, File, State, Tree, read_mark

_MOST_QUESTIONS = 200


async def by_levels(
    api: GithubApi, name: str, commit: str, path: str, most_files: int
) -> tuple[Tree, str | None] | Refused | Failed:
    """All files at or below `path`, and why some are missing; a folder that is still too large is opened."""
    files: dict[str, File] = {}
    left_out: Counter[str] = Counter()
    folders, asked, cut = [("", commit, False)], 0, False
    while folders and asked < _MOST_QUESTIONS and len(files) <= most_files:
        folder, tree, whole = folders.pop()
        below = f"{folder}/" if folder else ""
        listing = await api.tree(name, tree, below=below, whole=whole)
        if not isinstance(listing, Listing):
            return _trouble(listing)
        asked += 1
        if listing.tree.truncated and whole:
            folders.append((folder, tree, False))
            continue
        files.update((each.path, each) for each in listing.tree.files if is_at(each.path, path))
        left_out.update(listing.tree.left_out)
        if not whole:
            near = (each for each in listing.tree.folders if is_at(each[0], path) or is_at(path, each[0]))
            folders.extend((each, its, True) for each, its in near)
            cut = cut or listing.tree.truncated
    found = Tree(id=commit, files=tuple(files.values()), folders=(), left_out=left_out)
    many = f"{name} has more files than can be listed; {len(files):,} are, after {asked} questions"
    return found, many if folders or cut else None


def is_at(path: str, folder: str) -> bool:
    """Whether a path is a folder or stands below it; "" is the root, above all."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _trouble(listing: object) -> Refused | Failed:
    if isinstance(listing, Refused | Failed):
        return listing
    return Failed(outcome=Outcome.FAILED, reason="a folder was gone before it was listed")


TOO_LONG = "with a name too long for an address"
_MOST_TRIES = 3
WIKI_ALONE = "wiki"  # stands for the ETag where no file is listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was seen of a repository."""

    state: State
    files: Mapping[str, File] | None  # by the address of their page; None: nothing changed since the mark
    left_out: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[str] = ()  # why the listing is incomplete

    @property
    def notes(self) -> Sequence[str]:
        """What a reader of the report should know."""
        name, shown = self.state.name, self.state.shown
        return () if name.lower() == shown.lower() else (f"{shown} is called {name} now",)

    @property
    def mark(self) -> str | None:
        """What names this state; None where nothing would vouch for it."""
        return self.state.as_text() if self.state.etag and not self.errors else None


class GithubRepository:
    """Tells what a repository holds; all who ask in one run share one look at it."""

    def __init__(
        self,
        api: GithubApi,
        address: GithubAddress,
        *,
        mark: str | None = None,
        rules: str = "",
        refusal: Callable[[str], str | None] = lambda path: None,
        wiki: bool = True,
        most_files: int = 100_000,
        max_file_bytes: int | None = None,
    ) -> None:
        self._api = api
        self.address = address
        self._wiki = wiki and address.has_wiki
        text = f"{address.url} {self._wiki} {rules}"
        self._rules = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._refusal = refusal  # why a path is left out by the rules
        self._most = most_files
        self._largest = max_file_bytes
        self.old = read_mark(mark, self._rules)  # the state that was listed before
        self._lock = asyncio.Lock()
        self._tries = 0
        self._trouble: Refused | Failed | None = None
        self.seen: Snapshot | None = None

    async def has_token(self) -> bool:
        """Whether it is asked for as somebody."""
        return await self._api.has_token()

    @property
    def wiki(self) -> str | None:
        """The first page of the wiki, as far as it is known that there is one."""
        state = self.seen.state if self.seen else self.old
        name = state.name if state else self.address.name
        return wiki_root(self.address.web, name) if (state.wiki if state else self._wiki) else None

    async def look(self, *, anew: bool = False) -> Snapshot | Refused | Failed:
        """The state, asked for once; `anew` wants its files even if nothing changed since the mark."""
        async with self._lock:
            if self.seen is None or (anew and self.seen.files is None):
                if self._trouble is not None:
                    return self._trouble
                found = await (self._find() if self.seen is None else self._again(self.seen.state))
                if not isinstance(found, Snapshot):
                    return self._count(found)
                self.seen = found
            return self.seen

    def _count(self, trouble: Refused | Failed) -> Refused | Failed:
        """Trouble that lasts is not asked for by every page anew."""
        self._tries += 1
        if isinstance(trouble, Refused):
            self._trouble = trouble
        elif self._tries >= _MOST_TRIES:
            self._trouble = replace(trouble, hopeless=True)
        return trouble

    def drop_wiki(self) -> None:
        """The wiki turned out to have no pages; it is asked for again when the repository changes."""
        if self.seen is not None:
            self.seen = replace(self.seen, state=replace(self.seen.state, wiki=False))

    async def _find(self) -> Snapshot | Refused | Failed:
        old = self.old
        if self.address.wiki_only:
            return Snapshot(state=self._alone(), files={})
        if old is not None:
            listing = await self._api.tree(old.name, old.ref, etag=old.etag)
            if isinstance(listing, NotModified):
                return Snapshot(state=old, files=None)
            if isinstance(listing, Listing):
                return await self._read(listing, old.name, old.ref, old.path)
            if not isinstance(listing, Gone):
                return listing
        found: tuple[Listing, str, str] | None = None
        for ref, path in self.address.readings():
            listing = await self._api.tree(self.address.name, ref)
            if isinstance(listing, Listing):
                found = listing, ref, path
                if listing.tree.truncated or _holds(listing.tree, path):
                    break  # else a longer name may be meant
            elif not isinstance(listing, Gone | NotModified):
                return listing
        return await (self._read(found[0], self.address.name, *found[1:]) if found else self._nowhere())

    async def _again(self, state: State) -> Snapshot | Refused | Failed:
        """The files of a state that was not listed, being as it was; later commits are for later runs."""
        listing = await self._api.tree(state.name, state.commit)
        if not isinstance(listing, Listing):
            if isinstance(listing, Gone | NotModified):
                return Failed(outcome=Outcome.FAILED, reason="the commit that was read is no longer there")
            return listing
        return await self._listed(listing, state)

    def _alone(self) -> State:
        """Only the wiki is meant: its pages tell of themselves, and the API is not asked."""
        name = self.address.name
        return State(
            etag=WIKI_ALONE, name=name, shown=name, ref="", path="", branch="", commit="",
            private=False, wiki=True, rules=self._rules,
        )  # fmt: skip

    async def _nowhere(self) -> Refused | Failed:
        """Why nothing was found under any name."""
        facts = await self._facts(self.address.name)
        if not isinstance(facts, Facts):
            return facts
        meant = self.address.ref or "/".join(self.address.rest) or "HEAD"
        return _refused(f"{self.address.name} has no branch, tag or commit {meant}")

    async def _facts(self, name: str) -> Facts | Refused | Failed:
        facts = await self._api.facts(name)
        if not isinstance(facts, Gone):
            return facts
        if self._api.is_anonymous:
            return _refused(f"{name} is not on {self.address.web}, or it is private; {ANONYMOUS}")
        why = "the token may not read it" if await self.has_token() else "it is private and needs a token"
        return _refused(f"{name} is not on {self.address.web}, or {why} (github.token, GITHUB_TOKEN)")

    async def _read(self, listing: Listing, name: str, ref: str, path: str) -> Snapshot | Refused | Failed:
        """All that is meant of a repository that has just been listed."""
        facts = await self._facts(name)
        if not isinstance(facts, Facts):
            return facts
        return await self._listed(listing, self._state(facts, ref, path, listing))

    async def _listed(self, listing: Listing, state: State) -> Snapshot | Refused | Failed:
        """The files of a state, all of them though one answer may not hold them."""
        tree, errors = listing.tree, []
        if tree.truncated:
            found = await by_levels(self._api, state.name, state.commit, state.path, self._most)
            if not isinstance(found, tuple):
                return found
            tree, missing = found
            errors = [missing] if missing else []
        if not _holds(tree, state.path):
            return _refused(f"{state.name} has nothing at {state.path} on {state.ref}")
        files, left_out = await asyncio.to_thread(self._files, tree, state)
        if len(files) > self._most:
            errors.append(f"{len(files):,} files, more than {self._most:,} are not listed")
            files = dict(islice(files.items(), self._most))
        return Snapshot(state=state, files=files, left_out=left_out, errors=errors)

    def _state(self, facts: Facts, ref: str, path: str, listing: Listing) -> State:
        renamed = facts.name.lower() != self.address.name.lower()
        return State(
            etag=listing.etag or "",
            name=facts.name,
            shown=self.address.name if renamed else facts.name,
            ref=ref,
            path=path,
            branch=facts.branch if ref == "HEAD" else ref,
            commit=listing.tree.id,
            private=facts.private,
            wiki=self._wiki and facts.wiki and not facts.private,
            rules=self._rules,
        )

    def _files(self, tree: Tree, state: State) -> tuple[dict[str, File], Counter[str]]:
        files: dict[str, File] = {}
        left_out = Counter(tree.left_out)
        start = blob_start(self.address.web, state.shown, state.branch)
        for file in tree.files:
            if not is_at(file.path, state.path):
                continue
            url = blob_url(start, file.path)
            why = TOO_LONG if url is None else self._refusal(file.path) or self._too_large(file)
            if url is None or why is not None:
                left_out[why or TOO_LONG] += 1
            else:
                files[url] = file
        return files, left_out

    def _too_large(self, file: File) -> str | None:
        if self._largest is None or file.size is None or file.size <= self._largest:
            return None
        return "larger than files.max_file_bytes"


def _holds(tree: Tree, path: str) -> bool:
    """Whether there is anything at a path; the whole of a repository may be empty."""
    return not path or any(is_at(each.path, path) for each in tree.files)


def _refused(reason: str) -> Refused:
    return Refused(outcome=Outcome.BLOCKED_4XX, reason=reason, status_code=404)
