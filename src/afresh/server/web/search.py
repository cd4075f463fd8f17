"""Search: passages as one types, with how fresh each is."""

import json
from datetime import timedelta
from shlex import quote
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from afresh.errors import UsageError
from afresh.model.reports import Answer, Hit
from afresh.present.wording import label
from afresh.search.highlight import UNMARKED
from afresh.search.request import Mode
from afresh.server.api.search import read_language, read_length
from afresh.server.parts import Text
from afresh.server.request_context import Reach, Reached
from afresh.server.web.frame import PageRoute, show
from afresh.server.web.listing import Filter

router = APIRouter(include_in_schema=False, route_class=PageRoute)
HITS = 20


@router.get("/search")
async def search(
    request: Request,
    reach: Reached,
    q: Annotated[Text, Query()] = "",
    within: Annotated[str, Query(alias="in", max_length=300)] = "",
    language: Filter = "",
    path: Filter = "",
    changed: Filter = "",
    mode: Filter = "",
    part: Filter = "",
) -> Response:
    """The whole page, or with `part` just what was found."""
    asked = {"in": within, "language": language, "path": path, "changed": changed, "mode": mode}
    found = await _found(reach, q, asked) if q.strip() else None
    given = {
        "q": q,
        "found": found,
        "most": HITS,
        "copies": _copies(request, q, asked, found) if found else {},
        "label_of": lambda hit: label(hit.source, hit.version),
    }
    if part:
        return show(request, "parts/hits.html", **given)
    labels = [source.label for source in await reach.visible()]
    return show(request, "search.html", asked=asked, labels=labels, modes=list(Mode), **given)


async def _found(reach: Reach, q: str, asked: dict[str, str]) -> Answer:
    return await reach.kb.search.search(
        q,
        within=[asked["in"]] if asked["in"] else [],
        language=read_language(asked["language"].strip() or None),
        path=asked["path"].strip() or None,
        changed_within=read_length("changed", asked["changed"].strip() or None, timedelta(seconds=1)),
        mode=_mode(asked["mode"]),
        limit=HITS,
    )


def _mode(typed: str) -> Mode:
    try:
        return Mode(typed) if typed else Mode.HYBRID
    except ValueError:
        raise UsageError(f"mode: expected {', '.join(Mode)}, got {typed[:50]!r}") from None


def _copies(request: Request, q: str, asked: dict[str, str], found: Answer) -> dict[str, str]:
    """The question and its answers, for where they are needed next."""
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


def _as_markdown(hit: Hit) -> str:
    words = hit.text.translate(UNMARKED)
    checked = f", checked {hit.checked_at:%Y-%m-%d %H:%M} UTC" if hit.checked_at else ""
    return f"## {hit.title}\n\n{words}\n\n<{hit.url}> ({label(hit.source, hit.version)}{checked})"
