"""Where the files of the knowledge base are: absolute, links resolved, and no two of them the same."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from afresh.config.tree import Config
from afresh.errors import ConfigError

LOCK = ".lock"
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database


@dataclass(frozen=True, slots=True, kw_only=True)
class KbPaths:
    """The places of the knowledge base; None for a part that is not set."""

    sources_dir: Path | None
    links_file: Path | None
    index: Path
    cache: Path
    settings: Path | None = None

    @property
    def lock(self) -> Path:
        """The file whose lock the one writer of index and cache holds."""
        return self.cache.with_name(self.cache.name + LOCK)

    @property
    def no_sources(self) -> list[tuple[Path, str]]:
        """What is no source below `sources_dir`, each with what its name may go on with."""
        written = [(self.index, ".*"), (self.cache, ".*")]  # the lock, and what is half-written
        read = [self.links_file, self.settings]  # settings may hold keys, which no index is to tell
        return [*written, *((path, "") for path in read if path)]


def kb_paths(config: Config, cwd: Path) -> KbPaths:
    """The places that the settings mean; a ConfigError where writing one would destroy another."""
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


def _place(config: Config, cwd: Path, key: str, typed: str) -> Path:
    by_hand = config.origins.get(f"kb.{key}", "").startswith(("environment ", "flag "))
    start = config.file.parent if config.file and not by_hand else cwd
    return _resolved(start, typed, f"kb.{key}")


def _resolved(start: Path, typed: str, key: str) -> Path:
    try:
        return Path(os.path.realpath(start / Path(typed).expanduser()))
    except RuntimeError:
        raise ConfigError(f"{key}: there is no home folder that {typed} could mean: write it out") from None


def _others(config: Config, cwd: Path) -> Iterator[tuple[Path, str]]:
    """Files of afresh that the knowledge base must not write over."""
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
            raise ConfigError(f"{taken[path]} and {name} are the same file ({path}): name two")
        taken[path] = name
