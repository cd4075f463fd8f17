"""MCP tools that read: search, libraries, versions, changes, and a single web page."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from afresh.access.permissions import TokenScope
from afresh.errors import UsageError
from afresh.model.labels import label_of
from afresh.model.overview import FetchedPage
from afresh.model.records import ChangeKind
from afresh.model.reports import ChangeView, SearchAnswer, SearchHit, SourceView
from afresh.present.search_parts import LONGEST_CURSOR, AnswerParts
from afresh.server.mcp import answers
from afresh.text.plain import dedent_lists
from afresh.text.quantities import count, read_duration

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


def add_find_tools(server: MCPServer[Any], kb: answers.Reach) -> None:
    _add_search(server, kb)
    _add_lists(server, kb)
    _add_changes(server, kb)


def _add_search(server: MCPServer[Any], kb: answers.Reach) -> None:
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
    ) -> Annotated[CallToolResult, answers.Passages]:
        """Search the indexed documentation by words and meaning; passages with source and freshness."""
        with answers.told():
            parts = AnswerParts(cursor, query, library, version)
            if version and not library:
                raise UsageError("version needs a library: name both, or leave both out")
            within = [label_of(library, version)] if library else []
            found = await kb().search.search(query, within=within, limit=parts.wanted(limit), context=True)
        return _passages(found, parts, limit)


def _add_lists(server: MCPServer[Any], kb: answers.Reach) -> None:
    @server.tool(annotations=READS)
    async def list_libraries(cursor: Cursor = None) -> Annotated[CallToolResult, answers.Libraries]:
        """List the indexed libraries with their versions, sizes and freshness."""
        with answers.told():
            after = answers.read_cursor(cursor, "libraries")
            views = [view for view in await kb().sources.views() if view.id > after]
        rest = [(view, _version(view)) for view in sorted(views, key=lambda view: view.id)]
        shown = answers.fitting(
            rest, lambda pair: pair[1].model_dump_json() + _version_line(pair[1]), answers.BOTH
        )
        more = answers.make_cursor(shown[-1][0].id, "libraries") if len(rest) > len(shown) else None
        shown.sort(key=lambda pair: (pair[0].name, pair[1].version or ""))
        none = "There are no more." if after else "Nothing is indexed yet; scrape_docs adds a library."
        lines = [_version_line(each) for _, each in shown] or [none]
        entries: dict[str, answers.LibraryEntry] = {}
        for view, version in shown:  # sources with the same first part of their name form a library
            library = view.name.partition("/")[0]
            entry = entries.setdefault(library, answers.LibraryEntry(library=library, versions=[]))
            entry.versions.append(version)
        found = answers.Libraries(libraries=list(entries.values()), nextCursor=more)
        return answers.answered(found, lines)

    @server.tool(annotations=READS)
    async def find_version(
        library: Name, targetVersion: Wanted = None
    ) -> Annotated[CallToolResult, answers.Version]:
        """Tell which indexed version of a library fits best, and which there are."""
        with answers.told():
            found = await kb().sources.find_version(label_of(library, targetVersion))
        newest = answers.fitting(found.versions, str, answers.ROOM // 2)
        answer = answers.Version(
            library=found.source,
            wanted=found.wanted,
            version=found.version,
            match=str(found.match),
            url=answers.address(found.url),
            versions=newest,
            unversioned=found.unversioned,
        )
        others = len(found.versions) - len(newest)
        there = (", ".join(newest) or "none") + (f" and {others} older" if others else "")
        best = found.version or "the one without a version"
        return answers.answered(answer, [f"{library}: best is {best} ({found.match}); versions: {there}"])


def _add_changes(server: MCPServer[Any], kb: answers.Reach) -> None:
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
    ) -> Annotated[CallToolResult, answers.Changes]:
        """Tell which pages are new, changed, deleted or moved, newest first, with diffs."""
        with answers.told():
            question = ("changes", library, version, since, kind)
            before = answers.read_cursor(cursor, *question)
            after = datetime.now(UTC) - read_duration(since) if since else None
            label = label_of(library, version) if library else None
            only = ChangeKind(kind) if kind else None
            seen = await kb().pages.changes(label, kind=only, below=before or None, limit=limit + 1)
            note = await kb().sources.version_note(label) if label else None
        found = _changes([each for each in seen if after is None or each.at >= after], limit, question)
        return answers.noted(found, note)


def _passages(found: SearchAnswer, parts: AnswerParts, limit: int) -> CallToolResult:
    new = parts.new(found.hits)
    results = answers.fitting(map(passage_of, new[:limit]), lambda each: each.text, answers.ROOM)
    more = parts.cursor(new[: len(results)], new)
    notes = [answers.one_line(note) for note in found.notes]
    lines = [*notes, *(f"\n{label_of(each.library, each.version)}\n{each.text}" for each in results)]
    if not results:
        lines.append("Nothing more was found." if parts.begun else "Nothing was found; try other words.")
    return answers.answered(answers.Passages(results=results, notes=notes, nextCursor=more), lines)


def passage_of(hit: SearchHit) -> answers.Passage:
    text = answers.beginning(
        answers.harmless(dedent_lists((hit.context or hit.text).translate(_MARKS))), PASSAGE
    )
    title = answers.one_line(hit.title)
    return answers.Passage(
        url=answers.address(hit.url),
        title=title,
        library=hit.source,
        version=hit.version,
        path=[answers.one_line(each) for each in hit.path],
        language=hit.language,
        score=round(hit.score, 4),
        checked_at=hit.checked_at,
        changed_at=hit.changed_at,
        text=answers.framed(
            text if title in text[: len(title) + 4] else f"{title}\n\n{text}",
            hit.url,
            answers.freshness(hit.checked_at, hit.changed_at),
        ),
    )


def _version(view: SourceView) -> answers.LibraryVersion:
    return answers.LibraryVersion(
        source=label_of(view.name, view.version),
        version=view.version,
        kind=view.kind,
        url=answers.address(view.url),
        pages=view.pages,
        read_at=view.crawl_time,
        checked_at=view.oldest_check,
        status=view.last_state,
    )


def _version_line(version: answers.LibraryVersion) -> str:
    checked, state = answers.when(version.checked_at), version.status or "not read yet"
    return f"{version.source}: {count(version.pages, 'page')} of {version.url}, checked {checked}, {state}"


def _changes(fitting: Sequence[ChangeView], limit: int, question: Sequence[object]) -> CallToolResult:
    shown: list[answers.Change] = []
    room = answers.ROOM
    for each in map(_change, fitting[:limit]):
        room -= answers.weight(each.diff or "") + 2 * answers.weight(each.url)
        if shown and room < 0:
            break
        shown.append(each)
    more = answers.make_cursor(shown[-1].id, *question) if shown and len(shown) < len(fitting) else None
    lines = [_change_text(each) for each in shown] or ["Nothing changed."]
    return answers.answered(answers.Changes(changes=shown, nextCursor=more), lines)


def _change(view: ChangeView) -> answers.Change:
    diff = answers.beginning(answers.harmless(view.diff), DIFF) if view.diff else None
    return answers.Change(
        id=view.id,
        library=view.source,
        version=view.version,
        url=answers.address(view.url),
        kind=str(view.kind),
        at=view.at,
        jobId=view.run,
        moved_to=answers.address(view.moved_to) if view.moved_to else None,
        diff=None if diff is None else answers.framed(diff, view.url, f"changed {answers.when(view.at)}"),
    )


def _change_text(change: answers.Change) -> str:
    moved = f" to {change.moved_to}" if change.moved_to else ""
    label = label_of(change.library, change.version)
    head = f"\n{answers.when(change.at)} {change.kind}{moved}: {change.url} ({label})"
    return f"{head}\n{change.diff}" if change.diff else head


KEPT = 8  # pages that are cached for further parts
LONGEST = 2_000_000  # characters of a cached page


def add_page_tools(server: MCPServer[Any], kb: answers.Reach) -> None:
    seen: OrderedDict[tuple[TokenScope, frozenset[str] | None, str], FetchedPage] = OrderedDict()

    async def look(url: str, *, anew: bool) -> FetchedPage:
        asking = kb()
        key = (asking.allowed.scope, asking.allowed.sources, url)  # permissions differ, so the cache does too
        if anew or key not in seen:
            glimpse = await asking.pages.fetch_once(url)
            if len(glimpse.markdown) > LONGEST:
                return glimpse
            seen[key] = glimpse
        glimpse = seen[key]
        seen.move_to_end(key)
        while len(seen) > KEPT:
            seen.popitem(last=False)
        return glimpse

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True))
    async def fetch_url(
        url: Annotated[str, Field(max_length=2_000, description="A web address, http or https")],
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, answers.PageText]:
        """Fetch one web page as Markdown, as it is now; nothing is indexed. Private addresses are refused.

        With a token that may only read: pages of what is indexed alone.
        """
        with answers.told():
            glimpse = await look(url, anew=not cursor)
            begins = answers.read_cursor(cursor, "fetch", url, glimpse.content_hash)
        page = answers.PageText(
            url=answers.address(glimpse.url),
            title=answers.one_line(glimpse.title),
            language=glimpse.language,
            checked_at=glimpse.looked_at,
            changed_at=None,
            **part(glimpse.markdown, begins, glimpse.url, answers.freshness(glimpse.looked_at, None)),
        )
        if page.ends < page.characters:
            page.nextCursor = answers.make_cursor(page.ends, "fetch", url, glimpse.content_hash)
        return answers.answered(
            page, [f"{page.url}, characters {begins} to {page.ends} of {page.characters}", page.text]
        )


def part(markdown: str, begins: int, url: str, about: str, room: int = answers.ROOM) -> dict[str, Any]:
    """Return a framed part of a text that fits into a result, with its start and end."""
    text = answers.harmless(markdown)
    begins = min(begins, len(text))
    shown = answers.beginning(text[begins : begins + room], room)
    return {
        "begins": begins,
        "ends": begins + len(shown),
        "characters": len(text),
        "text": answers.framed(shown, url, about),
    }
