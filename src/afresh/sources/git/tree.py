"""What git says of a repository, read into records: which commit a name means, and the files of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from afresh.errors import SourceError

FILES = frozenset({b"100644", b"100755", b"100664"})
_UNREAD = {b"120000": "symbolic links", b"160000": "submodules"}
_ODD_PARTS = frozenset({b"", b".", b"..", b".git"})
_SHORT_ID = re.compile(r"[0-9a-fA-F]{4,39}")


class RefKind(StrEnum):
    """What a name in a repository turned out to be."""

    HEAD = "HEAD"  # no name was given
    BRANCH = "branch"
    TAG = "tag"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    """The commit that is read."""

    commit: str
    kind: RefKind
    branch: str | None = None  # which HEAD names
    has_twin: bool = False  # a tag has the name of the branch that is read


class GitFile(NamedTuple):
    """One entry of a tree."""

    path: bytes
    blob: str
    unread: str | None  # what it is if it is no file: submodules, symbolic links, odd names


def patterns_for(ref: str | None) -> tuple[str, ...]:
    """What to ask a repository for, to learn which commit a name means."""
    if ref is None:
        return ("HEAD",)
    if ref.startswith("refs/"):
        return (ref, f"{ref}^{{}}")
    return (f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/tags/{ref}^{{}}")


def state_of(refs: bytes, ref: str | None) -> GitState:
    """The state that a name means, by the answer of `git ls-remote --symref`; a branch goes before a tag."""
    known, branch = _refs(refs)
    if ref is None:
        if "HEAD" not in known:
            raise SourceError(
                "the repository has no commits, or its HEAD names no branch there is: name one with @branch"
            )
        return GitState(commit=known["HEAD"], kind=RefKind.HEAD, branch=branch)
    meant = [(name, kind) for name, kind in _meanings(ref) if name in known]
    if meant:
        name, kind = meant[0]
        commit = known.get(f"{name}^{{}}") or known[name]
        return GitState(commit=commit, kind=kind, has_twin=len(meant) > 1)
    hint = ": a commit is named by its whole id" if _SHORT_ID.fullmatch(ref) else ""
    raise SourceError(f"the repository has no branch or tag {ref}{hint}")


def _meanings(ref: str) -> tuple[tuple[str, RefKind], ...]:
    if ref.startswith("refs/"):
        return ((ref, RefKind.TAG if ref.startswith("refs/tags/") else RefKind.BRANCH),)
    return ((f"refs/heads/{ref}", RefKind.BRANCH), (f"refs/tags/{ref}", RefKind.TAG))


def _refs(answer: bytes) -> tuple[dict[str, str], str | None]:
    known: dict[str, str] = {}
    branch = None
    for line in answer.decode("utf-8", "replace").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            branch = value.removeprefix("ref: ").removeprefix("refs/heads/") if name == "HEAD" else branch
        elif name:
            known.setdefault(name, value)
    return known, branch


def files_of(listing: bytes) -> Iterator[GitFile]:
    """The entries of `git ls-tree -r -z`, in its order."""
    for line in listing.split(b"\0"):
        about, _, path = line.partition(b"\t")
        mode, _, rest = about.partition(b" ")
        if path:
            yield GitFile(path, rest.rpartition(b" ")[2].decode("ascii", "replace"), _unread(mode, path))


def _unread(mode: bytes, path: bytes) -> str | None:
    if mode not in FILES:
        return _UNREAD.get(mode, "entries of an unknown kind")
    return "odd names" if not _ODD_PARTS.isdisjoint(path.split(b"/")) else None
