"""The tool that reads one page of the web as it is now, part by part."""

from collections import OrderedDict
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from afresh.access.permissions import Scope
from afresh.crawl.fetched_page import Glimpse
from afresh.server.mcp.answers import ROOM, PageText, answered, freshness
from afresh.server.mcp.cursors import make_cursor, read_cursor
from afresh.server.mcp.find_tools import Cursor
from afresh.server.mcp.framing import beginning, framed, harmless, one_line
from afresh.server.mcp.request_context import Reach
from afresh.server.mcp.trouble import told

KEPT = 8  # pages that are read on without being fetched again
LONGEST = 2_000_000  # characters kept of one


def add_page_tools(server: MCPServer[Any], kb: Reach) -> None:
    """Make the tool known that looks at the web."""
    seen: OrderedDict[tuple[Scope, frozenset[str] | None, str], Glimpse] = OrderedDict()

    async def look(url: str, *, anew: bool) -> Glimpse:
        asking = kb()
        key = (asking.allowed.scope, asking.allowed.sources, url)  # what one may see is not for another
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
    ) -> Annotated[CallToolResult, PageText]:
        """Fetch one web page as Markdown, as it is now; nothing is indexed. Private addresses are refused.

        With a token that may only read: pages of what is indexed alone.
        """
        with told():
            glimpse = await look(url, anew=not cursor)
            begins = read_cursor(cursor, "fetch", url, glimpse.content_hash)
        page = PageText(
            url=one_line(glimpse.url, 2_000),
            title=one_line(glimpse.title),
            language=glimpse.language,
            checked_at=glimpse.looked_at,
            changed_at=None,
            **part(glimpse.markdown, begins, glimpse.url, freshness(glimpse.looked_at, None)),
        )
        if page.ends < page.characters:
            page.nextCursor = make_cursor(page.ends, "fetch", url, glimpse.content_hash)
        return answered(
            page, [f"{page.url}, characters {begins} to {page.ends} of {page.characters}", page.text]
        )


def part(markdown: str, begins: int, url: str, about: str, room: int = ROOM) -> dict[str, Any]:
    """A part of a text that fits into an answer, framed, with where it begins and ends."""
    text = harmless(markdown)
    begins = min(begins, len(text))
    shown = beginning(text[begins : begins + room], room)
    return {
        "begins": begins,
        "ends": begins + len(shown),
        "characters": len(text),
        "text": framed(shown, url, about),
    }
