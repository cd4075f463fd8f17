"""Web forms to add a source and to change its settings, with their errors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from afresh.errors import AlreadyExists, ConfigError, Forbidden, RunBusy, SourceError, UsageError
from afresh.links.score import KeywordError, parse_keywords
from afresh.model.overview import Preview
from afresh.model.records import RunMode, Source
from afresh.server.request_checks import is_led_from_elsewhere
from afresh.server.requests import Id, Reached, RequestContext
from afresh.server.web.frame import Filter, PageRoute, form_of, show, to
from afresh.server.web.sources import show_tab
from afresh.text.redact import mask_secrets

router = APIRouter(include_in_schema=False, route_class=PageRoute)

WRONG = (UsageError, ConfigError, SourceError, KeywordError)  # errors in what was typed
TARGET = "target"  # the form field of the new target
ON_THE_WEB = ("web", "links")
EMPTY: Mapping[str, str] = {}


class Field(NamedTuple):
    """One setting in a form."""

    key: str
    title: str
    help: str
    kind: str = "text"  # text, number, decimal, lines, choice, keywords
    choices: tuple[str, ...] = ()
    section: str = ""  # of the settings file, which has the default
    kinds: tuple[str, ...] = ()  # of sources with this setting; empty: all


FIELDS = (
    Field(
        "scope",
        "Scope",
        "Which links belong: below the start address, on its host, or on its domain.",
        "choice",
        ("subpages", "hostname", "domain"),
        "crawl",
        ("web",),
    ),
    Field(
        "include",
        "Only these",
        "Patterns such as /guide/*, one a line. Nothing: all that the scope allows.",
        "lines",
    ),
    Field("exclude", "Never these", "Patterns, one a line.", "lines"),
    Field("max_pages", "Most pages", "More are left out.", "number", (), "crawl"),
    Field("max_depth", "Deepest link", "Links to follow from the start address.", "number", (), "crawl"),
    Field("concurrency", "At a time", "Requests at a time to one host.", "number", (), "crawl", ON_THE_WEB),
    Field(
        "delay_seconds",
        "Pause",
        "Seconds after an answer before the next request to its host.",
        "decimal",
        (),
        "crawl",
        ON_THE_WEB,
    ),
    Field(
        "render",
        "Browser",
        "Whether pages are shown in a browser before they are read.",
        "choice",
        ("auto", "never", "always"),
        "crawl",
        ON_THE_WEB,
    ),
    Field("keywords", "Keywords", "What links are scored by, with weights: budget, contact:0.5.", "keywords"),
    Field(
        "schedule",
        "Schedule",
        "When it is looked at by itself: every 6h, a cron line such as 0 3 * * *, or auto.",
        section="policy",
    ),
    Field("time_zone", "Time zone", "Of the schedule, such as Europe/Madrid.", section="policy"),
)


class FieldProblem(NamedTuple):
    """An error message, and the field that it belongs to if there is one."""

    text: str
    field: str | None = None


def wrong_with(error: Exception) -> FieldProblem:
    """Return the message of an error with field names as the form shows them."""
    told = mask_secrets(str(error))
    key, colon, rest = told.partition(": ")
    titles = {field.key: field.title for field in FIELDS}
    if isinstance(error, KeywordError):
        return FieldProblem(f"Keywords: {told}", "keywords")
    if colon and key in titles:
        return FieldProblem(f"{titles[key]}: {rest}", key)
    return FieldProblem(rest, TARGET) if colon and key == TARGET else FieldProblem(told)


def fields_for(kind: str | None, typed: Mapping[str, str] = EMPTY) -> Sequence[Field]:
    """Return the settings of a kind of source (None: not known yet), and those that were typed."""
    meant = [field for field in FIELDS if kind is None or not field.kinds or kind in field.kinds]
    return [field for field in FIELDS if field in meant or typed.get(field.key)]


def usual_values(request: Request, kind: str | None) -> dict[str, str]:
    """Return the defaults for sources of a kind, by field."""
    config, found = request.app.state.config, {}
    for field in FIELDS:
        value = getattr(getattr(config, field.section), field.key) if field.section else ""
        found[field.key] = "none" if value is None else str(value)
    return found if kind in (None, "web") else {**found, "max_pages": "all", "max_depth": "any"}


def typed_of(source: Source) -> dict[str, str]:
    own = {**source.policy, **source.rules}
    return {field.key: _text(own.get(field.key)) for field in FIELDS}


def read_settings(typed: Mapping[str, str]) -> dict[str, object]:
    """Return the typed texts as values; invalid texts stay, and the settings report them."""
    fields = {field.key: field for field in FIELDS}
    return {key: _value(fields[key], text) for key, text in typed.items() if text and key in fields}


def _value(field: Field, text: str) -> object:
    match field.kind:
        case "number":
            return int(text) if text.isdecimal() and len(text) < 16 else text
        case "decimal":
            try:
                return float(text)
            except ValueError:
                return text
        case "lines":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "keywords":
            return parse_keywords(text)
    return text


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case list() | tuple():
            return "\n".join(str(each) for each in value)
        case dict():
            return ", ".join(  # with a colon in a keyword, the text after the last colon would be its weight
                word if weight == 1 and ":" not in word else f"{word}:{weight:g}"
                for word, weight in value.items()
            )
    return str(value)


NAME = "name"  # the form field to confirm a deletion


@router.get("/sources/{number}/settings")
async def ask(reach: Reached, number: Id, saved: Filter = "") -> Response:
    source = await reach.source(number)
    return await _shown(reach, source, typed_of(source), saved=bool(saved))


@router.post("/sources/{number}/settings")
async def save(reach: Reached, number: Id) -> Response:
    """Save the typed settings; an empty field resets a setting, a missing one keeps it."""
    source = await reach.source(number)
    form = await form_of(reach.request)
    typed = {field.key: form[field.key].strip() for field in FIELDS if field.key in form}
    try:
        await reach.kb.sources.change_settings(
            source, read_settings(typed), [key for key, text in typed.items() if not text]
        )
    except WRONG as error:
        return await _shown(reach, source, typed, wrong=wrong_with(error))
    return to(f"/sources/{number}/settings?saved=1")


@router.post("/sources/{number}/remove")
async def remove(reach: Reached, number: Id) -> Response:
    source = await reach.source(number)
    if (await form_of(reach.request)).get(NAME, "").strip() != source.label:
        wrong = FieldProblem(f"Type {source.label} to delete it with its pages: nothing was deleted.", NAME)
        return await _shown(reach, source, typed_of(source), wrong=wrong)
    await reach.kb.sources.remove(source.label)
    return to(f"/?{urlencode({'removed': source.label})}")


async def _shown(
    reach: RequestContext,
    source: Source,
    typed: Mapping[str, str],
    *,
    saved: bool = False,
    wrong: FieldProblem | None = None,
) -> Response:
    fields, usual = fields_for(source.kind, typed), usual_values(reach.request, source.kind)
    given = {"fields": fields, "typed": typed, "usual": usual, "saved": saved, "wrong": wrong}
    answer = await show_tab(reach, source, "settings", {}, **given)
    answer.status_code = 422 if wrong else 200
    return answer


SCOPES = {
    "subpages": "pages below the start address",
    "hostname": "pages on the same host",
    "domain": "pages anywhere on the same domain",
}


@router.get("/add")
async def ask_new(reach: Reached) -> Response:
    """Show the form and a preview of its target; requests from other sites get no preview."""
    _check(reach)
    form = {key: text.strip() for key, text in reach.request.query_params.items()}
    if form.get("do") != "preview" or is_led_from_elsewhere(reach.request.scope):
        return _show_add_form(reach, form)
    try:
        preview = await reach.kb.sources.preview(form.get("target", ""), read_settings(form))
    except WRONG as error:
        return _show_add_form(reach, form, wrong=wrong_with(error))
    return _show_add_form(reach, form, preview)


@router.post("/add")
async def add(reach: Reached) -> Response:
    """Add the source and queue its crawl."""
    _check(reach)
    form = {key: text.strip() for key, text in (await form_of(reach.request)).items()}
    if form.get("do") != "add":
        return to(f"/add?{urlencode({**form, 'do': 'preview'})}")
    try:
        source, _ = await reach.kb.sources.add(
            form.get("target", ""),
            name=form.get("name") or None,
            version=form.get("version") or None,
            settings=read_settings(form),
            keep=False,
            again=form.get("again") == "yes",
        )
        run = await reach.kb.runs.start(source, RunMode.CRAWL)
    except RunBusy as busy:
        return to(f"/runs/{busy.run}") if busy.run else to("/")
    except AlreadyExists as kept:
        told = f"{kept.label} has this URL already: refresh that source, or tick the box to keep it twice"
        return _show_add_form(reach, form, wrong=FieldProblem(told, "again"))
    except WRONG as error:
        return _show_add_form(reach, form, wrong=wrong_with(error))
    return to(f"/runs/{run.run}")


def _check(reach: RequestContext) -> None:
    if reach.request.app.state.read_only:
        raise Forbidden("this server only reads: sources are added where it was started without --read-only")
    reach.allowed.check_write()
    reach.allowed.check_everywhere()


def _show_add_form(
    reach: RequestContext,
    typed: Mapping[str, str],
    preview: Preview | None = None,
    wrong: FieldProblem | None = None,
) -> Response:
    kind = preview.kind if preview else None
    return show(
        reach.request,
        "add.html",
        422 if wrong else 200,
        typed=typed,
        filled=[key for key, text in typed.items() if text],
        fields=fields_for(kind, typed),
        usual=usual_values(reach.request, kind),
        preview=preview,
        wrong=wrong,
        scopes=SCOPES,
    )
