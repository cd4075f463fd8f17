"""A git repository as a source: the files of one commit, told apart by their ids."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Protocol

from afresh.model.fetch import Validators
from afresh.model.records import Listed
from afresh.sources.folder.filter import HIDDEN, UNWANTED
from afresh.sources.git.address import GitAddress, at_path
from afresh.sources.git.page_urls import GitPages, pages_of
from afresh.sources.git.tree import GitFile, GitState

_UNTOLD = frozenset({HIDDEN, UNWANTED})  # what nobody needs to be told


class Files(Protocol):
    """The files of one state of a repository."""

    @property
    def files(self) -> Mapping[str, GitFile]:
        """Those that are let in, by their addresses."""
        ...

    @property
    def dropped(self) -> Mapping[str, int]:
        """What was left out: why to how many."""
        ...


class Repository(Protocol):
    """What a lister asks of a repository."""

    address: GitAddress

    async def state(self) -> GitState: ...

    async def snapshot(self) -> Files: ...


class GitLister:
    """Lists the files of a repository; one that is at the same commit is asked one question."""

    kind = "git"

    def __init__(
        self, repository: Repository, *, mark: str | None = None, rules: str = "", max_files: int = 200_000
    ) -> None:
        self._repository = repository
        self._earlier = mark
        self._rules = rules  # what decides on the files that are let in, as text
        self._max_files = max_files
        self.mark: str | None = None
        self.unchanged = False
        self.listing_errors: Sequence[str] = ()
        self.dropped: Mapping[str, int] = {}
        self.notes: Sequence[str] = ()

    async def list(self) -> AsyncIterator[Listed]:
        """The files with the ids of their contents; none if the commit is the one that the mark names."""
        state = await self._repository.state()
        address = self._repository.address
        pages = pages_of(address, state.kind, state.branch)
        self.mark = self._mark(state, pages)
        if state.has_twin:
            name = address.ref
            self.notes = [f"{name} is a branch and a tag: the branch is read, @refs/tags/{name} is the tag"]
        if self.mark == self._earlier:
            self.unchanged = True
            return
        found = await self._repository.snapshot()
        self.dropped = {why: number for why, number in found.dropped.items() if why not in _UNTOLD}
        if len(found.files) > self._max_files:
            self.listing_errors = [
                f"{len(found.files):,} files, more than {self._max_files:,} are not listed"
            ]
        above = address.folder.count(b"/") + 1 if address.folder else 0
        for url, file in islice(found.files.items(), self._max_files):
            yield Listed(url, file.path.count(b"/") - above, Validators(etag=file.blob))

    def walks(self, url: str) -> bool:
        """No file is found by links."""
        return False

    def refusal(self, url: str, depth: int) -> str | None:
        """Nothing is refused beforehand: what the rules leave out is told as gone."""
        return None

    def _mark(self, state: GitState, pages: GitPages) -> str:
        """The commit, and all else that a listing depends on."""
        terms = "\n".join((pages.prefix, self._repository.address.folder.hex(), self._rules))
        return f"{state.commit} {blake2b(os.fsencode(terms), digest_size=8).hexdigest()}"


def bare_repository(typed: str) -> GitAddress | None:
    """The repository that a path means: a bare one or a `.git` folder, also as `path@ref#folder`."""
    path, _, folder = typed.rpartition("#") if "#" in typed else (typed, "", "")
    place, _, ref = path.rpartition("@") if "@" in path else (path, "", "")
    for each, name, part in ((typed, "", ""), (path, "", folder), (place, ref, folder)):
        if each and _is_bare(Path(each)):
            return at_path(os.fsencode(os.path.realpath(each)), name or None, os.fsencode(part))
    return None


def _is_bare(path: Path) -> bool:
    try:
        return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
    except OSError:
        return False
