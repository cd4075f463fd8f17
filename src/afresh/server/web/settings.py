"""The settings of a source: what differs from those of all, in a form; and its end."""

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from afresh.model.records import Source
from afresh.server.parts import Id
from afresh.server.request_context import Reach, Reached
from afresh.server.web.fields import (
    FIELDS,
    WRONG,
    Wrong,
    fields_for,
    read_settings,
    typed_of,
    usual_values,
    wrong_with,
)
from afresh.server.web.frame import PageRoute, form_of, to
from afresh.server.web.listing import Filter
from afresh.server.web.sources import show_tab

router = APIRouter(include_in_schema=False, route_class=PageRoute)
NAME = "name"  # the field in which somebody types what to delete


@router.get("/sources/{number}/settings")
async def ask(request: Request, reach: Reached, number: Id, saved: Filter = "") -> Response:
    """The form."""
    source = await reach.source(number)
    return await _shown(request, reach, source, typed_of(source), saved=bool(saved))


@router.post("/sources/{number}/settings")
async def save(request: Request, reach: Reached, number: Id) -> Response:
    """Take what was typed; a field that is empty is as everywhere again, one that is not there stays."""
    source = await reach.source(number)
    form = await form_of(request)
    typed = {field.key: form[field.key].strip() for field in FIELDS if field.key in form}
    try:
        await reach.kb.sources.change_settings(
            source, read_settings(typed), [key for key, text in typed.items() if not text]
        )
    except WRONG as error:
        return await _shown(request, reach, source, typed, wrong=wrong_with(error))
    return to(f"/sources/{number}/settings?saved=1")


@router.post("/sources/{number}/remove")
async def remove(request: Request, reach: Reached, number: Id) -> Response:
    """Delete it, once its name was typed."""
    source = await reach.source(number)
    if (await form_of(request)).get(NAME, "").strip() != source.label:
        wrong = Wrong(f"Type {source.label} to delete it with its pages: nothing was deleted.", NAME)
        return await _shown(request, reach, source, typed_of(source), wrong=wrong)
    await reach.kb.sources.remove(source.label)
    return to(f"/?{urlencode({'removed': source.label})}")


async def _shown(
    request: Request,
    reach: Reach,
    source: Source,
    typed: Mapping[str, str],
    *,
    saved: bool = False,
    wrong: Wrong | None = None,
) -> Response:
    given = {
        "fields": fields_for(source.kind, typed),
        "typed": typed,
        "usual": usual_values(request, source.kind),
    }
    answer = await show_tab(request, reach, source, "settings", {}, saved=saved, wrong=wrong, **given)
    answer.status_code = 422 if wrong else 200
    return answer
