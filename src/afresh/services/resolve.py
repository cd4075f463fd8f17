"""Find sources and pages by label or id, or raise NotFound."""

from collections.abc import Iterable, Sequence

from afresh.crawl.heartbeat import LiveWorkers
from afresh.errors import NotFound, RunBusy, UsageError
from afresh.model.labels import parse_label
from afresh.model.records import PageId, Run, RunState, Source, SourceId
from afresh.model.reports import FoundVersion, PageView
from afresh.model.versions import choose, newest_first
from afresh.store.store import Store

MANY_VERSIONS = 2


async def exact_source(store: Store, label: str, *, only: bool = False) -> Source:
    """Return the source with this label, else the newest of this name; with `only`, raise UsageError for several."""
    name, version = parse_label(label)
    if (source := await store.sources.find(name, version)) is None and version is None:
        versions = await store.sources.all(name)
        if only and len(versions) >= MANY_VERSIONS:
            which = ", ".join(labels_of(versions))
            raise UsageError(f"{name} has {len(versions)} versions: name one of {which}")
        source = _newest(versions)
    if source is None:
        raise await _unknown(store, label, name, version)
    return source


async def exact_sources(store: Store, label: str) -> list[Source]:
    """Return the source that a label names or, for a library, all its sources with the version in the label.

    If the label has no version, return those without a version or, if all have one, those with the newest version.
    """
    name, version = parse_label(label)
    library = await _library(store, name)
    if version is None and not any(source.version is None for source in library):
        newest = _newest(library)
        version = newest.version if newest is not None else None
    if not (found := [source for source in library if source.version == version]):
        raise await _unknown(store, label, name, version)
    return found


async def labelled_sources(store: Store, labels: Iterable[str]) -> list[Source]:
    return [source for label in dict.fromkeys(labels) for source in await exact_sources(store, label)]


async def version_note(store: Store, label: str) -> str | None:
    """Return a note on the version that is used for a name with several versions; else None."""
    name, _, version = label.partition("@")
    library = [] if version else await _library(store, name)
    versions = {source.version for source in library}
    newest = _newest(library)
    if None in versions or len(versions) < MANY_VERSIONS or newest is None:
        return None
    return f"{name} has {len(versions)} versions: using {name}@{newest.version}, the newest"


def _newest(sources: Sequence[Source]) -> Source | None:
    choice = choose(None, [source.version for source in sources])
    return next((source for source in sources if choice and source.version == choice.version), None)


async def best_sources(store: Store, label: str) -> tuple[list[Source], FoundVersion]:
    """Return the sources for a label such as `react`, `react@18` or `react@^18.2`, and how the version was chosen."""
    name, wanted = parse_label(label)
    sources = await _library(store, name)
    if (choice := choose(wanted, [source.version for source in sources])) is None:
        raise await _unknown(store, label, name, wanted)
    chosen = [source for source in sources if source.version == choice.version]
    found = FoundVersion(
        source=name,
        wanted=wanted,
        version=choice.version,
        match=choice.match,
        url=chosen[0].url,
        versions=tuple(newest_first({source.version for source in sources if source.version is not None})),
        unversioned=any(source.version is None for source in sources),
    )
    return chosen, found


async def _library(store: Store, name: str) -> list[Source]:
    """Return the sources with this name, or with this name and a slash as prefix."""
    sources = await store.sources.all()
    return [source for source in sources if source.name == name or source.name.startswith(f"{name}/")]


def stand_in_note(found: FoundVersion) -> str | None:
    if not found.is_stand_in:
        return None
    asked = f"{found.source}@{found.wanted}"
    if found.version is None:
        return f"there is no {asked}: using {found.source}, which has no version"
    return f"there is no {asked}: using {found.source}@{found.version} (closest lower version)"


async def _unknown(store: Store, label: str, name: str, version: str | None) -> NotFound:
    if others := labels_of(await store.sources.all(name)):
        return NotFound(f"there is no source {label}; did you mean {' or '.join(others)}?")
    if library := await _library(store, name):
        if members := [source.label for source in library if source.version == version]:
            return NotFound(f"{label} is a library; name one of its sources: {', '.join(members)}")
        versions = newest_first({source.version for source in library if source.version is not None})
        there = " or ".join(f"{name}@{each}" for each in versions) or name
        return NotFound(f"there is no source {label}; did you mean {there}?")
    from difflib import get_close_matches

    near = get_close_matches(name, list(dict.fromkeys(source.name for source in await store.sources.all())), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `afresh sources` lists them"
    return NotFound(f"there is no source {label}{hint}")


def labels_of(sources: Sequence[Source]) -> list[str]:
    """Return the labels of sources with the same name: the source without a version first, then the newest first."""
    by_version = {source.version: source.label for source in sources}
    order = newest_first(version for version in by_version if version is not None)
    plain = [by_version[None]] if None in by_version else []
    return plain + [by_version[version] for version in order]


async def source_of(store: Store, number: int) -> Source:
    if (source := await store.sources.get(SourceId(number))) is None:
        raise NotFound(f"there is no source {number}")
    return source


async def page_of(store: Store, number: int) -> PageView:
    if (page := await store.pages.get(PageId(number))) is None:
        raise NotFound(f"there is no page {number}")
    return page


def is_under_way(run: Run, alive: LiveWorkers) -> bool:
    """Return whether a run is active or waits for a worker."""
    return run.state is RunState.QUEUED or (run.state is RunState.RUNNING and alive.is_working_on(run))


async def check_idle(store: Store, source: Source, alive: LiveWorkers) -> None:
    """Raise RunBusy if a run of the source is active or waits for a worker."""
    for run in await store.runs.live():
        if run.source_id == source.id and is_under_way(run, alive):
            word = "is queued" if run.state is RunState.QUEUED else "is in progress"
            raise RunBusy(f"run {run.id} of {source.label} {word}: wait for it or cancel it", run.id)
