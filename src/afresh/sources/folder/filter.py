"""Decide which files of a folder are accepted, by names, ignore files, links, suffixes and patterns."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from afresh.config import Config, kb_paths
from afresh.dataclass import dataclass
from afresh.sources.folder.ignore import MAX_FILE_BYTES, IgnoreFile, Level, ignored_by, parse_ignore_file
from afresh.urls.files import path_of
from afresh.urls.scope import Globs, Rules

IGNORE_FILE = ".gitignore"
MAX_CACHED_FILES = 256  # ignore files that are cached while unchanged

BINARY = frozenset(
    "7z deb dmg iso jar lz4 rar rpm whl zst "  # noqa: SIM905 - words read best as words
    "bmp gif ico jpeg jpg png psd tif tiff webp avi flac m4a mkv mov mp3 mp4 ogg wav webm "
    "eot otf ttf woff woff2 "
    "a bin class dll dylib exe lib o obj pyc pyo so wasm dat db npy npz parquet pickle pkl sqlite".split()
)
MADE = frozenset({"node_modules", "__pycache__"})  # folders that programs generate
COMMON = frozenset({"md", "html", "txt", "py"})  # accepted without further checks of the suffix
TEMPORARY = frozenset("crdownload part swo swp swx tmp".split())  # noqa: SIM905
_BY_SUFFIX = {**dict.fromkeys(BINARY, "binary"), **dict.fromkeys(TEMPORARY, "temporary")}
HIDDEN, IGNORED, UNWANTED = "hidden", "ignored", "as the rules want it"
OUTSIDE = "link out of the folder"


def reported_counts(dropped: Mapping[str, int]) -> dict[str, int]:
    """Return why files were left out and how many, without the reasons that need no report."""
    return {why: number for why, number in dropped.items() if why not in (HIDDEN, UNWANTED)}


_Seen = tuple[int, int, int, int]  # identifies a version of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRules:
    """The settings that decide which files of a folder are read."""

    gitignore: bool = True
    hidden: bool = False
    symlinks: bool = False
    ignore: tuple[str, ...] = ()
    max_files: int = 200_000
    max_bytes: int = 10_485_760
    limited_by: str = "files.max_files"  # the setting that limits max_files
    max_depth: int = 100


class FileFilter:
    """Decides about paths relative to the root of a folder, with forward slashes."""

    def __init__(self, root: str, rules: FolderRules, globs: Globs | None = None) -> None:
        self.root = root
        self.rules = rules
        self.globs = globs if globs != Globs() else None  # the include and exclude patterns of the source
        self._own: tuple[Level, ...] = (("", IgnoreFile(rules.ignore)),) if rules.ignore else ()
        self._read: dict[str, tuple[_Seen, IgnoreFile]] = {}

    @property
    def terms(self) -> str:
        """Return all that decides which files are accepted, as text."""
        return f"{self.rules!r}{self.globs!r}"

    def levels(self, prefix: str, above: tuple[Level, ...]) -> tuple[Level, ...]:
        """Return the ignore rules that apply in a folder: those above it and its own."""
        if not self.rules.gitignore:
            return above
        rules = self._rules_in(prefix)
        return above if rules is None else (*above, (prefix, rules))

    def _rules_in(self, prefix: str) -> IgnoreFile | None:
        """Return the rules of a folder's own ignore file; as in git, it may not be a link or a folder."""
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
                rules = parse_ignore_file(file.read(MAX_FILE_BYTES + 1))
        except FileNotFoundError:
            return None
        if len(self._read) >= MAX_CACHED_FILES:
            self._read.clear()
        self._read[prefix] = (seen, rules)
        return rules

    def why_not_folder(self, path: str, name: str, levels: tuple[Level, ...]) -> str | None:
        """Return why a folder is left out with everything in it, or None."""
        if name[0] == "." and (name == ".git" or not self.rules.hidden):
            return HIDDEN
        if name in MADE:
            return "made by programs"
        return IGNORED if self._is_ignored(path, levels, is_folder=True) else None

    def why_not_file(self, path: str, name: str, levels: tuple[Level, ...]) -> str | None:
        if name[0] == "." and not self.rules.hidden:
            return HIDDEN
        suffix = name[name.rfind(".") + 1 :]
        if suffix not in COMMON:
            if name[-1] == "~" or (name[-1] == "#" and name[0] == "#"):
                return "temporary"
            if reason := _BY_SUFFIX.get(suffix) or _BY_SUFFIX.get(suffix.lower()):
                return reason
        if (levels or self._own) and self._is_ignored(path, levels, is_folder=False):
            return IGNORED
        is_unwanted = self.globs is not None and self.globs.refusal(f"/{path}") is not None
        return UNWANTED if is_unwanted else None

    def why_not(self, path: str) -> str | None:
        """Return why a single file is left out, checking all folders above it."""
        *folders, name = path.split("/")
        reason, levels = self._on_the_way(folders)
        if reason is not None:
            return reason
        if not self.rules.symlinks and os.path.islink(os.path.join(self.root, path)):
            return "symbolic link"
        return self.why_not_file(path, name, levels)

    def why_not_target(self, target: str) -> str | None:
        """Return why the target of a link, a path without links, is left out: hidden, ignored or outside."""
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
        if name[0] == "." and not self.rules.hidden:
            return HIDDEN
        return IGNORED if self._is_ignored(path, levels, is_folder=False) else None

    def why_not_within(self, path: str) -> str | None:
        """Return why everything in a folder is left out, checking the folder and all above it."""
        return self._on_the_way(path.split("/") if path else [])[0]

    def _on_the_way(self, folders: list[str]) -> tuple[str | None, tuple[Level, ...]]:
        """Return why the content of a folder is left out, or the ignore rules that apply in it."""
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


