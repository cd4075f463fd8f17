"""Which sources a label means: exactly that one, the best version there is, or all of a library.

A library is what shares the first part of a name: `react/site` and `react/repo` are the library `react`.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from afresh.errors import Unknown, UsageError
from afresh.model.labels import parse_label
from afresh.model.records import Source
from afresh.model.reports import FoundVersion
from afresh.model.versions import choose, newest_first
from afresh.store.store import Store

MANY_VERSIONS = 2


async def exact_source(store: Store, label: str, *, only: bool = False) -> Source:
    """The source with this name and version; without a version the newest, or the `only` one there is."""
    name, version = parse_label(label)
    source = await store.sources.find(name, version)
    if source is None and version is None:
        source = _newest(await store.sources.all(name), only=only)
    if source is None:
        raise await _unknown(store, label, name, version)
    return source


async def exact_sources(store: Store, label: str) -> list[Source]:
    """The source with this name and version, and all of the library of that name; without one the newest."""
    name, version = parse_label(label)
    library = await _library(store, name)
    if version is None and not any(source.version is None for source in library):
        newest = _newest(library)
        version = newest.version if newest is not None else None
    found = [source for source in library if source.version == version]
    if not found:
        raise await _unknown(store, label, name, version)
    return found


async def version_note(store: Store, label: str) -> str | None:
    """Say which version a name without one means; None where it has just one, or names it."""
    name, _, version = label.partition("@")
    library = [] if version else await _library(store, name)
    versions = {source.version for source in library}
    newest = _newest(library)
    if None in versions or len(versions) < MANY_VERSIONS or newest is None:
        return None
    return f"{name} has {len(versions)} versions: using {name}@{newest.version}, the newest"


def _newest(sources: Sequence[Source], *, only: bool = False) -> Source | None:
    """The newest of the sources of one name; UsageError if it has to be the only one and is not."""
    if only and len(sources) >= MANY_VERSIONS:
        which = ", ".join(labels_of(sources))
        raise UsageError(f"{sources[0].name} has {len(sources)} versions: name one of {which}")
    choice = choose(None, [source.version for source in sources])
    return next((source for source in sources if choice and source.version == choice.version), None)


async def best_sources(store: Store, label: str) -> tuple[list[Source], FoundVersion]:
    """The sources that are meant by `react`, `react@18` or `react@^18.2`, and how the version was chosen."""
    name, wanted = parse_label(label)
    sources = await _library(store, name)
    choice = choose(wanted, [source.version for source in sources])
    if choice is None:
        raise await _unknown(store, label, name, wanted)
    chosen = [source for source in sources if source.version == choice.version]
    versions = {source.version for source in sources if source.version is not None}
    found = FoundVersion(
        source=name,
        wanted=wanted,
        version=choice.version,
        match=choice.match,
        url=chosen[0].url,
        versions=tuple(newest_first(versions)),
        unversioned=any(source.version is None for source in sources),
    )
    return chosen, found


async def _library(store: Store, name: str) -> list[Source]:
    """The sources of one name, and those whose name begins with it and a slash."""
    sources = await store.sources.all()
    return [source for source in sources if source.name == name or source.name.startswith(f"{name}/")]


def stand_in_note(found: FoundVersion) -> str | None:
    """What a reader should know of the version an answer is from; None if it is what was asked for."""
    if not found.is_stand_in:
        return None
    asked = f"{found.source}@{found.wanted}"
    if found.version is None:
        return f"there is no {asked}: the answer is from {found.source}, which has no version"
    return f"there is no {asked}: the answer is from {found.source}@{found.version}, the nearest lower"


async def _unknown(store: Store, label: str, name: str, version: str | None) -> Unknown:
    """What to type instead of a label that names nothing."""
    others = labels_of(await store.sources.all(name))
    if others:
        return Unknown(f"there is no {label}, but {', '.join(others)}")
    library = await _library(store, name)
    if library:
        return Unknown(_of_library(label, name, version, library))
    names = list(dict.fromkeys(source.name for source in await store.sources.all()))
    near = get_close_matches(name, names, n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else "; `afresh sources` lists them"
    return Unknown(f"there is no source {label}{meant}")


def _of_library(label: str, name: str, version: str | None, library: Sequence[Source]) -> str:
    """What to type instead of the name of a library: one of its versions, or one of its sources."""
    members = [source.label for source in library if source.version == version]
    if members:
        return f"{label} is a library: name one of {', '.join(members)}"
    versions = newest_first({source.version for source in library if source.version is not None})
    return f"there is no {label}, but {', '.join(f'{name}@{each}' for each in versions) or name}"


def labels_of(sources: Sequence[Source]) -> list[str]:
    """The labels of sources with one name, the one without a version first, then newest first."""
    by_version = {source.version: source.label for source in sources}
    order = newest_first(version for version in by_version if version is not None)
    plain = [by_version[None]] if None in by_version else []
    return plain + [by_version[version] for version in order]
