"""JSON and YAML to a document: code under a title, or a reference where they describe an API."""

import json
import re
from itertools import takewhile
from typing import Any

from afresh.core import recipe
from afresh.core.errors import ExtractError
from afresh.core.looks import Body, Document
from afresh.core.text import normalise
from afresh.extractors.decode import decode
from afresh.extractors.json_tree import mapping, parse_json_text
from afresh.extractors.notebook import is_notebook, notebook_document
from afresh.extractors.openapi import is_openapi, reference
from afresh.extractors.written import cut, fenced, file_name, heading, joined, storable, written

MOST_SHOWN = 200_000  # characters of data: beyond, nobody reads it as a text
MOST_LOOKED_AT = 10 * MOST_SHOWN  # before long lines are made short
LONGEST_STRING = 2_000  # of one value: beyond, it is a file in disguise
KEPT = 200  # of such a value
DEEPEST = 100

_DESCRIBES_API = re.compile(r"""^[ ]{0,8}["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)
_LONG_LINE = re.compile(r"([^\n]{200})[^\n]{1800,}")


class JsonExtractor:
    """Reads JSON: pretty, and as a reference where it is an OpenAPI description."""

    version = recipe.DATA

    def extract(self, body: Body) -> Document:
        """The document of a JSON body; text that is no JSON after all is shown as it is."""
        text = decode(body.data, body.charset)
        try:
            value = parse_json_text(text)
        except ExtractError:
            return _as_code(body, text, "json")
        if is_notebook(value):
            return notebook_document(body, value)
        if is_openapi(value):
            return written(body, reference(value), _title(value))
        return _as_code(body, _pretty(value), "json", _title(value))


class YamlExtractor:
    """Reads YAML: as it is written, and as a reference where it is an OpenAPI description."""

    version = recipe.DATA

    def extract(self, body: Body) -> Document:
        """The document of a YAML body; it is parsed only if it describes an API."""
        text = decode(body.data, body.charset)
        if _DESCRIBES_API.search(text):
            value = _parsed(text)
            if is_openapi(value):
                return written(body, reference(value), _title(value))
        return _as_code(body, text, "yaml")


def _parsed(text: str) -> Any:
    """The value of a YAML text, None where it is broken or full of tricks: then it is shown as it is."""
    from afresh.extractors.yaml_tree import parse_yaml

    try:
        return parse_yaml(text)
    except ExtractError:
        return None


def _as_code(body: Body, text: str, language: str, title: str = "") -> Document:
    code = _LONG_LINE.sub(r"\1…", normalise(storable(text[:MOST_LOOKED_AT])))
    if not code.strip():
        raise ExtractError(f"{language.upper()} without anything in it")
    note = f"(cut after {MOST_LOOKED_AT:,} characters)" if len(text) > MOST_LOOKED_AT else ""
    if len(code) > MOST_SHOWN:
        code, _, note = cut(code, MOST_SHOWN).rpartition("\n\n")
    named = title or file_name(body)
    return written(body, joined([heading(1, named), fenced(code, language), note]), named, links=())


def _title(value: Any) -> str:
    """What data says it is: the title of an API or a schema, the name of a package."""
    found = mapping(value)
    names = (mapping(found.get("info")).get("title"), found.get("title"), found.get("name"))
    return next((name.strip()[:200] for name in names if isinstance(name, str) and name.strip()), "")


def _pretty(value: Any) -> str:
    """The value on many lines, written no further than it is shown."""
    pieces: list[str] = []
    size = 0
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(_Short().of(value, 0)):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_SHOWN:
            break
    return "".join(pieces)


class _Short:
    """Leaves out what would only fill a page: files in strings, nesting and lists without end."""

    def __init__(self) -> None:
        self._left = MOST_SHOWN  # each value takes a character or more

    def of(self, value: Any, depth: int) -> Any:
        """The value in short."""
        self._left -= 1
        if isinstance(value, str):
            return value if len(value) <= LONGEST_STRING else f"{value[:KEPT]}… ({len(value):,} characters)"
        if not isinstance(value, dict | list):
            return value
        if depth > DEEPEST:
            return "…"
        if isinstance(value, list):
            return [self.of(each, depth + 1) for each in takewhile(self._goes_on, value)]
        shown = takewhile(self._goes_on, value.items())
        return {key[:LONGEST_STRING]: self.of(each, depth + 1) for key, each in shown}

    def _goes_on(self, _: object) -> bool:
        return self._left > 0
