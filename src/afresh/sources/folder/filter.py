"""Which files of a folder are let in: hidden ones, ignore files, links, suffixes and own patterns."""

import os
import stat
from dataclasses import dataclass

from afresh.sources.folder.ignore import MOST_BYTES, IgnoreFile, Level, ignored_by, parse_ignore_file
from afresh.urls.scope import Globs

IGNORE_FILE = ".gitignore"
MOST_KEPT = 256  # ignore files that are not read again while they are as they were

ARCHIVES = frozenset({"zip", "tar", "tgz", "tbz2", "txz", "gz", "bz2", "xz"})
BINARY = frozenset(
    "7z deb dmg iso jar lz4 rar rpm whl zst "  # noqa: SIM905 - words read best as words
    "bmp gif ico jpeg jpg png psd tif tiff webp avi flac m4a mkv mov mp3 mp4 ogg wav webm "
    "eot otf ttf woff woff2 "
    "a bin class dll dylib exe lib o obj pyc pyo so wasm dat db npy npz parquet pickle pkl sqlite".split()
)
MADE = frozenset({"node_modules", "__pycache__"})  # folders that nobody writes by hand
COMMON = frozenset({"md", "html", "txt", "py"})  # known at first sight
TEMPORARY = frozenset("crdownload part swo swp swx tmp".split())  # noqa: SIM905
_BY_SUFFIX = {**dict.fromkeys(BINARY, "binary"), **dict.fromkeys(TEMPORARY, "temporary")}
HIDDEN, IGNORED, UNWANTED = "hidden", "ignored", "as the rules want it"
OUTSIDE = "link out of the folder"


_Seen = tuple[int, int, int, int]  # what tells whether a file is as it was


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRules:
    """What of a folder is looked at."""

    gitignore: bool = True
    hidden: bool = False
    symlinks: bool = False
    ignore: tuple[str, ...] = ()
    max_files: int = 200_000
    max_bytes: int = 10_485_760
    limited_by: str = "files.max_files"  # the setting that says so
    max_depth: int = 100


class Sieve:
    """Judges paths seen from the root of a folder, with forward slashes."""

    def __init__(self, root: str, rules: FolderRules, wishes: Globs | None = None) -> None:
        self.root = root
        self.rules = rules
        self.wishes = wishes  # what is to be in or out by the settings of the source
        self._own: tuple[Level, ...] = (("", IgnoreFile(rules.ignore)),) if rules.ignore else ()
        self._shows_hidden = rules.hidden
        self._read: dict[str, tuple[_Seen, IgnoreFile]] = {}
        self._has_wishes = wishes is not None and wishes != Globs()

    def levels(self, prefix: str, above: tuple[Level, ...]) -> tuple[Level, ...]:
        """The ignore rules that hold in a folder: those above it and its own."""
        if not self.rules.gitignore:
            return above
        rules = self._rules_in(prefix)
        return above if rules is None else (*above, (prefix, rules))

    def _rules_in(self, prefix: str) -> IgnoreFile | None:
        """The rules of a folder's own ignore file; links and folders of that name are none, as for git."""
        path = os.path.join(self.root, prefix, IGNORE_FILE)
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode):
                return None
            seen = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self._read.get(prefix)
            if known is not None and known[0] == seen:
                return known[1]
            with open(path, "rb", opener=_open_plainly) as file:
                rules = parse_ignore_file(file.read(MOST_BYTES + 1))
        except FileNotFoundError:
            return None
        if len(self._read) >= MOST_KEPT:
            self._read.clear()
        self._read[prefix] = (seen, rules)
        return rules

    def why_not_folder(self, path: str, name: str, levels: tuple[Level, ...]) -> str | None:
        """Why a folder is left out with all it holds, or None."""
        if name[0] == "." and (name == ".git" or not self.rules.hidden):
            return HIDDEN
        if name in MADE:
            return "made by programs"
        return IGNORED if self._is_ignored(path, levels, is_folder=True) else None

    def why_not_file(self, path: str, name: str, levels: tuple[Level, ...]) -> str | None:
        """Why a file is left out, or None."""
        if name[0] == "." and not self._shows_hidden:
            return HIDDEN
        suffix = name[name.rfind(".") + 1 :]
        if suffix not in COMMON and (reason := _by_name(name, suffix)) is not None:
            return reason
        if (levels or self._own) and self._is_ignored(path, levels, is_folder=False):
            return IGNORED
        return UNWANTED if self._has_wishes and self._is_unwanted(path) else None

    def why_not(self, path: str) -> str | None:
        """Why a single file is left out, by all that holds on the way to it."""
        *folders, name = path.split("/")
        reason, levels = self._on_the_way(folders)
        if reason is not None:
            return reason
        if not self.rules.symlinks and os.path.islink(os.path.join(self.root, path)):
            return "symbolic link"
        return self.why_not_file(path, name, levels)

    def why_not_target(self, target: str) -> str | None:
        """Why what a link leads to, a path without links, is left out: it is hidden, ignored or outside."""
        above = self.root.rstrip("/") + "/"
        if not target.startswith(above):
            return None if target == self.root else OUTSIDE
        path = target[len(above) :]
        *folders, name = path.split("/")
        reason, levels = self._on_the_way(folders)
        if reason is not None:
            return reason
        if os.path.isdir(target):
            return self.why_not_folder(path, name, levels)
        if name[0] == "." and not self._shows_hidden:
            return HIDDEN
        return IGNORED if self._is_ignored(path, levels, is_folder=False) else None

    def _is_unwanted(self, path: str) -> bool:
        return self.wishes is not None and self.wishes.refusal(f"/{path}") is not None

    def why_not_within(self, path: str) -> str | None:
        """Why nothing in a folder is looked at, by all that holds on the way to it and for itself."""
        return self._on_the_way(path.split("/") if path else [])[0]

    def _on_the_way(self, folders: list[str]) -> tuple[str | None, tuple[Level, ...]]:
        """Why what a folder holds is left out, or the ignore rules that hold in it."""
        if len(folders) > self.rules.max_depth:
            return "too deep", ()
        levels, prefix = self.levels("", ()), ""
        for folder in folders:
            if reason := self.why_not_folder(prefix + folder, folder, levels):
                return reason, ()
            prefix += folder + "/"
            if not self.rules.symlinks and os.path.islink(os.path.join(self.root, prefix[:-1])):
                return "symbolic link", ()
            levels = self.levels(prefix, levels)
        return None, levels

    def _is_ignored(self, path: str, levels: tuple[Level, ...], *, is_folder: bool) -> bool:
        if self._own and ignored_by(self._own, path, is_folder) is not None:
            return True
        return bool(levels) and ignored_by(levels, path, is_folder) is not None


def _by_name(name: str, suffix: str) -> str | None:
    """Why nobody wants to read a file of that name: it is no text, or will be gone soon."""
    if name[-1] == "~" or (name[-1] == "#" and name[0] == "#"):
        return "temporary"
    return _BY_SUFFIX.get(suffix) or _BY_SUFFIX.get(suffix.lower())


def _why_not_suffix(suffix: str) -> str | None:
    if suffix in BINARY:
        return "binary"
    return "archive (a source of its own, if you crawl it)" if suffix in ARCHIVES else None


def _open_plainly(path: str, flags: int) -> int:
    """Open without following a link and without waiting for a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
