"""Objects of git as git itself names them: blobs, trees and commits, with their real ids."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a repository."""

    mode: str  # 100644, 100755, 120000 for a symbolic link, 160000 for a submodule
    id: str
    size: int = 0

    @property
    def type(self) -> str:
        """What the API calls it."""
        return {"40000": "tree", "160000": "commit"}.get(self.mode, "blob")


@dataclass(frozen=True, slots=True)
class Symlink:
    """A symbolic link, to be pushed in place of bytes."""

    target: str


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule, to be pushed in place of bytes."""

    commit: str = "5" * 40


Pushed = bytes | Symlink | Submodule


def object_id(kind: str, data: bytes) -> str:
    """The id of an object."""
    head = f"{kind} {len(data)}\0".encode()
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()


@dataclass(slots=True)
class Objects:
    """All objects of a repository: contents by id, and the entries of each folder by its id."""

    blobs: dict[str, bytes]
    trees: dict[str, dict[str, Entry]]

    def add(self, files: Mapping[str, Pushed]) -> str:
        """Keep a whole tree; its id."""
        here: dict[str, Entry] = {}
        below: dict[str, dict[str, Pushed]] = {}
        for path, content in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = content
            else:
                here[name] = self._leaf(content)
        here.update((name, Entry("40000", self.add(inner))) for name, inner in below.items())
        ordered = sorted(here.items(), key=lambda each: _order(*each))
        data = b"".join(
            f"{entry.mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(entry.id)
            for name, entry in ordered
        )
        tree = object_id("tree", data)
        self.trees[tree] = dict(ordered)
        return tree

    def _leaf(self, content: Pushed) -> Entry:
        match content:
            case Submodule(commit):
                return Entry("160000", commit)
            case Symlink(target):
                data, mode = target.encode(), "120000"
            case _:
                data, mode = content, "100644"
        name = object_id("blob", data)
        self.blobs[name] = data
        return Entry(mode, name, len(data))

    def walk(self, tree: str, *, whole: bool, below: str = "") -> list[tuple[str, Entry]]:
        """The entries of a folder with their paths, in the order of git; `whole` goes into folders."""
        found: list[tuple[str, Entry]] = []
        for name, entry in self.trees[tree].items():
            found.append((f"{below}{name}", entry))
            if whole and entry.type == "tree":
                found += self.walk(entry.id, whole=True, below=f"{below}{name}/")
        return found

    def file(self, tree: str, path: str) -> bytes | None:
        """The content at a path."""
        name, slash, rest = path.partition("/")
        entry = self.trees[tree].get(name)
        if entry is None:
            return None
        if slash:
            return self.file(entry.id, rest) if entry.type == "tree" else None
        return self.blobs.get(entry.id)


def _order(name: str, entry: Entry) -> bytes:
    """Git sorts a folder as if its name ended in a slash."""
    return f"{name}/".encode() if entry.type == "tree" else name.encode("utf-8", "surrogateescape")


def commit_id(tree: str, parent: str | None, number: int) -> str:
    """The id of a commit made by nobody at the given second."""
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
    author = f"nobody <nobody@example.org> {1_700_000_000 + number} +0000"
    lines += [f"author {author}", f"committer {author}", "", "push", ""]
    return object_id("commit", "\n".join(lines).encode())
