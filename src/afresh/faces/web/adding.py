"""Adding a source: one field, a preview of what would be read, and the settings that matter."""

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from afresh.core.errors import AfreshError, Forbidden, RunBusy
from afresh.core.link_score import KeywordError
from afresh.core.masking import mask_secrets
from afresh.core.model import RunMode
from afresh.core.overview import Preview
from afresh.faces.http.reach import Reach, Reached
from afresh.faces.web.frame import PageRoute, form_of, show, to
from afresh.faces.web.settings import FIELDS, everywhere, read_settings

router = APIRouter(include_in_schema=False, route_class=PageRoute)
TARGET = "target: "  # how a sentence about the first field begins
SCOPES = {
    "subpages": "pages below the start address",
    "hostname": "pages on the same host",
    "domain": "pages anywhere on the same domain",
}


@router.get("/add")
async def ask(request: Request, reach: Reached, target: str = "") -> Response:
    """The form."""
    _check(request, reach)
    return _shown(request, {"target": target[:2_000]})


@router.post("/add")
async def add(request: Request, reach: Reached) -> Response:
    """Show what would be read, or read it."""
    _check(request, reach)
    form = {key: text.strip() for key, text in (await form_of(request)).items()}
    try:
        settings = read_settings({key: text for key, text in form.items() if key != "target"})
        if form.get("do") != "add":
            preview = await reach.kb.preview(form.get("target", ""), settings)
            return _shown(request, form, preview)
        name, version = form.get("name") or None, form.get("version") or None
        source, _ = await reach.kb.add(form.get("target", ""), name=name, version=version, settings=settings)
        run = await reach.kb.start(source, RunMode.CRAWL)
    except RunBusy as busy:
        return to(f"/runs/{busy.run}") if busy.run else to("/")
    except (AfreshError, KeywordError) as error:
        return _shown(request, form, wrong=mask_secrets(str(error)), status=422)
    return to(f"/runs/{run.run}")


def _check(request: Request, reach: Reach) -> None:
    if request.app.state.read_only:
        raise Forbidden("this server only reads: sources are added where it was started without --read-only")
    reach.allowed.check_write()
    reach.allowed.check_everywhere()


def _shown(
    request: Request,
    typed: Mapping[str, str],
    preview: Preview | None = None,
    wrong: str | None = None,
    status: int = 200,
) -> Response:
    usual = {field.key: everywhere(request, field) for field in FIELDS}
    return show(
        request,
        "add.html",
        status,
        typed=typed,
        filled=[key for key, text in typed.items() if text],
        fields=FIELDS,
        usual=usual,
        preview=preview,
        wrong=wrong and wrong.removeprefix(TARGET),
        wrong_target=bool(wrong and wrong.startswith(TARGET)),
        scopes=SCOPES,
    )