def _open_plainly(path: str, flags: int) -> int:
    """Open a file without following a link and without waiting for a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def folder_filter(config: Config, rules: Rules, root: str) -> FileFilter:
    """Return the filter for a folder; files that afresh itself writes are never accepted."""
    files = config.files
    folder = FolderRules(
        gitignore=files.gitignore,
        hidden=files.hidden,
        symlinks=files.symlinks,
        ignore=(*files.ignore, *_written_below(root, config)),
        max_files=min(files.max_files, rules.max_pages),
        max_bytes=files.max_file_bytes,
        limited_by="files.max_files" if files.max_files <= rules.max_pages else "crawl.max_pages",
        max_depth=rules.max_depth,
    )
    return FileFilter(root, folder, Globs(rules.include, rules.exclude))


def repository_filter(config: Config, rules: Rules) -> tuple[FileFilter, int, str]:
    """Return the filter for a repository, the maximum number of files, and both as text."""
    folder = FolderRules(
        gitignore=False,  # committed files are wanted
        hidden=config.files.hidden,
        symlinks=True,  # the tree marks links itself: nothing is checked on disk
        ignore=config.files.ignore,
        max_bytes=config.files.max_file_bytes,
        max_depth=rules.max_depth,
    )
    file_filter = FileFilter("", folder, Globs(rules.include, rules.exclude))
    most = min(config.files.max_files, rules.max_pages)
    return file_filter, most, f"{file_filter.terms}{most}{sorted(BINARY)}"


def why_left_out(config: Config, rules: Rules, kind: str, url: str) -> str | None:
    """Return why a file is not part of a folder, or None if it is, or lies elsewhere."""
    root, path = path_of(rules.root), path_of(url)
    if kind != "folder" or not path.startswith(root.rstrip("/") + "/"):
        return None
    try:
        return folder_filter(config, rules, root).why_not(os.path.relpath(path, root))
    except OSError as error:
        return error.strerror


def _written_below(root: str, config: Config) -> list[str]:
    """Return patterns for files that afresh itself writes inside a folder."""
    from afresh.config.forms import store_file

    ways = [(config.log.file, ".*")] if config.log.file else []
    if (store := store_file(config.store.url)) is not None:
        ways.append((str(store), "-*"))
    if config.kb.sources_dir and str((kb := kb_paths(config, Path.cwd())).sources_dir) == root:
        ways += [(str(path), more) for path, more in kb.no_sources]
    patterns = []
    for name, more in ways:
        path = os.path.realpath(name)
        if path.startswith(root.rstrip("/") + "/"):
            plain = re.sub(r"([\\*?\[\]!# ])", r"\\\1", path[len(root.rstrip("/")) :])
            patterns += [plain, plain + more]
    return patterns
