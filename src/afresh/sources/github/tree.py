"""What GitHub says of a repository: checked values made of its JSON, and the mark that names a state."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from afresh.sources.github.address import is_ref, odd_path

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_SYMLINK, _FILES = "120000", ("100644", "100755", "100664")
LINKS, MODULES, ODD = "symbolic links", "submodules", "with a name that cannot be a path"


class File(NamedTuple):
    """A file of a repository."""

    path: str
    id: str  # of its content, as git names it
    size: int | None

    @property
    def etag(self) -> str:
        """The validator of the page: equal exactly as long as the content is."""
        return f'"{self.id}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One listing of a repository, or of a folder of it."""

    id: str  # of the commit that was asked for, or of the folder
    files: tuple[File, ...]
    folders: tuple[tuple[str, str], ...]  # path and id
    left_out: Mapping[str, int] = field(default_factory=dict)
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What GitHub says of a repository as a whole."""

    name: str  # as it is called today
    branch: str  # the default one
    wiki: bool
    private: bool


class WrongAnswer(ValueError):
    """An answer that GitHub would not give."""


def read_tree(answer: object, below: str = "") -> Tree:
    """The listing that an answer of `git/trees` is; `below` is put before its paths."""
    found = _mapping(answer)
    entries = found.get("tree")
    if not isinstance(entries, list):
        raise WrongAnswer("it lists no files")
    files: dict[str, File] = {}
    folders: dict[str, str] = {}
    left_out: Counter[str] = Counter()
    for entry in entries:
        each = _mapping(entry)
        path = each.get("path")
        if not isinstance(path, str) or odd_path(f"{below}{path}"):
            left_out[ODD] += 1
            continue
        kind, mode, path = each.get("type"), each.get("mode"), f"{below}{path}"
        if kind == "tree":
            folders[path] = _id(each.get("sha"))
        elif kind == "commit":
            left_out[MODULES] += 1
        elif mode == _SYMLINK:
            left_out[LINKS] += 1
        elif kind == "blob" and mode in _FILES:
            files[path] = File(path, _id(each.get("sha")), _size(each.get("size")))
        else:
            left_out[ODD] += 1
    return Tree(
        id=_id(found.get("sha")),
        files=tuple(files.values()),
        folders=tuple(folders.items()),
        left_out=left_out,
        truncated=found.get("truncated") is True,
    )


def read_facts(answer: object) -> Facts:
    """What an answer of `repos/owner/repo` says."""
    found = _mapping(answer)
    name, branch = found.get("full_name"), found.get("default_branch")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WrongAnswer("it names no repository")
    if not isinstance(branch, str) or not is_ref(branch):
        raise WrongAnswer("it names no default branch")
    wiki, private = found.get("has_wiki"), found.get("private")
    return Facts(name=name, branch=branch, wiki=wiki is True, private=private is not False)


def _mapping(answer: object) -> Mapping[str, object]:
    if not isinstance(answer, dict):
        raise WrongAnswer("it is no JSON object")
    return answer


def _id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise WrongAnswer("it holds an id that is none of git's")
    return value


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a repository stood when it was listed; as text it is the mark that is kept with the source."""

    etag: str  # of the listing; "" where the server named none
    name: str  # under which the API knows the repository
    shown: str  # under which its pages stand
    ref: str  # that was asked for
    path: str  # of the folder that is meant; "" for all
    branch: str  # that stands in the addresses of its pages
    commit: str
    private: bool
    wiki: bool
    rules: str  # what else decided which files are listed

    def as_text(self) -> str:
        """The mark as it is kept."""
        return json.dumps(asdict(self), sort_keys=True)


def read_mark(text: str | None, rules: str) -> State | None:
    """The state that a mark names; None where it is of another version or was made under other rules."""
    try:
        found = json.loads(text or "null")
        state = State(**found) if isinstance(found, dict) else None
    except (ValueError, TypeError):
        return None
    if state is None or state.rules != rules or not state.etag:
        return None
    flags = (state.private, state.wiki)
    texts = (state.etag, state.name, state.shown, state.ref, state.path, state.branch, state.commit)
    sound = all(isinstance(each, str) for each in texts) and all(isinstance(each, bool) for each in flags)
    return state if sound else None
