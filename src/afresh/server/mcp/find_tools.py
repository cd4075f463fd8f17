"""MCP tools that read: search, libraries, versions, changes, and a single web page."""

from collections import OrderedDict
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
from afresh.present.search_parts import MAX_CURSOR_CHARS, AnswerParts
from afresh.server.mcp import answers
from afresh.text.plain import dedent_lists
from afresh.text.quantities import count, read_duration

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
MAX_PASSAGE_BYTES = 6_000
MAX_DIFF_BYTES = 4_000
_MARKS = str.maketrans("", "", "\x02\x03")  # around matched words

Name = Annotated[str, Field(max_length=100, description="Name of a library, from list_libraries")]
Wanted = Annotated[
    str | None,
    Field(max_length=100, description="A version or a range, such as 18, ^18, 18.x or latest; default: the newest"),
]
Cursor = Annotated[
    str | None, Field(max_length=200, description="The nextCursor of the previous answer; repeat the other arguments")
]
MAX_CACHED_PAGES = 8  # kept so that further parts need no new request
MAX_CACHED_CHARS = 2_000_000  # of one page


def add_search_tool(server: MCPServer[Any], kb: answers.KbProvider) -> None:
    @server.tool(annotations=READS)
    async def search_docs(
        query: Annotated[str, Field(min_length=1, max_length=1_000, description="A question or keywords")],
        library: Annotated[
            str | None, Field(max_length=100, description="Search only this library; default: all libraries")
        ] = None,
        version: Wanted = None,
        limit: Annotated[int, Field(ge=1, le=50, description="Maximum number of passages")] = 5,
        cursor: Annotated[
            str | None,
            Field(
                max_length=MAX_CURSOR_CHARS,
                description="The nextCursor of the previous answer; repeat the other arguments",
            ),
        ] = None,
    ) -> Annotated[CallToolResult, answers.Passages]:
        """Search the indexed documentation by keywords and meaning; returns passages with source and freshness."""
        with answers.tool_errors():
            parts = AnswerParts(cursor, query, library, version)
            if version and not library:
                raise UsageError("version needs a library; pass both, or neither")
            within = [label_of(library, version)] if library else []
            found = await kb().search.search(query, within=within, limit=parts.wanted(limit), context=True)
        return _passages(found, parts, limit)


