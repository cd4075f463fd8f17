"""The settings of a source: what differs from those of all, in a form."""

from collections.abc import Mapping
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from afresh.core.errors import AfreshError
from afresh.core.link_score import KeywordError, parse_keywords
from afresh.core.masking import mask_secrets
from afresh.core.model import Source
from afresh.faces.http.parts import Id
from afresh.faces.http.reach import Reach, Reached
from afresh.faces.web.frame import PageRoute, form_of, to
from afresh.faces.web.listing import Filter
from afresh.faces.web.sources import show_tab

router = APIRouter(include_in_schema=False, route_class=PageRoute)


class Field(NamedTuple):
    """One setting as a form asks for it."""

    key: str
    title: str
    help: str
    kind: str = "text"  # text, number, decimal, lines, choice, keywords
    choices: tuple[str, ...] = ()
    everywhere: str = ""  # where the setting of all stands, by section and key


FIELDS = (
    Field(
        "scope",
        "Scope",
        "Which links belong: below the start address, on its host, or on its domain.",
        "choice",
        ("subpages", "hostname", "domain"),
        "crawl.scope",
    ),
    Field(
        "include",
        "Only these",
        "Patterns such as /guide/*, one a line. Nothing: all that the scope allows.",
        "lines",
    ),
    Field("exclude", "Never these", "Patterns, one a line.", "lines"),
    Field("max_pages", "Most pages", "More are left out.", "number", (), "crawl.max_pages"),
    Field(
        "max_depth",
        "Deepest link",
        "Links to follow from the start address.",
        "number",
        (),
        "crawl.max_depth",
    ),
    Field("concurrency", "At a time", "Requests at a time to one host.", "number", (), "crawl.concurrency"),
    Field(
        "delay_seconds",
        "Pause",
        "Seconds after an answer before the next request to its host.",
        "decimal",
        (),
        "crawl.delay_seconds",
    ),
    Field(
        "render",
        "Browser",
        "Whether pages are shown in a browser before they are read.",
        "choice",
        ("auto", "never", "always"),
        "crawl.render",
    ),
    Field("keywords", "Keywords", "What links are scored by, with weights: budget, contact:0.5.", "keywords"),
    Field(
        "schedule",
        "Schedule",
        "When it is looked at by itself: every 6h, a cron line such as 0 3 * * *, or auto.",
    ),
    Field("time_zone", "Time zone", "Of the schedule, such as Europe/Madrid."),
)


@router.get("/sources/{number}/settings")
async def ask(request: Request, reach: Reached, number: Id, saved: Filter = "") -> Response:
    """The form."""
    source = await reach.source(number)
    return await _shown(request, reach, source, typed_of(source), saved=bool(saved))


@router.post("/sources/{number}/settings")
async def save(request: Request, reach: Reached, number: Id) -> Response:
    """Take what was typed; a field that is empty is as everywhere again."""
    source = await reach.source(number)
    form = await form_of(request)
    typed = {field.key: form.get(field.key, "").strip() for field in FIELDS}
    try:
        await reach.kb.change_settings(
            source, read_settings(typed), [key for key, text in typed.items() if not text]
        )
    except (AfreshError, KeywordError) as error:
        return await _shown(request, reach, source, typed, wrong=mask_secrets(str(error)), status=422)
    return to(f"/sources/{number}/settings?saved=1")


async def _shown(
    request: Request,
    reach: Reach,
    source: Source,
    typed: Mapping[str, str],
    *,
    saved: bool = False,
    wrong: str | None = None,
    status: int = 200,
) -> Response:
    usual = {field.key: everywhere(request, field) for field in FIELDS}
    given = {"fields": FIELDS, "typed": typed, "usual": usual, "saved": saved, "wrong": wrong}
    answer = await show_tab(request, reach, source, "settings", {}, **given)
    answer.status_code = status
    return answer


def everywhere(request: Request, field: Field) -> str:
    """What holds for all sources that say nothing else."""
    if not field.everywhere:
        return ""
    section, _, key = field.everywhere.partition(".")
    return str(getattr(getattr(request.app.state.config, section), key))


def typed_of(source: Source) -> dict[str, str]:
    """The settings of a source as they are typed."""
    own = {**source.policy, **source.rules}
    return {field.key: _text(own.get(field.key)) for field in FIELDS}


def read_settings(typed: Mapping[str, str]) -> dict[str, object]:
    """What was typed, as the settings take it; what is wrong they say themselves."""
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
            return ", ".join(_weighed(word, weight) for word, weight in value.items())
    return str(value)


def _weighed(word: str, weight: float) -> str:
    """A keyword as it is typed; where one holds a colon, what follows the last would be its weight."""
    return word if weight == 1 and ":" not in word else f"{word}:{weight:g}"
