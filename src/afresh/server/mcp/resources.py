"""What agents can read by address: libraries and pages on record."""

from typing import Any
from urllib.parse import unquote

from mcp.server import MCPServer
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import Resource

from afresh.errors import AfreshError
from afresh.server.mcp.answers import freshness, when
from afresh.server.mcp.framing import NOTICE, one_line, weight
from afresh.server.mcp.page_tools import part
from afresh.server.mcp.request_context import Reach
from afresh.server.mcp.trouble import sentence
from afresh.text.wording import count

LIBRARY, PAGE = "afresh://library/", "afresh://page/"
LISTED = 500  # pages of a library that are named
NAMED = 100  # libraries in the list of resources
ROOM = 40_000  # bytes of a resource
TEXT, MARKDOWN = "text/plain", "text/markdown"


def add_resources(server: MCPServer[Any], kb: Reach) -> None:
    """Make known how libraries and pages are addressed."""

    @server.resource(LIBRARY + "{+label}", name="library", mime_type=TEXT)
    async def library(label: str) -> str:
        """A library or one version of it, NAME or NAME@VERSION: its numbers and its pages."""
        return await read_library(kb, label)

    @server.resource(PAGE + "{+url}", name="page", mime_type=MARKDOWN)
    async def page(url: str) -> str:
        """The stored text of a page; #N after its address goes on at character N."""
        return await read_page(kb, url)


async def read(kb: Reach, uri: str) -> ReadResourceContents | None:
    """The resource at an address, None if it is not one of ours.

    The templates of the SDK match no address with a question mark or a fragment in it.
    """
    if uri.startswith(PAGE):
        text = await read_page(kb, uri.removeprefix(PAGE))
        return ReadResourceContents(content=text, mime_type=MARKDOWN)
    if uri.startswith(LIBRARY):
        text = await read_library(kb, uri.removeprefix(LIBRARY))
        return ReadResourceContents(content=text, mime_type=TEXT)
    return None


async def read_library(kb: Reach, typed: str) -> str:
    """A source with its numbers, and the addresses of its pages."""
    label = unquote(typed)
    try:
        view = await kb().sources.view(label)
        pages = await kb().pages.of_source(label, limit=LISTED)
    except AfreshError as error:
        raise ResourceNotFoundError(sentence(str(error))) from error
    head = [
        NOTICE,
        f"{label}: {count(view.pages, 'page')} of {one_line(view.url, 2_000)}",
        f"last run {when(view.crawl_time)}, {view.last_state}; oldest check {when(view.oldest_check)}",
    ]
    lines, room = [], ROOM
    for page in pages:
        lines.append(PAGE + one_line(page.url, 2_000))
        room -= weight(lines[-1])
        if room < 0:
            break
    left = view.pages - len(lines)
    return "\n".join([*head, *lines, *([f"and {left} more"] if left > 0 else [])])


async def read_page(kb: Reach, typed: str) -> str:
    """The stored text of a page, or what of it fits from a character on."""
    address, _, place = typed.partition("#")
    address = address if "://" in address else unquote(address)
    try:
        opened = await kb().pages.open(address, from_afar=True)
    except AfreshError as error:
        raise ResourceNotFoundError(sentence(str(error))) from error
    begins = int(place) if place.isascii() and place.isdigit() and len(place) < 12 else 0
    about = freshness(opened.checked_at, opened.changed_at)
    shown = part(opened.markdown, begins, opened.url, about, ROOM)
    more = shown["ends"] < shown["characters"]
    goes_on = f"\nIt goes on: {PAGE}{one_line(opened.url, 2_000)}#{shown['ends']}" if more else ""
    return f"{NOTICE}\n{shown['text']}{goes_on}"


async def listed(kb: Reach) -> list[Resource]:
    """The first libraries as resources; their names are the user's, so nothing of a page is in them.

    list_libraries tells all: this list has no parts, as the SDK gives none.
    """
    return [
        Resource(
            uri=LIBRARY + (f"{view.name}@{view.version}" if view.version else view.name),
            name=f"{view.name}@{view.version}" if view.version else view.name,
            description=f"{count(view.pages, 'page')}, {view.kind}",
            mime_type=TEXT,
        )
        for view in (await kb().sources.views())[:NAMED]
    ]
