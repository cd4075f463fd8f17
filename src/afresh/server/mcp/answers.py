"""What the tools answer with: typed, and the same as text for clients that show only that."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from afresh.server.mcp.framing import NOTICE

ROOM = 18_000  # bytes that the texts of one answer take; they come twice, with all else within 50 KB
BOTH = 2 * ROOM  # bytes of both forms, where all of both is counted


class Marked(BaseModel):
    """An answer that says what it is."""

    notice: str = NOTICE


class Passage(BaseModel):
    """One passage that answers a question."""

    url: str
    title: str
    library: str
    version: str | None
    path: list[str] = Field(description="The headings above it, outermost first")
    language: str | None
    score: float
    checked_at: datetime | None = Field(description="When the page was last looked at")
    changed_at: datetime | None = Field(description="When its content last changed")
    text: str = Field(description="The passage, framed as data")


class Passages(Marked):
    """What a search found, best first."""

    results: list[Passage]
    notes: list[str] = []
    nextCursor: str | None = None


class LibraryVersion(BaseModel):
    """One source of a library."""

    source: str = Field(description="Its full name, as NAME or NAME@VERSION")
    version: str | None
    kind: str
    url: str
    pages: int
    read_at: datetime | None = Field(description="When its last run began")
    checked_at: datetime | None = Field(description="The oldest look among its pages")
    status: str | None = Field(description="How its last run ended")


class LibraryEntry(BaseModel):
    """A library with its versions."""

    library: str
    versions: list[LibraryVersion]


class Libraries(Marked):
    """What is indexed."""

    libraries: list[LibraryEntry]
    nextCursor: str | None = None


class Version(Marked):
    """The version that is meant, and those there are."""

    library: str
    wanted: str | None
    version: str | None = Field(description="The best version there is; null: the library without a version")
    match: str
    url: str
    versions: list[str] = Field(description="The versions there are, newest first; the newest of very many")
    unversioned: bool


class PageText(Marked):
    """The text of a page, or a part of it."""

    url: str
    title: str
    language: str | None
    checked_at: datetime | None
    changed_at: datetime | None
    begins: int = Field(description="The first character of this part")
    ends: int
    characters: int = Field(description="Of the whole text")
    text: str = Field(description="The text as Markdown, framed as data")
    nextCursor: str | None = None


class Change(BaseModel):
    """One change of a page."""

    id: int
    library: str
    version: str | None
    url: str
    kind: str
    at: datetime
    jobId: int | None
    moved_to: str | None
    diff: str | None = Field(description="What changed, framed as data; cut where it is long")


class Changes(Marked):
    """What changed, newest first."""

    changes: list[Change]
    notes: list[str] = []
    nextCursor: str | None = None


class Told(BaseModel):
    """One run of a source."""

    jobId: int
    library: str
    version: str | None
    mode: str
    status: str = Field(
        description="queued, running, completed, partial, failed, cancelled or needs_confirmation"
    )
    checked: int
    new: int
    changed: int
    not_modified: int
    deleted: int
    failed: int
    seconds: float
    documents: dict[str, int] | None = Field(
        None, description="Of a sync: how many documents of external stores ended how"
    )
    error: str | None = None
    notes: list[str] = []


class Job(Told, Marked):
    """One run of a source, by itself."""


class Jobs(Marked):
    """Runs, newest first."""

    jobs: list[Told]
    nextCursor: str | None = None


class Removed(Marked):
    """A source that was removed."""

    library: str
    version: str | None
    pages: int


def answered(answer: Marked, lines: Sequence[str]) -> CallToolResult:
    """The answer in both forms."""
    data: dict[str, Any] = answer.model_dump(mode="json")
    more = data.get("nextCursor")
    shown = [answer.notice, *lines, *([f"There is more: ask again with cursor {more}"] if more else [])]
    return CallToolResult(content=[TextContent(type="text", text="\n".join(shown))], structured_content=data)


def noted(result: CallToolResult, note: str | None) -> CallToolResult:
    """The answer with a note for its reader, if there is one."""
    if note is not None:
        result.structured_content = dict(result.structured_content or {})
        result.structured_content["notes"] = [*result.structured_content.get("notes", []), note]
        result.content.append(TextContent(type="text", text=note))
    return result


def when(moment: datetime | None) -> str:
    """A time as people read it."""
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "never"


def freshness(checked_at: datetime | None, changed_at: datetime | None) -> str:
    """How fresh a text is."""
    return f"checked {when(checked_at)}, changed {when(changed_at) if changed_at else 'unknown'}"
