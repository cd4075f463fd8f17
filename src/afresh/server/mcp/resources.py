"""MCP resources: stored libraries and pages."""

from typing import Any
from urllib.parse import unquote

from mcp.server import MCPServer
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import Resource

from afresh.model.labels import label_of
from afresh.server.mcp.answers import NOTICE, KbProvider, clean_url, fitting, freshness, tool_errors, when
from afresh.server.mcp.find_tools import part
from afresh.text.quantities import count

LIBRARY, PAGE = "afresh://library/", "afresh://page/"
MAX_PAGES_LISTED = 500  # of a library
MAX_LIBRARIES_LISTED = 100
MAX_RESOURCE_BYTES = 40_000
TEXT, MARKDOWN = "text/plain", "text/markdown"


def add_resources(server: MCPServer[Any], kb: KbProvider) -> None:
    @server.resource(LIBRARY + "{+label}", name="library", mime_type=TEXT)
    async def library(label: str) -> str:
        """Return counts and pages of a library (NAME) or of one version of it (NAME@VERSION)."""
        return await read_library(kb, label)

    @server.resource(PAGE + "{+url}", name="page", mime_type=MARKDOWN)
    async def page(url: str) -> str:
        """Return the stored text of a page; with #N after the URL, from character N on."""
        return await read_page(kb, url)


async def read(kb: KbProvider, uri: str) -> ReadResourceContents | None:
    """Return the resource at a URI, or None; unlike the URI templates of the SDK, accept `?` and `#` in the URI."""
    if uri.startswith(PAGE):
        text = await read_page(kb, uri.removeprefix(PAGE))
        return ReadResourceContents(content=text, mime_type=MARKDOWN)
    if uri.startswith(LIBRARY):
        text = await read_library(kb, uri.removeprefix(LIBRARY))
        return ReadResourceContents(content=text, mime_type=TEXT)
    return None


async def read_library(kb: KbProvider, typed: str) -> str:
    label = unquote(typed)
    with tool_errors(ResourceNotFoundError):
        view = await kb().sources.view(label)
        pages = await kb().pages.of_source(label, limit=MAX_PAGES_LISTED)
    head = [
        NOTICE,
        f"{label}: {count(view.pages, 'page')} of {clean_url(view.url)}",
        f"last run {when(view.crawl_time)}, {view.last_state}; oldest check {when(view.oldest_check)}",
    ]
    lines = fitting([PAGE + clean_url(page.url) for page in pages], str, MAX_RESOURCE_BYTES)
    left = view.pages - len(lines)
    return "\n".join([*head, *lines, *([f"and {left} more"] if left > 0 else [])])


async def read_page(kb: KbProvider, typed: str) -> str:
    """Return the stored text of the page at the URL `typed`, as much as fits; `#N` after the URL skips N characters."""
    url, _, place = typed.partition("#")
    with tool_errors(ResourceNotFoundError):
        opened = await kb().pages.open(url if "://" in url else unquote(url), remote=True)
    begins = int(place) if place.isascii() and place.isdigit() and len(place) < 12 else 0
    about = freshness(opened.checked_at, opened.changed_at)
    content = part(opened.markdown, begins, opened.url, about, MAX_RESOURCE_BYTES)
    has_more = content["ends"] < content["characters"]
    rest = f"\nContinues at {PAGE}{clean_url(opened.url)}#{content['ends']}" if has_more else ""
    return f"{NOTICE}\n{content['text']}{rest}"


async def list_libraries(kb: KbProvider) -> list[Resource]:
    """Return the first libraries as resources; the SDK has no paging here, but the tool list_libraries lists all."""
    return [
        Resource(
            uri=LIBRARY + (name := label_of(view.name, view.version)),
            name=name,
            description=f"{count(view.pages, 'page')}, {view.kind}",
            mime_type=TEXT,
        )
        for view in (await kb().sources.views())[:MAX_LIBRARIES_LISTED]
    ]