def add_library_tools(server: MCPServer[Any], kb: answers.KbProvider) -> None:
    @server.tool(annotations=READS)
    async def list_libraries(cursor: Cursor = None) -> Annotated[CallToolResult, answers.Libraries]:
        """List the indexed libraries with their versions, sizes and freshness."""
        with answers.tool_errors():
            after = answers.read_cursor(cursor, "libraries")
            views = [view for view in await kb().sources.views() if view.id > after]
        rest = [(view, _version(view)) for view in sorted(views, key=lambda view: view.id)]
        listed = answers.fitting(
            rest, lambda pair: pair[1].model_dump_json() + _version_line(pair[1]), answers.MAX_BOTH_BYTES
        )
        more = answers.make_cursor(listed[-1][0].id, "libraries") if len(rest) > len(listed) else None
        listed.sort(key=lambda pair: (pair[0].name, pair[1].version or ""))
        none = "No more libraries." if after else "Nothing is indexed yet. Add a library with scrape_docs."
        lines = [_version_line(each) for _, each in listed] or [none]
        entries: dict[str, answers.LibraryEntry] = {}
        for view, version in listed:  # sources with the same first part of their name form a library
            library = view.name.partition("/")[0]
            entries.setdefault(library, answers.LibraryEntry(library=library, versions=[])).versions.append(version)
        return answers.make_result(answers.Libraries(libraries=list(entries.values()), nextCursor=more), lines)

    @server.tool(annotations=READS)
    async def find_version(library: Name, targetVersion: Wanted = None) -> Annotated[CallToolResult, answers.Version]:
        """Find the indexed version of a library that matches best, and list all versions."""
        with answers.tool_errors():
            found = await kb().sources.find_version(label_of(library, targetVersion))
        newest = answers.fitting(found.versions, str, answers.MAX_TEXT_BYTES // 2)
        own = {"library": found.source, "match": str(found.match), "versions": newest}
        answer = answers.copied(answers.Version, found, url=answers.clean_url(found.url), **own)
        others = len(found.versions) - len(newest)
        there = (", ".join(newest) or "none") + (f" and {others} older" if others else "")
        best = found.version or "the one without a version"
        line = f"{library}: best is {best} ({found.match}); versions: {there}"
        return answers.make_result(
            answer, [line if found.versions else f"{found.source} is indexed without a version."]
        )


def add_change_tool(server: MCPServer[Any], kb: answers.KbProvider) -> None:
    @server.tool(annotations=READS)
    async def what_changed(
        library: Annotated[str | None, Field(max_length=100, description="Only in this library")] = None,
        version: Annotated[str | None, Field(max_length=100, description="Exact version of that library")] = None,
        since: Annotated[
            str | None, Field(max_length=20, description="Only changes since this time ago, such as 7d or 12h")
        ] = None,
        kind: Annotated[
            Literal["new", "changed", "deleted", "moved"] | None, Field(description="Only changes of this kind")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of changes")] = 20,
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, answers.Changes]:
        """List new, changed, deleted and moved pages with diffs, newest first."""
        with answers.tool_errors():
            question = ("changes", library, version, since, kind)
            before = answers.read_cursor(cursor, *question)
            after = datetime.now(UTC) - read_duration(since) if since else None
            label = label_of(library, version) if library else None
            only = ChangeKind(kind) if kind else None
            seen = await kb().pages.changes(label, kind=only, below=before or None, limit=limit + 1)
            note = await kb().sources.version_note(label) if label else None
        fitting = [each for each in seen if after is None or each.at >= after]
        changes = map(_change, fitting[:limit])
        listed = answers.fitting(changes, lambda each: (each.diff or "") + 2 * each.url, answers.MAX_TEXT_BYTES)
        more = answers.make_cursor(listed[-1].id, *question) if listed and len(listed) < len(fitting) else None
        lines = [_change_text(each) for each in listed] or ["No changes."]
        return answers.add_note(answers.make_result(answers.Changes(changes=listed, nextCursor=more), lines), note)


def _passages(found: SearchAnswer, parts: AnswerParts, limit: int) -> CallToolResult:
    new = parts.new(found.hits)
    results = answers.fitting(map(passage_of, new[:limit]), lambda each: each.text, answers.MAX_TEXT_BYTES)
    more = parts.cursor(new[: len(results)], new)
    notes = [answers.one_line(note) for note in found.notes]
    weak = ["no good match for this query; nearest by meaning:"] if found.weak and results else []
    lines = [*notes, *weak, *(f"\n{label_of(each.library, each.version)}\n{each.text}" for each in results)]
    if not results:
        lines.append("No more results." if parts.has_begun else "No results. Try other words.")
    return answers.make_result(answers.Passages(results=results, notes=notes, weak=found.weak, nextCursor=more), lines)


def passage_of(hit: SearchHit) -> answers.Passage:
    text = answers.beginning(
        answers.sanitize(dedent_lists((hit.context or hit.text).translate(_MARKS))), MAX_PASSAGE_BYTES
    )
    title = answers.one_line(hit.title)
    return answers.copied(
        answers.Passage,
        hit,
        url=answers.clean_url(hit.url),
        title=title,
        library=hit.source,
        path=[answers.one_line(each) for each in hit.path],
        score=round(hit.score, 4),
        text=answers.frame(
            text if title in text[: len(title) + 4] else f"{title}\n\n{text}",
            hit.url,
            answers.freshness(hit.checked_at, hit.changed_at),
        ),
    )


def _version(view: SourceView) -> answers.LibraryVersion:
    own = {"read_at": view.crawl_time, "checked_at": view.oldest_check, "status": view.last_state}
    source, url = label_of(view.name, view.version), answers.clean_url(view.url)
    return answers.copied(answers.LibraryVersion, view, source=source, url=url, **own)


def _version_line(version: answers.LibraryVersion) -> str:
    checked, state = answers.when(version.checked_at), version.status or "not crawled yet"
    return f"{version.source}: {count(version.pages, 'page')} of {version.url}, checked {checked}, {state}"


def _change(view: ChangeView) -> answers.Change:
    diff = answers.beginning(answers.sanitize(view.diff), MAX_DIFF_BYTES) if view.diff else None
    return answers.copied(
        answers.Change,
        view,
        library=view.source,
        url=answers.clean_url(view.url),
        kind=str(view.kind),
        jobId=view.run,
        moved_to=answers.clean_url(view.moved_to) if view.moved_to else None,
        diff=None if diff is None else answers.frame(diff, view.url, f"changed {answers.when(view.at)}"),
    )


def _change_text(change: answers.Change) -> str:
    moved = f" to {change.moved_to}" if change.moved_to else ""
    label = label_of(change.library, change.version)
    head = f"\n{answers.when(change.at)} {change.kind}{moved}: {change.url} ({label})"
    return f"{head}\n{change.diff}" if change.diff else head


def add_page_tool(server: MCPServer[Any], kb: answers.KbProvider) -> None:
    cached: OrderedDict[tuple[TokenScope, frozenset[str] | None, str], FetchedPage] = OrderedDict()

    async def fetch(url: str, *, use_cache: bool) -> FetchedPage:
        scoped = kb()
        key = (scoped.allowed.scope, scoped.allowed.sources, url)  # clients with other permissions have other entries
        if not use_cache or key not in cached:
            fetched = await scoped.pages.fetch_once(url)
            if len(fetched.markdown) > MAX_CACHED_CHARS:
                return fetched
            cached[key] = fetched
        cached.move_to_end(key)
        while len(cached) > MAX_CACHED_PAGES:
            cached.popitem(last=False)
        return cached[key]

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True))
    async def fetch_url(
        url: Annotated[
            str, Field(max_length=2_000, description="An http or https URL; a read token may fetch only indexed pages")
        ],
        cursor: Cursor = None,
    ) -> Annotated[CallToolResult, answers.PageText]:
        """Fetch the current content of one web page as Markdown; nothing is indexed. Private addresses are blocked."""
        with answers.tool_errors():
            fetched = await fetch(url, use_cache=bool(cursor))
            begins = answers.read_cursor(cursor, "fetch", url, fetched.content_hash)
        page = answers.PageText(
            url=answers.clean_url(fetched.url),
            title=answers.one_line(fetched.title),
            language=fetched.language,
            checked_at=fetched.looked_at,
            changed_at=None,
            **part(fetched.markdown, begins, fetched.url, answers.freshness(fetched.looked_at, None)),
        )
        if page.ends < page.characters:
            page.nextCursor = answers.make_cursor(page.ends, "fetch", url, fetched.content_hash)
        return answers.make_result(
            page, [f"{page.url}, characters {begins} to {page.ends} of {page.characters}", page.text]
        )


def part(markdown: str, begins: int, url: str, about: str, max_bytes: int = answers.MAX_TEXT_BYTES) -> dict[str, Any]:
    """Return the fields of a result: the text from `begins` on, at most `max_bytes`, framed with `url` and `about`."""
    text = answers.sanitize(markdown)
    begins = min(begins, len(text))
    content = answers.beginning(text[begins : begins + max_bytes], max_bytes)
    return {
        "begins": begins,
        "ends": begins + len(content),
        "characters": len(text),
        "text": answers.frame(content, url, about),
    }
