"""JSON and YAML to a document: code under a title, or a reference where they describe an API."""

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.data.json_tree import Number, mapping, parse_json_text
from afresh.extract.data.notebook import is_notebook, notebook_document
from afresh.extract.data.openapi import is_openapi, reference
from afresh.extract.decode import decode, storable
from afresh.extract.written import cut, fenced, file_name, heading, joined, written
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

MOST_SHOWN = 200_000  # characters of data: beyond, nobody reads it as a text
MOST_LOOKED_AT = 10 * MOST_SHOWN  # before long lines are made short
LONGEST_STRING = 2_000  # of one value: beyond, it is a file in disguise
KEPT = 200  # of such a value
DEEPEST = 100

_DESCRIBES_API = re.compile(r"""^[ ]{0,8}["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)
_LONG_LINE = re.compile(r"^([^\n]{200})[^\n]{1800,}+", re.MULTILINE)


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
        return _as_code(body, _Pretty().of(value), "json", _title(value))


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
    from afresh.extract.data.yaml_tree import parse_yaml

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


class _Pretty:
    """Writes a value on many lines, no further than it is shown; files in strings are cut."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._left = MOST_SHOWN

    def of(self, value: Any) -> str:
        """The value as text."""
        self._write(value, 0)
        return "".join(self._pieces)

    def _write(self, value: Any, depth: int) -> None:
        match value:
            case Number():
                self._say(value)
            case str():
                self._say(self._quoted(value))
            case dict() | list() if depth > DEEPEST:
                self._say('"…"')
            case dict():
                self._group("{}", depth, ((self._quoted(key) + ": ", each) for key, each in value.items()))
            case list():
                self._group("[]", depth, (("", each) for each in value))
            case _:
                self._say(json.dumps(value))

    def _group(self, marks: str, depth: int, items: Iterator[tuple[str, Any]]) -> None:
        self._say(marks[0])
        empty = True
        for key, each in takewhile(lambda _: self._left > 0, items):
            self._say(("" if empty else ",") + "\n" + "  " * (depth + 1) + key)
            self._write(each, depth + 1)
            empty = False
        self._say(marks[1] if empty else "\n" + "  " * depth + marks[1])

    def _quoted(self, text: str) -> str:
        long = len(text) > LONGEST_STRING
        shown = f"{text[:KEPT]}… ({len(text):,} characters)" if long else text
        return json.dumps(shown, ensure_ascii=False)

    def _say(self, piece: str) -> None:
        self._pieces.append(piece)
        self._left -= len(piece)
