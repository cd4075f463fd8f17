"""Walking a folder: which files it holds, and what is left out for which reason."""

import os
import stat
from collections import Counter
from dataclasses import dataclass, field

from afresh.core.ignore import Level
from afresh.sources.sieve import IGNORE_FILE, Sieve

TOO_LARGE = "larger than files.max_file_bytes"
_Folder = tuple[str, int, tuple[Level, ...]]  # path with a slash at its end, depth, ignore rules above it


@dataclass(slots=True)
class Walk:
    """What a walk found; paths are seen from the root, with forward slashes."""

    files: list[tuple[str, int, int]] = field(default_factory=list)  # path, size, mtime_ns
    dropped: Counter[str] = field(default_factory=Counter)  # why to how many
    errors: list[str] = field(default_factory=list)  # what could not be listed


def walk(sieve: Sieve) -> Walk:
    """Everything below a folder that its rules let in, sorted; OSError if it cannot be listed at all."""
    found, circles = Walk(), _Circles(sieve)
    folders: list[_Folder] = [("", 0, ())]
    while folders:
        prefix, depth, levels = folders.pop()
        if depth > sieve.rules.max_depth:
            found.dropped["too deep"] += 1
            continue
        try:
            with os.scandir(os.path.join(sieve.root, prefix)) as entries:
                listed = list(entries)
            if any(entry.name == IGNORE_FILE for entry in listed):
                levels = sieve.levels(prefix, levels)
        except OSError as error:
            if not prefix:
                raise
            found.errors.append(f"{prefix} could not be listed: {error.strerror}")
            continue
        for entry in listed:
            try:
                if entry.is_file(follow_symlinks=False):
                    _take_file(entry, prefix, levels, sieve, found)
                else:
                    _take_other(entry, (prefix, depth, levels), sieve, circles, found, folders)
            except OSError as error:  # it vanished, or may not be looked at
                found.errors.append(f"{prefix}{entry.name} could not be looked at: {error.strerror}")
    found.files.sort()
    if len(found.files) > sieve.rules.max_files:
        _cut(found, sieve.rules.max_files)
    return found


def _take_file(
    entry: "os.DirEntry[str]", prefix: str, levels: tuple[Level, ...], sieve: Sieve, found: Walk
) -> None:
    name = entry.name
    path = prefix + name
    reason = sieve.why_not_file(path, name, levels)
    if reason is None:
        status = entry.stat()
        if status.st_size <= sieve.rules.max_bytes:
            found.files.append((path, status.st_size, status.st_mtime_ns))
            return
        found.dropped[TOO_LARGE] += 1
    else:
        found.dropped[reason] += 1


def _take_other(
    entry: "os.DirEntry[str]",
    folder: _Folder,
    sieve: Sieve,
    circles: "_Circles",
    found: Walk,
    folders: list[_Folder],
) -> None:
    """A folder, a link to a file or a folder, or something special."""
    prefix, depth, levels = folder
    path = prefix + entry.name
    reason = circles.why_not(entry) if entry.is_symlink() else None
    if reason is None and entry.is_dir():
        reason = sieve.why_not_folder(path, entry.name, levels)
        if reason is None:
            folders.append((path + "/", depth + 1, levels))
    elif reason is None and stat.S_ISREG(entry.stat().st_mode):
        _take_file(entry, prefix, levels, sieve, found)
    elif reason is None:
        reason = sieve.why_not_file(path, entry.name, levels) or "special file"
    if reason is not None:
        found.dropped[reason] += 1


class _Circles:
    """Follows links only if asked for, only inside the root, and into no folder twice."""

    def __init__(self, sieve: Sieve) -> None:
        self._sieve = sieve
        self._seen: set[str] = set()

    def why_not(self, entry: "os.DirEntry[str]") -> str | None:
        if not self._sieve.rules.symlinks:
            return "symbolic link"
        root = self._sieve.root.rstrip("/") + "/"
        target = os.path.realpath(entry.path)
        if not (target + "/").startswith(root):
            return "link out of the folder"
        if not entry.is_dir():
            return None
        if os.path.realpath(os.path.dirname(entry.path)).startswith(target) or target in self._seen:
            return "link that goes in circles"
        self._seen.add(target)
        return None


def _cut(found: Walk, most: int) -> None:
    found.errors.append(
        f"more than {most:,} files: only the first are looked at (files.max_files sets the limit)"
    )
    del found.files[most:]
