"""The tools that read: search, libraries, versions, changes, and one page as it is now."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from afresh.errors import UsageError
from afresh.model.records import ChangeKind
from afresh.model.reports import Answer, ChangeView, Hit, SourceView
from afresh.present.search_parts import LONGEST_CURSOR, Parts
from afresh.server.mcp.answers import (
    BOTH,
    ROOM,
    Change,
    Changes,
    Libraries,
    LibraryEntry,
    LibraryVersion,
    Passage,
    Passages,
    Version,
    answered,
    freshness,
    noted,
    when,
)
from afresh.server.mcp.cursors import make_cursor, read_cursor
from afresh.server.mcp.framing import beginning, framed, harmless, how_many, one_line, weight
from afresh.server.mcp.request_context import Reach
from afresh.server.mcp.trouble import told
from afresh.text.durations import read_duration
from afresh.text.plain import dedent_lists
from afresh.text.wording import count

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
PASSAGE = 6_000  # bytes of one passage
DIFF = 4_000
_MARKS = str.maketrans("", "", "\x02\x03")  # around matched words

Name = Annotated[str, Field(max_length=100, description="Name of a library, as list_libraries tells it")]
Wanted = Annotated[
    str | None,
    Field(max_length=100, description="A version or a range (18, ^18, 18.x, latest); else the newest"),
]
Cursor = Annotated[
    str | None, Field(max_length=200, description="nextCursor of the answer before, with the same arguments")
]


def label_of(library: str, version: str | None) -> str:
    """The label that a library and a version make; a version may stand in the name already."""
    return f"{library}@{version}" if version else library


def add_find_tools(server: MCPServer[Any], kb: Reach) -> None:
    """Make the tools known that only read the store."""
    _add_search(server, kb)
    _add_lists(server, kb)
    _add_changes(server, kb)


def _add_search(server: MCPServer[Any], kb: Reach) -> None:

    @server.tool(annotations=READS)
    async def search_docs(
        query: Annotated[str, Field(min_length=1, max_length=1_000, description="A question or words")],
        library: Annotated[
            str | None, Field(max_length=100, description="Only in this library; else in all")
        ] = None,
        version: Wanted = None,
        limit: Annotated[int, Field(ge=1, le=50, description="Passages at most")] = 5,
        cursor: Annotated[
            str | None,
            Field(
                max_length=LONGEST_CURSOR,
                description="nextCursor of the answer before, with the same arguments",
            ),
        ] = None,
    ) -> Annotated[CallToolResult, Passages]:
        """Search the indexed documentation by words and meaning; passages with source and freshness."""
        with told():
            parts = Parts(cursor, query, library, version)
            if version and not library:
                raise UsageError("version needs a library: name both, or leave both out")
            within = [label_of(library, version)] if library else []
            found = await kb().search.search(query, within=within, limit=parts.wanted(limit), context=True)
        return _passages(found, parts, limit)


def _add_lists(server: MCPServer[Any], kb: Reach) -> None:
    @server.tool(annotations=READS)
    async def list_libraries(cursor: Cursor = None) -> Annotated[CallToolResult, Libraries]:
        """List the indexed libraries with their versions, sizes and freshness."""
        with told():
            after = read_cursor(cursor, "libraries")
            views = [view for view in await kb().sources.views() if view.id > after]
        rest = [(view, _version(view)) for view in sorted(views, key=lambda view: view.id)]
        number = how_many((each.model_dump_json() + _version_line(each) for _, each in rest), BOTH)
        more = make_cursor(rest[number - 1][0].id, "libraries") if len(rest) > number else None
        shown = [(view.name, each) for view, each in rest[:number]]
        shown.sort(key=lambda named: (named[0], named[1].version or ""))
        none = "There are no more." if after else "Nothing is indexed yet; scrape_docs adds a library."
        lines = [_version_line(each) for _, each in shown] or [none]
        return answered(Libraries(libraries=_entries(shown), nextCursor=more), lines)

    @server.tool(annotations=READS)
    async def find_version(
        library: Name,
        targetVersion: Wanted = None,
    ) -> Annotated[CallToolResult, Version]:
        """Tell which indexed version of a library fits best, and which there are."""
        with told():
            found = await kb().sources.find_version(label_of(library, targetVersion))
        newest = found.versions[: how_many(found.versions, ROOM // 2)]
        answer = Version(
            library=found.source,
            wanted=found.wanted,
            version=found.version,
            match=str(found.match),
            url=one_line(found.url, 2_000),
            versions=list(newest),
            unversioned=found.unversioned,
        )
        others = len(found.versions) - len(newest)
        there = (", ".join(newest) or "none") + (f" and {others} older" if others else "")
        best = found.version or "the one without a version"
        return answered(answer, [f"{library}: best is {best} ({found.match}); versions: {there}"])


def _add_changes(server: MCPServer[Any], kb: Reach) -> None:
    @server.tool(annotations=READS)
    async def what_changed(
        library: Annotated[str | None, Field(max_length=100, description="Only in this library")] = None,
        version: Annotated[str | None, Field(max_length=100, description="Its exact version")] = None,
        since: Annotated[str | None, Field(max_length=20, description="Only lately, as 7d or 12h")] = None,
        kind: Annotated[
            Literal["new", "changed", "deleted", "moved"] | None, Field(description="Only these")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=100, description="Changes at most")] = 20,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, Changes]:
        """Tell which pages are new, changed, deleted or moved, newest first, with diffs."""
        with told():
            question = ("changes", library, version, since, kind)
            before = read_cursor(cursor, *question)
            after = datetime.now(UTC) - read_duration(since) if since else None
            label = label_of(library, version) if library else None
            only = ChangeKind(kind) if kind else None
            seen = await kb().pages.changes(label, kind=only, below=before or None, limit=limit + 1)
            note = await kb().sources.version_note(label) if label else None
        found = _changes([each for each in seen if after is None or each.at >= after], limit, question)
        return noted(found, note)


def _passages(found: Answer, parts: Parts, limit: int) -> CallToolResult:
    results: list[Passage] = []
    room, new = ROOM, parts.new(found.hits)
    for hit in new[:limit]:
        passage = passage_of(hit)
        room -= weight(passage.text)
        if results and room < 0:
            break
        results.append(passage)
    more = parts.cursor(new[: len(results)], new)
    notes = [one_line(note) for note in found.notes]
    lines = [*notes, *(_passage_text(each) for each in results)]
    if not results:
        lines.append("Nothing more was found." if parts.begun else "Nothing was found; try other words.")
    return answered(Passages(results=results, notes=notes, nextCursor=more), lines)


def passage_of(hit: Hit) -> Passage:
    """A hit as an agent is given it."""
    text = beginning(harmless(dedent_lists((hit.context or hit.text).translate(_MARKS))), PASSAGE)
    title = one_line(hit.title)
    return Passage(
        url=one_line(hit.url, 2_000),
        title=title,
        library=hit.source,
        version=hit.version,
        path=[one_line(each) for each in hit.path],
        language=hit.language,
        score=round(hit.score, 4),
        checked_at=hit.checked_at,
        changed_at=hit.changed_at,
        text=framed(
            text if title in text[: len(title) + 4] else f"{title}\n\n{text}",
            hit.url,
            freshness(hit.checked_at, hit.changed_at),
        ),
    )


def _passage_text(passage: Passage) -> str:
    return f"\n{label_of(passage.library, passage.version)}\n{passage.text}"


def _entries(named: Sequence[tuple[str, LibraryVersion]]) -> list[LibraryEntry]:
    """Sources by library, which is what shares the first part of a name."""
    entries: dict[str, LibraryEntry] = {}
    for name, version in named:
        library = name.partition("/")[0]
        entries.setdefault(library, LibraryEntry(library=library, versions=[])).versions.append(version)
    return list(entries.values())


def _version(view: SourceView) -> LibraryVersion:
    return LibraryVersion(
        source=label_of(view.name, view.version),
        version=view.version,
        kind=view.kind,
        url=one_line(view.url, 2_000),
        pages=view.pages,
        read_at=view.crawl_time,
        checked_at=view.oldest_check,
        status=view.last_state,
    )


def _version_line(version: LibraryVersion) -> str:
    checked, state = when(version.checked_at), version.status or "not read yet"
    return f"{version.source}: {count(version.pages, 'page')} of {version.url}, checked {checked}, {state}"


def _changes(fitting: Sequence[ChangeView], limit: int, question: Sequence[object]) -> CallToolResult:
    shown: list[Change] = []
    room = ROOM
    for each in fitting[:limit]:
        change = _change(each)
        room -= weight(change.diff or "") + 2 * weight(change.url)
        if shown and room < 0:
            break
        shown.append(change)
    more = make_cursor(shown[-1].id, *question) if shown and len(shown) < len(fitting) else None
    lines = [_change_text(each) for each in shown] or ["Nothing changed."]
    return answered(Changes(changes=shown, nextCursor=more), lines)


def _change(view: ChangeView) -> Change:
    diff = (
        framed(beginning(harmless(view.diff), DIFF), view.url, f"changed {when(view.at)}")
        if view.diff
        else None
    )
    return Change(
        id=view.id,
        library=view.source,
        version=view.version,
        url=one_line(view.url, 2_000),
        kind=str(view.kind),
        at=view.at,
        jobId=view.run,
        moved_to=one_line(view.moved_to, 2_000) if view.moved_to else None,
        diff=diff,
    )


def _change_text(change: Change) -> str:
    moved = f" to {change.moved_to}" if change.moved_to else ""
    head = (
        f"\n{when(change.at)} {change.kind}{moved}: {change.url} ({label_of(change.library, change.version)})"
    )
    return f"{head}\n{change.diff}" if change.diff else head
