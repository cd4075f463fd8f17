"""Web forms to add a source and to change its settings, with their errors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from afresh.errors import AlreadyExists, ConfigError, Forbidden, RunBusy, SourceError, UsageError
from afresh.links.score import KeywordError, parse_keywords
from afresh.model.overview import Preview
from afresh.model.records import RunMode, Source
from afresh.server.request_checks import is_from_other_site
from afresh.server.requests import Context, OneSource, RequestContext
from afresh.server.web.frame import Filter, PageRoute, form_of, redirect, show
from afresh.server.web.sources import show_tab
from afresh.text.redact import mask_secrets

router = APIRouter(include_in_schema=False, route_class=PageRoute)

INPUT_ERRORS = (UsageError, ConfigError, SourceError, KeywordError)
ON_THE_WEB = ("web", "links")
RENDER_MODES = ("auto", "never", "always")
SCOPES = {"subpages": "below the start URL", "hostname": "on the same host", "domain": "on the same domain"}


class Field(NamedTuple):
    key: str
    title: str
    help: str
    kind: str = "text"  # text, number, decimal, lines, choice, keywords
    section: str = ""  # of the settings file; its value is the default
    kinds: tuple[str, ...] = ()  # of sources with this setting; empty: all
    choices: tuple[str, ...] = ()


FIELDS = (
    Field("scope", "Scope", "Which linked pages to include.", "choice", "crawl", ("web",), tuple(SCOPES)),
    Field("include", "Include", "URL patterns such as /guide/*, one per line. Empty: everything in scope.", "lines"),
    Field("exclude", "Exclude", "URL patterns, one per line.", "lines"),
    Field("max_pages", "Maximum pages", "Further pages are skipped.", "number", "crawl"),
    Field("max_depth", "Maximum depth", "Number of links to follow from the start URL.", "number", "crawl"),
    Field("concurrency", "Concurrent requests", "Per host.", "number", "crawl", ON_THE_WEB),
    Field("delay_seconds", "Delay between requests", "Seconds, per host.", "decimal", "crawl", ON_THE_WEB),
    Field("render", "Render with a browser", "For JavaScript pages.", "choice", "crawl", ON_THE_WEB, RENDER_MODES),
    Field("keywords", "Keywords", "To score links, with optional weights: budget, contact:0.5.", "keywords"),
    Field("schedule", "Automatic refresh", "every 6h, a cron line such as 0 3 * * *, or auto.", section="policy"),
    Field("time_zone", "Time zone", "Of the schedule, such as Europe/Madrid.", section="policy"),
)


class FieldProblem(NamedTuple):
    text: str
    field: str | None = None


def problem_of(error: Exception) -> FieldProblem:
    """Return the message of an error, with the title of the form field that caused it, and the key of this field."""
    message = mask_secrets(str(error))
    key, _, rest = message.partition(": ")
    titles = {field.key: field.title for field in FIELDS}
    if isinstance(error, KeywordError):
        return FieldProblem(f"Keywords: {message}", "keywords")
    if rest and key in titles:
        return FieldProblem(f"{titles[key]}: {rest}", key)
    return FieldProblem(rest, key) if rest and key == "target" else FieldProblem(message)


def fields_for(kind: str | None, typed: Mapping[str, str]) -> Sequence[Field]:
    """Return the form fields for a kind of source (None: not known yet), and all other fields that were filled in."""
    return [field for field in FIELDS if kind is None or not field.kinds or kind in field.kinds or typed.get(field.key)]


def default_values(request: Request, kind: str | None) -> dict[str, str]:
    config, found = request.app.state.config, {}
    for field in FIELDS:
        value = getattr(getattr(config, field.section), field.key) if field.section else ""
        found[field.key] = "none" if value is None else str(value)
    return found if kind in (None, "web") else {**found, "max_pages": "all", "max_depth": "any"}


def typed_of(source: Source) -> dict[str, str]:
    own = {**source.policy, **source.rules}
    return {field.key: _text(own.get(field.key)) for field in FIELDS}


def read_settings(typed: Mapping[str, str]) -> dict[str, object]:
    """Convert typed texts to values of settings; invalid texts stay texts, so that the settings report the error."""
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
                word if weight == 1 and ":" not in word else f"{word}:{weight:g}" for word, weight in value.items()
            )
    return str(value)


@router.get("/sources/{number}/settings")
async def ask(ctx: Context, source: OneSource, saved: Filter = None) -> Response:
    return await _show_settings(ctx, source, typed_of(source), saved=bool(saved))


@router.post("/sources/{number}/settings")
async def save(ctx: Context, source: OneSource) -> Response:
    """Save the typed settings; an empty field resets a setting, a missing one keeps it."""
    form = await form_of(ctx.request)
    typed = {field.key: form[field.key].strip() for field in FIELDS if field.key in form}
    reset = [key for key, text in typed.items() if not text]
    try:
        await ctx.kb.sources.change(source, settings=read_settings(typed), reset=reset)
    except INPUT_ERRORS as error:
        return await _show_settings(ctx, source, typed, wrong=problem_of(error))
    return redirect(f"/sources/{source.id}/settings?saved=1")


@router.post("/sources/{number}/remove")
async def remove(ctx: Context, source: OneSource) -> Response:
    if (await form_of(ctx.request)).get("name", "").strip() != source.label:
        wrong = FieldProblem(f"Nothing was deleted. Type {source.label} to confirm.", "name")
        return await _show_settings(ctx, source, typed_of(source), wrong=wrong)
    await ctx.kb.sources.remove(source.label)
    return redirect(f"/?{urlencode({'removed': source.label})}")


async def _show_settings(
    ctx: RequestContext,
    source: Source,
    typed: Mapping[str, str],
    *,
    saved: bool = False,
    wrong: FieldProblem | None = None,
) -> Response:
    fields, defaults = fields_for(source.kind, typed), default_values(ctx.request, source.kind)
    given = {"fields": fields, "typed": typed, "defaults": defaults, "saved": saved, "wrong": wrong}
    answer = await show_tab(ctx, source, "settings", {}, **given)
    answer.status_code = 422 if wrong else 200
    return answer


@router.get("/add")
async def ask_new(ctx: Context) -> Response:
    """Show the form for a new source, with a preview of the typed target unless another site caused the request."""
    _check(ctx)
    form = {key: text.strip() for key, text in ctx.request.query_params.items()}
    if form.get("do") != "preview" or is_from_other_site(ctx.request.scope):
        return _show_add_form(ctx, form)
    try:
        preview = await ctx.kb.sources.preview(form.get("target", ""), read_settings(form))
    except INPUT_ERRORS as error:
        return _show_add_form(ctx, form, wrong=problem_of(error))
    return _show_add_form(ctx, form, preview)


@router.post("/add")
async def add(ctx: Context) -> Response:
    _check(ctx)
    form = {key: text.strip() for key, text in (await form_of(ctx.request)).items()}
    if form.get("do") != "add":
        return redirect(f"/add?{urlencode({**form, 'do': 'preview'})}")
    try:
        source, _ = await ctx.kb.sources.add(
            form.get("target", ""),
            name=form.get("name") or None,
            version=form.get("version") or None,
            settings=read_settings(form),
            keep=False,
            again=form.get("again") == "yes",
        )
        run = await ctx.kb.runs.start(source, RunMode.CRAWL)
    except RunBusy as busy:
        return redirect(f"/runs/{busy.run}" if busy.run else "/")
    except AlreadyExists as known:
        message = f'The source "{known.label}" already has this URL. Refresh it, or tick the box to add a second copy.'
        return _show_add_form(ctx, form, wrong=FieldProblem(message, "again"))
    except INPUT_ERRORS as error:
        return _show_add_form(ctx, form, wrong=problem_of(error))
    return redirect(f"/runs/{run.run}")


def _check(ctx: RequestContext) -> None:
    if ctx.request.app.state.read_only:
        raise Forbidden("this server is read-only; start it without --read-only to add sources")
    ctx.allowed.check_write()
    ctx.allowed.check_everywhere()


def _show_add_form(
    ctx: RequestContext, typed: Mapping[str, str], preview: Preview | None = None, wrong: FieldProblem | None = None
) -> Response:
    kind = preview.kind if preview else None
    return show(
        ctx.request,
        "add.html",
        422 if wrong else 200,
        typed=typed,
        filled=[key for key, text in typed.items() if text],
        fields=fields_for(kind, typed),
        defaults=default_values(ctx.request, kind),
        preview=preview,
        wrong=wrong,
        scopes=SCOPES,
    )
