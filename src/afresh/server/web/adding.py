"""Adding a source: one field, a preview of what would be read, and the settings that matter."""

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from afresh.errors import AlreadyKept, Forbidden, RunBusy
from afresh.model.overview import Preview
from afresh.model.records import RunMode
from afresh.server.host_checks import is_led_from_elsewhere
from afresh.server.request_context import Reach, Reached
from afresh.server.web.fields import WRONG, Wrong, fields_for, read_settings, usual_values, wrong_with
from afresh.server.web.frame import PageRoute, form_of, show, to

router = APIRouter(include_in_schema=False, route_class=PageRoute)
SCOPES = {
    "subpages": "pages below the start address",
    "hostname": "pages on the same host",
    "domain": "pages anywhere on the same domain",
}


@router.get("/add")
async def ask(request: Request, reach: Reached) -> Response:
    """The form, and what would be read of what it names; another site can have nothing read."""
    _check(request, reach)
    form = {key: text.strip() for key, text in request.query_params.items()}
    if form.get("do") != "preview" or is_led_from_elsewhere(request.scope):
        return _shown(request, form)
    try:
        return _shown(
            request, form, await reach.kb.sources.preview(form.get("target", ""), read_settings(form))
        )
    except WRONG as error:
        return _shown(request, form, wrong=wrong_with(error))


@router.post("/add")
async def add(request: Request, reach: Reached) -> Response:
    """Add it, and start to read it."""
    _check(request, reach)
    form = {key: text.strip() for key, text in (await form_of(request)).items()}
    if form.get("do") != "add":
        return to(f"/add?{urlencode({**form, 'do': 'preview'})}")
    name, version = form.get("name") or None, form.get("version") or None
    try:
        settings = read_settings(form)
        source, _ = await reach.kb.sources.add(
            form.get("target", ""),
            name=name,
            version=version,
            settings=settings,
            keep=False,
            again=form.get("again") == "yes",
        )
        run = await reach.kb.runs.start(source, RunMode.CRAWL)
    except RunBusy as busy:
        return to(f"/runs/{busy.run}") if busy.run else to("/")
    except AlreadyKept as kept:
        told = f"{kept.label} has this URL already: refresh that source, or tick the box to keep it twice"
        return _shown(request, form, wrong=Wrong(told, "again"))
    except WRONG as error:
        return _shown(request, form, wrong=wrong_with(error))
    return to(f"/runs/{run.run}")


def _check(request: Request, reach: Reach) -> None:
    if request.app.state.read_only:
        raise Forbidden("this server only reads: sources are added where it was started without --read-only")
    reach.allowed.check_write()
    reach.allowed.check_everywhere()


def _shown(
    request: Request, typed: Mapping[str, str], preview: Preview | None = None, wrong: Wrong | None = None
) -> Response:
    kind = preview.kind if preview else None
    return show(
        request,
        "add.html",
        422 if wrong else 200,
        typed=typed,
        filled=[key for key, text in typed.items() if text],
        fields=fields_for(kind, typed),
        usual=usual_values(request, kind),
        preview=preview,
        wrong=wrong,
        scopes=SCOPES,
    )
