"""The search page: it shows passages while the user types, with the freshness of each."""

import json
from collections.abc import Mapping
from shlex import quote
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from afresh.model.reports import SearchAnswer, SearchHit
from afresh.present.wording import label, read_language, read_length
from afresh.search.highlight import UNMARKED
from afresh.search.records import SearchMode
from afresh.server.requests import Context, Text
from afresh.server.web.frame import Choice, Filter, PageRoute, show

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MAX_HITS = 20


@router.get("/search")
async def search(
    ctx: Context,
    q: Annotated[Text, Query()] = "",
    within: Annotated[str, Query(alias="in", max_length=300)] = "",
    language: Filter = None,
    path: Filter = None,
    changed: Filter = None,
    mode: Choice[SearchMode] = None,
    part: Filter = None,
) -> Response:
    """Return the search page, or only the hits if `part` is set."""
    found = None
    if q.strip():
        found = await ctx.kb.search.search(
            q,
            within=[within] if within else [],
            language=read_language("language", language),
            path=path,
            changed_within=read_length("changed", changed, 1),
            mode=mode or SearchMode.HYBRID,
            limit=MAX_HITS,
        )
    filters = {"in": within, "language": language, "path": path, "changed_within": changed, "mode": mode}
    given = {
        "q": q,
        "found": found,
        "max_hits": MAX_HITS,
        "copies": _copies(ctx.request, q, filters, found) if found else {},
        "label_of": lambda hit: label(hit.source, hit.version),
    }
    if part:
        return show(ctx.request, "parts/hits.html", **given)
    labels = [source.label for source in await ctx.kb.sources.all()]
    return show(ctx.request, "search.html", labels=labels, modes=list(SearchMode), **given)


def _copies(request: Request, q: str, filters: Mapping[str, str | None], found: SearchAnswer) -> dict[str, str]:
    """Return texts to copy: the hits as Markdown, and the query as cURL command and as MCP call."""
    fields = {"q": q, "limit": MAX_HITS} | {key: text for key, text in filters.items() if text}
    url = f"{request.url.scheme}://{request.url.netloc}/api/v1/search?{urlencode(fields)}"
    arguments = {"query": q, "limit": MAX_HITS} | ({"library": filters["in"]} if filters["in"] else {})
    token = '-H "Authorization: Bearer $AFRESH_TOKEN" ' if request.scope["state"].get("login") else ""
    call = {"method": "tools/call", "params": {"name": "search_docs", "arguments": arguments}}
    return {
        "Markdown": "\n\n".join(map(_as_markdown, found.hits)),
        "cURL": f"curl {token}{quote(url)}",
        "MCP call": json.dumps({"jsonrpc": "2.0", "id": 1, **call}, ensure_ascii=False, indent=2),
    }


def _as_markdown(hit: SearchHit) -> str:
    words = hit.text.translate(UNMARKED)
    checked = f", checked {hit.checked_at:%Y-%m-%d %H:%M} UTC" if hit.checked_at else ""
    return f"## {hit.title}\n\n{words}\n\n<{hit.url}> ({label(hit.source, hit.version)}{checked})"
