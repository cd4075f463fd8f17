"""What agents can read by address: libraries and pages on record."""

from typing import Any
from urllib.parse import quote, unquote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp_types import Resource

from afresh.core.errors import AfreshError
from afresh.faces.mcp.answers import freshness, when
from afresh.faces.mcp.framing import NOTICE, one_line
from afresh.faces.mcp.page_tools import part
from afresh.faces.mcp.trouble import sentence
from afresh.kb import KnowledgeBase

LIBRARY, PAGE = "afresh://library/", "afresh://page/"
LISTED = 500  # pages of a library that are named
ROOM = 40_000  # bytes of a resource
_NO_FILES = ResourceSecurity(exempt_params={"label", "url"})  # both are looked up in the store, never opened


def add_resources(server: MCPServer[Any], kb: KnowledgeBase) -> None:
    """Make libraries and pages known by address."""

    @server.resource(LIBRARY + "{+label}", name="library", mime_type="text/plain", security=_NO_FILES)
    async def library(label: str) -> str:
        """A library or one version of it, NAME or NAME@VERSION: its numbers and its pages."""
        try:
            view = await kb.show(unquote(label))
            pages = await kb.pages(unquote(label), limit=LISTED)
        except AfreshError as error:
            raise ResourceNotFoundError(sentence(str(error))) from error
        lines = [
            NOTICE,
            f"{label}: {view.pages} pages of {one_line(view.url, 2_000)}",
            f"last run {when(view.crawl_time)}, {view.last_state}; oldest check {when(view.oldest_check)}",
        ]
        room = ROOM
        for page in pages:
            line = PAGE + quote(page.url, safe=":/?&=%+,;@~!$()*'[]")
            room -= len(line) + 1
            if room < 0:
                break
            lines.append(line)
        left = view.pages - (len(lines) - 3)
        return "\n".join([*lines, f"and {left} more"] if left > 0 else lines)

    @server.resource(PAGE + "{+url}", name="page", mime_type="text/markdown", security=_NO_FILES)
    async def page(url: str) -> str:
        """The stored text of a page; #N after its address goes on at character N."""
        address, _, place = url.partition("#")
        try:
            opened = await kb.open(address)
        except AfreshError as error:
            raise ResourceNotFoundError(sentence(str(error))) from error
        begins = int(place) if place.isascii() and place.isdigit() and len(place) < 12 else 0
        about = freshness(opened.checked_at, opened.changed_at)
        shown = part(opened.markdown, begins, opened.url, about, ROOM)
        more = shown["ends"] < shown["characters"]
        goes_on = f"\nIt goes on: {PAGE}{address}#{shown['ends']}" if more else ""
        return f"{NOTICE}\n{shown['text']}{goes_on}"


async def listed(kb: KnowledgeBase) -> list[Resource]:
    """The libraries as resources; their names are the user's, so nothing of a page is in them."""
    return [
        Resource(
            uri=LIBRARY + (f"{view.name}@{view.version}" if view.version else view.name),
            name=f"{view.name}@{view.version}" if view.version else view.name,
            description=f"{view.pages} pages, {view.kind}",
            mime_type="text/plain",
        )
        for view in await kb.sources()
    ]
