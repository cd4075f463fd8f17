"""The search page: passages as one types, with the freshness of each."""

import json
from shlex import quote
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from afresh.errors import UsageError
from afresh.model.reports import SearchAnswer, SearchHit
from afresh.present.wording import label, read_language
from afresh.search.highlight import UNMARKED
from afresh.search.records import SearchMode
from afresh.server.api.search import read_span
from afresh.server.requests import Reached, Text
from afresh.server.web.frame import Filter, PageRoute, show

router = APIRouter(include_in_schema=False, route_class=PageRoute)
HITS = 20


@router.get("/search")
async def search(
    reach: Reached,
    q: Annotated[Text, Query()] = "",
    within: Annotated[str, Query(alias="in", max_length=300)] = "",
    language: Filter = "",
    path: Filter = "",
    changed: Filter = "",
    mode: Filter = "",
    part: Filter = "",
) -> Response:
    """Return the whole page, or with `part` only the hits."""
    asked = {"in": within, "language": language, "path": path, "changed": changed, "mode": mode}
    found = None
    if q.strip():
        found = await reach.kb.search.search(
            q,
            within=[within] if within else [],
            language=read_language("language", language.strip() or None),
            path=path.strip() or None,
            changed_within=read_span("changed", changed.strip() or None),
            mode=_mode(mode),
            limit=HITS,
        )
    given = {
        "q": q,
        "found": found,
        "most": HITS,
        "copies": _copies(reach.request, q, asked, found) if found else {},
        "label_of": lambda hit: label(hit.source, hit.version),
    }
    if part:
        return show(reach.request, "parts/hits.html", **given)
    labels = [source.label for source in await reach.kb.sources.all()]
    return show(reach.request, "search.html", asked=asked, labels=labels, modes=list(SearchMode), **given)


def _mode(typed: str) -> SearchMode:
    try:
        return SearchMode(typed) if typed else SearchMode.HYBRID
    except ValueError:
        raise UsageError(f"mode: expected {', '.join(SearchMode)}, got {typed[:50]!r}") from None


def _copies(request: Request, q: str, asked: dict[str, str], found: SearchAnswer) -> dict[str, str]:
    """Return the query and its hits as Markdown, cURL command and MCP call."""
    names = {"in": "in", "language": "language", "path": "path", "changed": "changed_within", "mode": "mode"}
    fields = {"q": q, "limit": HITS} | {names[key]: text for key, text in asked.items() if text}
    url = f"{request.url.scheme}://{request.url.netloc}/api/v1/search?{urlencode(fields)}"
    arguments = {"query": q, "limit": HITS} | ({"library": asked["in"]} if asked["in"] else {})
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
