"""Changes: what is new, changed, deleted or moved, as JSON and as an Atom feed."""

from typing import Annotated
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Query, Request, Response

from afresh.model.records import ChangeKind
from afresh.model.reports import ChangeView
from afresh.present.as_json import moment
from afresh.server.api.replies import reply, tagged
from afresh.server.cursors import read_number
from afresh.server.listing import Listing, by_id, part
from afresh.server.parts import LARGEST, USUAL, Cursor, Id, Limit
from afresh.server.request_context import Reached
from afresh.text.redact import one_line

router = APIRouter(tags=["changes"])
Source = Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this source.")]
Kind = Annotated[ChangeKind | None, Query(description="Only changes of this kind.")]
EPOCH = "1970-01-01T00:00:00Z"


@router.get("/changes", response_model=Listing[ChangeView])
async def list_changes(
    request: Request,
    reach: Reached,
    source: Source = None,
    run: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only of this run.")] = None,
    url: Annotated[str | None, Query(max_length=2_000, description="Only of this address.")] = None,
    kind: Kind = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """Changes, newest first, each with its difference."""
    below = read_number(cursor)
    changes = await reach.kb.pages.change_records(
        await reach.sources(source), run=run, url=url, kind=kind, below=below, limit=limit + 1
    )
    return reply(request, part(changes, limit, by_id))


@router.get("/sources/{number}/changes", response_model=Listing[ChangeView])
async def changes_of_source(
    request: Request,
    reach: Reached,
    number: Id,
    kind: Kind = None,
    cursor: Cursor = None,
    limit: Limit = USUAL,
) -> Response:
    """The changes of one source."""
    return await list_changes(request, reach, number, None, None, kind, cursor, limit)


@router.get(
    "/changes.atom",
    response_class=Response,
    responses={200: {"content": {"application/atom+xml": {}}, "description": "An Atom feed."}},
)
async def feed(request: Request, reach: Reached, source: Source = None, limit: Limit = USUAL) -> Response:
    """The newest changes as an Atom feed."""
    changes = await reach.kb.pages.change_records(await reach.sources(source), limit=limit)
    return tagged(request, atom(changes).encode(), "application/atom+xml")


def atom(changes: list[ChangeView]) -> str:
    """A feed; its times are those of the changes, so it stays the same as long as they do."""
    updated = moment(changes[0].at) if changes else EPOCH
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>urn:afresh:changes</id><title>afresh: changes</title><updated>{updated}</updated>"
        f"<author><name>afresh</name></author>{''.join(map(_entry, changes))}</feed>\n"
    )


def _entry(change: ChangeView) -> str:
    label = f"{change.source}@{change.version}" if change.version else change.source
    title = _text(f"{change.kind}: {change.url}")
    diff = f'<content type="text">{_text(change.diff, lines=True)}</content>' if change.diff else ""
    return (
        f"<entry><id>urn:afresh:change:{change.id}</id><title>{title}</title>"
        f"<updated>{moment(change.at)}</updated><link href={quoteattr(one_line(change.url))}/>"
        f"<category term={quoteattr(str(change.kind))}/><category term={quoteattr(label)}/>{diff}</entry>"
    )


def _text(raw: str, *, lines: bool = False) -> str:
    """Text that XML can hold."""
    return escape("\n".join(map(one_line, raw.split("\n"))) if lines else one_line(raw))
