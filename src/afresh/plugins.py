"""Load plugins: source kinds, extractors, embedders and sinks that packages register as entry points.

The built-in ones are entry points of the package afresh in the same groups. BUILT_IN lists them again, so that
commands find them without searching all installed packages.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from afresh.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

SOURCES, EXTRACTORS = "afresh.sources", "afresh.extractors"
EMBEDDERS, SINKS = "afresh.embedders", "afresh.sinks"
BUILT_IN: Mapping[str, Mapping[str, str]] = {
    SOURCES: {
        "archive": "afresh.sources.archive.fetcher:KIND",
        "file": "afresh.sources.folder.fetcher:KIND",
        "folder": "afresh.sources.folder.fetcher:KIND",
        "git": "afresh.sources.git.fetcher:KIND",
        "github": "afresh.sources.github.fetcher:KIND",
        "links": "afresh.sources.linklist.lister:KIND",
        "web": "afresh.sources.web.lister:KIND",
    },
    EXTRACTORS: {"afresh": "afresh.extract.registry:FORMATS"},
    EMBEDDERS: {
        "fastembed": "afresh.models.choose:library_embedder",
        "gemini": "afresh.models.choose:remote_embedder",
        "local": "afresh.models.choose:local_embedder",
        "openai": "afresh.models.choose:remote_embedder",
        "sentence-transformers": "afresh.models.choose:library_embedder",
    },
    SINKS: {
        "folder": "afresh.sync.sinks.folder:KIND",
        "gemini": "afresh.sync.sinks.gemini:KIND",
        "openai": "afresh.sync.sinks.openai:KIND",
    },
}


class PluginError(ConfigError):
    """A plugin cannot be used; the message names its package."""


def load_plugin(group: str, name: str, kind: type[T]) -> T | None:
    """Return the object that an entry point refers to, a built-in one first; None if no package registers the name."""
    if place := BUILT_IN[group].get(name):
        module, _, attribute = place.partition(":")
        found: T = getattr(import_module(module), attribute)
        return found
    entry = installed_plugins(group).get(name)
    if entry is None:
        return None
    where = f"{name} ({group}) of the package {entry.dist.name if entry.dist else entry.value}"
    try:
        loaded: Any = entry.load()
    except Exception as error:
        raise PluginError(f"the plug-in {where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(loaded, kind):
        raise PluginError(f"the plug-in {where} is not a {kind.__name__}: update or remove the package")
    return loaded


@cache
def installed_plugins(group: str) -> Mapping[str, "EntryPoint"]:
    """Return the entry points of other packages by name; if packages share a name, the first on `sys.path` counts."""
    entries = (entry for package in _packages() for entry in package.entry_points if entry.group == group)
    return {entry.name: entry for entry in reversed(list(entries)) if entry.name not in BUILT_IN[group]}


@cache
def _packages() -> tuple[Any, ...]:
    """Return the packages with entry points for afresh, fast: importlib.metadata would take longer than a search."""
    folders = []
    for place in dict.fromkeys(sys.path):
        for file in sorted(Path(place).glob("*.dist-info/entry_points.txt")):
            with suppress(OSError):
                if b"[afresh." in file.read_bytes() and not file.parent.name.startswith("afresh-"):
                    folders.append(file.parent)
    if not folders:
        return ()
    from importlib.metadata import Distribution

    return tuple(map(Distribution.at, folders))
