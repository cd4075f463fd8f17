"""Settings of a source as a form asks for them, and what is wrong with what was typed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastapi import Request

from afresh.errors import ConfigError, SourceError, UsageError
from afresh.links.score import KeywordError, parse_keywords
from afresh.model.records import Source
from afresh.text.redact import mask_secrets

WRONG = (UsageError, ConfigError, SourceError, KeywordError)  # with what somebody typed
TARGET = "target"  # the field of what to add
ON_THE_WEB = ("web", "links")
EMPTY: Mapping[str, str] = {}


class Field(NamedTuple):
    """One setting as a form asks for it."""

    key: str
    title: str
    help: str
    kind: str = "text"  # text, number, decimal, lines, choice, keywords
    choices: tuple[str, ...] = ()
    everywhere: str = ""  # where the setting of all stands, by section and key
    kinds: tuple[str, ...] = ()  # of sources that it is for; none: for all


FIELDS = (
    Field(
        "scope",
        "Scope",
        "Which links belong: below the start address, on its host, or on its domain.",
        "choice",
        ("subpages", "hostname", "domain"),
        "crawl.scope",
        ("web",),
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
    Field(
        "concurrency",
        "At a time",
        "Requests at a time to one host.",
        "number",
        (),
        "crawl.concurrency",
        ON_THE_WEB,
    ),
    Field(
        "delay_seconds",
        "Pause",
        "Seconds after an answer before the next request to its host.",
        "decimal",
        (),
        "crawl.delay_seconds",
        ON_THE_WEB,
    ),
    Field(
        "render",
        "Browser",
        "Whether pages are shown in a browser before they are read.",
        "choice",
        ("auto", "never", "always"),
        "crawl.render",
        ON_THE_WEB,
    ),
    Field("keywords", "Keywords", "What links are scored by, with weights: budget, contact:0.5.", "keywords"),
    Field(
        "schedule",
        "Schedule",
        "When it is looked at by itself: every 6h, a cron line such as 0 3 * * *, or auto.",
        everywhere="policy.schedule",
    ),
    Field(
        "time_zone",
        "Time zone",
        "Of the schedule, such as Europe/Madrid.",
        everywhere="policy.time_zone",
    ),
)


class Wrong(NamedTuple):
    """What is wrong, as people are told it, and with which field if it is one."""

    text: str
    field: str | None = None


def wrong_with(error: Exception) -> Wrong:
    """What an error says of what was typed: fields by the names that the form has for them."""
    told = mask_secrets(str(error))
    key, colon, rest = told.partition(": ")
    titles = {field.key: field.title for field in FIELDS}
    if isinstance(error, KeywordError):
        return Wrong(f"Keywords: {told}", "keywords")
    if colon and key in titles:
        return Wrong(f"{titles[key]}: {rest}", key)
    return Wrong(rest, TARGET) if colon and key == TARGET else Wrong(told)


def fields_for(kind: str | None, typed: Mapping[str, str] = EMPTY) -> Sequence[Field]:
    """The settings that mean something for a kind of source (None: it is not known yet), or were typed."""
    meant = [field for field in FIELDS if kind is None or not field.kinds or kind in field.kinds]
    return [field for field in FIELDS if field in meant or typed.get(field.key)]


def usual_values(request: Request, kind: str | None) -> dict[str, str]:
    """What holds for all sources of a kind that say nothing else, by field."""
    found = {field.key: _everywhere(request, field) for field in FIELDS}
    return found if kind in (None, "web") else {**found, "max_pages": "all", "max_depth": "any"}


def _everywhere(request: Request, field: Field) -> str:
    if not field.everywhere:
        return ""
    section, _, key = field.everywhere.partition(".")
    found = getattr(getattr(request.app.state.config, section), key)
    return "none" if found is None else str(found)


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
