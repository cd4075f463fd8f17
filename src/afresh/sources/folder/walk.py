"""Walking a folder: which files it holds, and what is left out for which reason."""

import os
import stat
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from afresh.sources.folder.filter import IGNORE_FILE, Sieve
from afresh.sources.folder.ignore import LONGEST, MOST_BYTES, MOST_RULES, Level

TOO_LARGE = "larger than files.max_file_bytes"
# path with a slash at its end, depth, ignore rules above it, and where it really stands if a link led there
_Folder = tuple[str, int, tuple[Level, ...], str | None]


@dataclass(slots=True)
class Walk:
    """What a walk found; paths are seen from the root, with forward slashes."""

    files: list[tuple[str, int, int]] = field(default_factory=list)  # path, size, mtime_ns
    dropped: Counter[str] = field(default_factory=Counter)  # why to how many
    errors: list[str] = field(default_factory=list)  # what could not be listed


def walk(sieve: Sieve, is_over: Callable[[], bool] = lambda: False) -> Walk:
    """Everything below a folder that its rules let in, sorted; OSError if it cannot be listed at all.

    It ends early, with what it has, when nobody waits for it any more.
    """
    found, circles = Walk(), _Circles(sieve)
    folders: list[_Folder] = [("", 0, (), None)]
    while folders and not is_over():
        prefix, depth, levels, target = folders.pop()
        if depth > sieve.rules.max_depth:
            found.dropped["too deep"] += 1
            continue
        try:
            with os.scandir(os.path.join(sieve.root, prefix)) as entries:
                listed = list(entries)
            if any(entry.name == IGNORE_FILE for entry in listed):
                levels = _with_own(levels, prefix, sieve, found)
        except OSError as error:
            if not prefix:
                raise
            found.errors.append(f"{prefix} could not be listed: {error.strerror}")
            continue
        if target is not None:
            listed = _let_in(listed, target, sieve, found)
        for entry in listed:
            try:
                if entry.is_file(follow_symlinks=False):
                    _take_file(entry, prefix, levels, sieve, found)
                else:
                    _take_other(entry, (prefix, depth, levels, target), sieve, circles, found, folders)
            except OSError as error:  # it vanished, or may not be looked at
                found.errors.append(f"{prefix}{entry.name} could not be looked at: {error.strerror}")
    found.files.sort()
    if len(found.files) > sieve.rules.max_files:
        _cut(found, sieve)
    return found


def _with_own(above: tuple[Level, ...], prefix: str, sieve: Sieve, found: Walk) -> tuple[Level, ...]:
    """The ignore rules above a folder and its own; those that are too many are told."""
    levels = sieve.levels(prefix, above)
    if len(levels) > len(above) and not levels[-1][1].whole:
        found.errors.append(
            f"{prefix}{IGNORE_FILE} is too large: rules beyond {MOST_RULES:,}, beyond {MOST_BYTES:,} bytes "
            f"and those of more than {LONGEST:,} characters are not obeyed"
        )
    return levels


def _let_in(
    listed: "list[os.DirEntry[str]]", target: str, sieve: Sieve, found: Walk
) -> "list[os.DirEntry[str]]":
    """What of a folder behind a link is not left out where it really stands."""
    kept = []
    for entry in listed:
        # a link is judged by where it leads to
        reason = None if entry.is_symlink() else sieve.why_not_target(f"{target}/{entry.name}")
        if reason is None:
            kept.append(entry)
        else:
            found.dropped[reason] += 1
    return kept


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
    prefix, depth, levels, target = folder
    path = prefix + entry.name
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        reason = circles.why_not(entry, target)
    else:
        target = target and f"{target}/{entry.name}"
        reason = None
    if reason is None and entry.is_dir():
        reason = sieve.why_not_folder(path, entry.name, levels)
        if reason is None:
            folders.append((path + "/", depth + 1, levels, target))
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

    def why_not(self, entry: "os.DirEntry[str]", target: str) -> str | None:
        if not self._sieve.rules.symlinks:
            return "symbolic link"
        if reason := self._sieve.why_not_target(target):
            return reason
        if not entry.is_dir():
            return None
        place = os.path.realpath(os.path.dirname(entry.path)) + "/"
        if place.startswith(target.rstrip("/") + "/") or target in self._seen:
            return "link that goes in circles"
        self._seen.add(target)
        return None


def _cut(found: Walk, sieve: Sieve) -> None:
    most, setting = sieve.rules.max_files, sieve.rules.limited_by
    found.errors.append(f"more than {most:,} files: only the first are looked at ({setting} sets the limit)")
    del found.files[most:]
