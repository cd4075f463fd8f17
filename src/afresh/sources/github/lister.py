"""A GitHub repository as a source: its files as the listing tells them, its wiki as pages that are walked."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from afresh.errors import SourceError
from afresh.model.fetch import Failed, Refused, Validators
from afresh.model.records import Listed
from afresh.sources.folder.filter import HIDDEN, UNWANTED
from afresh.sources.github.tree import File

_UNTOLD = frozenset({HIDDEN, UNWANTED})  # what nobody needs to be told


class Seen(Protocol):
    """What was seen of a repository."""

    @property
    def files(self) -> Mapping[str, File] | None:
        """The files by the address of their page; None where nothing changed since the mark."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]: ...

    @property
    def errors(self) -> Sequence[str]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def mark(self) -> str | None: ...


class Repository(Protocol):
    """Tells what a repository holds."""

    @property
    def seen(self) -> Seen | None: ...

    @property
    def wiki(self) -> str | None:
        """The first page of its wiki."""
        ...

    async def look(self) -> Seen | Refused | Failed: ...


class Wiki(Protocol):
    """Looks whether a wiki has pages."""

    async def find_wiki(self) -> str | None: ...

    def walks(self, url: str) -> bool: ...


class GithubLister:
    """Lists the files of a repository with the ids of their contents, and the first page of its wiki."""

    kind = "github"

    def __init__(self, repository: Repository, wiki: Wiki, *, most_walked: int = 10_000) -> None:
        self._repository = repository
        self._wiki = wiki
        self._most_walked = most_walked
        self._walked: set[str] = set()
        self._listed = False
        self.unchanged = False
        self.listing_errors: Sequence[str] = ()
        self.dropped: Mapping[str, int] = {}
        self.notes: Sequence[str] = ()

    @property
    def mark(self) -> str | None:
        """The state that was listed, as text; also whether the wiki turned out to have pages."""
        return self._repository.seen.mark if self._listed and self._repository.seen else None

    def walks(self, url: str) -> bool:
        """Whether a page is of the wiki, where links lead from one to the next."""
        return self._wiki.walks(url)

    async def list(self) -> AsyncIterator[Listed]:
        """The files, unless nothing changed, and the first page of the wiki."""
        seen = await self._repository.look()
        if isinstance(seen, Refused | Failed):
            raise SourceError(seen.reason)
        self.listing_errors, self.unchanged, self.notes = seen.errors, seen.files is None, seen.notes
        self.dropped = {why: number for why, number in seen.left_out.items() if why not in _UNTOLD}
        for url, file in (seen.files or {}).items():
            yield Listed(url, file.path.count("/"), Validators(etag=file.etag))
        root = self._repository.wiki if seen.files is None else await self._wiki.find_wiki()
        if root is not None:
            yield Listed(root, 0)
        self._listed = True

    def refusal(self, url: str, depth: int) -> str | None:
        """Why a page of the wiki is one too many; of files the listing tells."""
        if url in self._walked or not self.walks(url):
            return None
        if len(self._walked) >= self._most_walked:
            return f"more than {self._most_walked:,} pages of a wiki (crawl.max_pages)"
        self._walked.add(url)
        return None
