"""Define the settings of the knowledge base (section `kb`), and check the paths of its files."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.config import forms
from afresh.config.sources import DAY, YEAR
from afresh.config.spec import flag, number, text, whole
from afresh.dataclass import dataclass
from afresh.errors import ConfigError

if TYPE_CHECKING:
    from afresh.config.tree import Config

MAX_BUDGET = 10_000_000  # maximum value of the limits of links
LOCK = ".lock"
_BESIDE = ("-wal", "-shm", "-journal")  # suffixes of files that SQLite keeps next to a database


@dataclass(frozen=True, slots=True, kw_only=True)
class KbSettings:
    """The files and links of the knowledge base, when links are checked, and which changes are followed.

    Relative paths in the settings file start at its folder, and so do default paths. Relative paths in environment
    variables start at the working directory, and so do default paths if there is no settings file.
    """

    sources_dir: str | None = text(None, "the folder whose text files are summarised; null: none", form=forms.file)
    links_file_path: str | None = text(None, "the file that lists links, one per line; null: none", form=forms.file)
    index_path: str = text("index.txt", "where the index is written", form=forms.file)
    index_cache_path: str = text("index-cache.json", "where the cache is written, with its lock file", form=forms.file)
    url_refresh_min_interval_seconds: float = number(
        float(DAY), "time after a response until a link is due again", 0, YEAR
    )
    url_refresh_max_age_seconds: float = number(
        7.0 * DAY, "a link whose last response is older than this is due, even after failures", 0, YEAR
    )
    url_refresh_budget_per_init: int = whole(50, "maximum links that one `init-kb` checks", 0, MAX_BUDGET)
    url_refresh_fail_backoff_base_seconds: float = number(
        300.0, "wait after the first failure of a link; it doubles with each further one", 0, YEAR
    )
    url_refresh_fail_backoff_max_seconds: float = number(float(DAY), "maximum wait after failures of a link", 0, YEAR)
    runtime_refresh_enabled: bool = flag(
        True, "keep index and cache up to date while `afresh watch --kb` or `afresh serve` runs"
    )
    runtime_refresh_tick_seconds: float = number(
        60.0, "time after which `watch --kb` and `serve` look for due links again", 0.1, DAY
    )
    url_refresh_budget_per_tick: int = whole(
        5, "maximum due links that `watch --kb` and `serve` check each time", 0, MAX_BUDGET
    )
    file_watch_enabled: bool = flag(True, "follow changes of files below `kb.sources_dir`")
    file_watch_debounce_seconds: float = number(
        1.0, "time that a changed file must stay the same before it is read", 0, 3600
    )
    links_watch_enabled: bool = flag(True, "follow changes of `kb.links_file_path`")
    links_watch_debounce_seconds: float = number(
        1.0, "time that a changed list must stay the same before it is read", 0, 3600
    )

    @property
    def in_use(self) -> bool:
        return bool(self.sources_dir or self.links_file_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class KbPaths:
    """The absolute paths of the files and folders of the knowledge base; None for paths that are not set."""

    sources_dir: Path | None
    links_file: Path | None
    index: Path
    cache: Path
    settings: Path | None = None

    @property
    def lock(self) -> Path:
        return self.cache.with_name(self.cache.name + LOCK)

    @property
    def not_indexed(self) -> list[tuple[Path, str]]:
        """Return files that must not be indexed, each with a glob for the suffixes of its lock and temporary files."""
        written = [(self.index, ".*"), (self.cache, ".*")]  # with their lock and temporary files
        read = [self.links_file, self.settings]  # the settings may contain keys, which must not be indexed
        return [*written, *((path, "") for path in read if path)]


def kb_paths(config: "Config", cwd: Path) -> KbPaths:
    """Return the configured paths; raise ConfigError if two of them are the same file."""
    kb = config.kb
    paths = KbPaths(
        sources_dir=_place(config, cwd, "sources_dir", kb.sources_dir) if kb.sources_dir else None,
        links_file=_place(config, cwd, "links_file_path", kb.links_file_path) if kb.links_file_path else None,
        index=_place(config, cwd, "index_path", kb.index_path),
        cache=_place(config, cwd, "index_cache_path", kb.index_cache_path),
        settings=config.file.resolve() if config.file else None,
    )
    _refuse_same(paths, dict(_others(config, cwd)))
    return paths


def _place(config: "Config", cwd: Path, key: str, typed: str) -> Path:
    by_hand = config.origins.get(f"kb.{key}", "").startswith(("environment ", "flag "))
    start = config.file.parent if config.file and not by_hand else cwd
    return _resolved(start, typed, f"kb.{key}")


def _resolved(start: Path, typed: str, key: str) -> Path:
    try:
        return Path(os.path.realpath(start / Path(typed).expanduser()))
    except RuntimeError:
        raise ConfigError(f"{key}: {typed} needs a home folder, but there is none: write an absolute path") from None


def _others(config: "Config", cwd: Path) -> Iterator[tuple[Path, str]]:
    """Yield other files of afresh that the knowledge base must not overwrite, with a description of each."""
    file = config.store.url.removeprefix("sqlite:///")
    named = {"store.url": file if file != config.store.url else "", "log.file": config.log.file}
    if config.file:
        yield config.file.resolve(), "the settings file"
    for key, typed in named.items():
        if typed:
            yield (place := _resolved(cwd, typed, key)), key
            if key == "store.url":
                yield from ((place.with_name(place.name + end), f"a file of {key}") for end in _BESIDE)


def _refuse_same(paths: KbPaths, taken: dict[Path, str]) -> None:
    ours = [
        ("kb.sources_dir", paths.sources_dir),
        ("kb.links_file_path", paths.links_file),
        ("kb.index_path", paths.index),
        ("kb.index_cache_path", paths.cache),
        (f"the lock of kb.index_cache_path ({LOCK})", paths.lock),
    ]
    for name, path in ours:
        if path is None:
            continue
        if path in taken:
            raise ConfigError(f"{taken[path]} and {name} are the same file ({path}): use two different files")
        taken[path] = name
