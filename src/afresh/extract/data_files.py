"""Convert JSON, YAML and Jupyter notebooks to documents."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.decode import DecimalText, decode, mapping, parse_json_text, sequence, storable, words
from afresh.extract.markdown import cut, fenced, file_name, heading, joined, written
from afresh.extract.openapi import is_openapi, reference
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

LONGEST_OUTPUT = 1_000
MOST_LINES = 20
MOST_CELLS = 10_000

# Each match ends before the next image begins, so matching is linear.
_PICTURE = re.compile(r"!\[((?:[^\]!]|!(?!\[))*+)\]\((?:data|attachment):(?:[^)!]|!(?!\[))*+\)")
_DATA_SOURCE = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=\s]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}")


class NotebookExtractor:
    """Reads Jupyter notebooks."""

    version = recipe.NOTEBOOK

    def extract(self, body: Body) -> Document:
        """Return the document of a notebook."""
        found = parse_json_text(decode(body.data, body.charset))
        if not is_notebook(found):
            raise ExtractError("not a Jupyter notebook: it has no cells")
        return notebook_document(body, found)


def is_notebook(value: Any) -> bool:
    """Return whether a JSON value is a notebook."""
    return isinstance(value, dict) and isinstance(value.get("nbformat"), int) and _cells(value) is not None


def notebook_document(body: Body, value: dict[str, Any]) -> Document:
    """Return the document of a JSON value that is a notebook."""
    metadata, cells = mapping(value.get("metadata")), _cells(value) or []
    told = (
        words(mapping(metadata.get("language_info")).get("name"))
        or words(mapping(metadata.get("kernelspec")).get("language"))
        or "python"
    )
    language = told.lower() if _LANGUAGE.fullmatch(told) else ""
    blocks = [block for cell in cells[:MOST_CELLS] for block in _blocks(mapping(cell), language)]
    if len(cells) > MOST_CELLS:
        blocks.append(f"(cut after {MOST_CELLS:,} cells)")
    return written(body, joined(blocks), words(metadata.get("title")))


def _cells(value: dict[str, Any]) -> list[Any] | None:
    """Return the cells, which older notebooks keep in worksheets; None if there are none."""
    if isinstance(value.get("cells"), list):
        return sequence(value["cells"])
    sheets = value.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in sheets for cell in sequence(mapping(sheet).get("cells"))]


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _text(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "markdown":
            yield _without_pictures(source).strip("\n")
        case "heading":
            level = cell.get("level")
            yield f"{'#' * (level if isinstance(level, int) and 0 < level < 7 else 1)} {source}"
        case "code" if source.strip():
            yield fenced(source, language)
            yield from map(_output, sequence(cell.get("outputs"))[:50])
        case "raw" if source.strip():
            yield fenced(source)
        case _:
            pass


def _output(raw: Any) -> str:
    """Return the text output of a cell, shortened; "" for images."""
    output = mapping(raw)
    data = mapping(output.get("data"))
    if any(kind.startswith("image/") for kind in data):
        return ""
    if output.get("output_type") in ("error", "pyerr"):
        return _shown(f"{words(output.get('ename'))}: {words(output.get('evalue'))}")
    if "text/markdown" in data:
        return _without_pictures(_text(data["text/markdown"]))[:LONGEST_OUTPUT]
    return _shown(_text(data.get("text/plain", output.get("text"))))


def _without_pictures(markdown: str) -> str:
    return _DATA_SOURCE.sub("", _PICTURE.sub(r"\1", markdown))


def _shown(text: str) -> str:
    clean = _COLOUR.sub("", text[: 2 * LONGEST_OUTPUT]).strip("\n")
    kept = "\n".join(clean[:LONGEST_OUTPUT].split("\n")[:MOST_LINES])
    whole = len(kept) == len(clean) and len(text) <= 2 * LONGEST_OUTPUT
    return fenced(kept if whole else f"{kept}\n…") if kept.strip() else ""


def _text(value: Any) -> str:
    """Return a text that notebooks store as one string or as a list of lines."""
    if isinstance(value, list):
        return "".join([line for line in value if isinstance(line, str)])
    return value if isinstance(value, str) else ""


MOST_SHOWN = 200_000  # characters of data; more is not useful as text
MOST_LOOKED_AT = 10 * MOST_SHOWN  # before long lines are shortened
LONGEST_STRING = 2_000  # of one value; a longer one is an embedded file
KEPT = 200  # of such a value
MAX_DATA_DEPTH = 100

_DESCRIBES_API = re.compile(r"""^[ ]{0,8}["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)
_LONG_LINE = re.compile(r"^([^\n]{200})[^\n]{1800,}+", re.MULTILINE)


class JsonExtractor:
    """Reads JSON: pretty-printed, or as a reference if it is an OpenAPI description."""

    version = recipe.DATA

    def extract(self, body: Body) -> Document:
        """Return the document of a JSON body; invalid JSON is shown as it is."""
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
    """Reads YAML: as written, or as a reference if it is an OpenAPI description."""

    version = recipe.DATA

    def extract(self, body: Body) -> Document:
        """Return the document of a YAML body; only API descriptions are parsed."""
        text = decode(body.data, body.charset)
        if _DESCRIBES_API.search(text):
            value: Any = None
            with suppress(ExtractError):  # invalid or malicious YAML is shown as it is
                value = parse_yaml(text)
            if is_openapi(value):
                return written(body, reference(value), _title(value))
        return _as_code(body, text, "yaml")


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
    """Return the title of an API or a schema, or the name of a package; "" if there is none."""
    found = mapping(value)
    names = (mapping(found.get("info")).get("title"), found.get("title"), found.get("name"))
    return next((name.strip()[:200] for name in names if isinstance(name, str) and name.strip()), "")


class _Pretty:
    """Pretty-prints a value up to `MOST_SHOWN` characters; embedded files in strings are cut."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._left = MOST_SHOWN

    def of(self, value: Any) -> str:
        """Return the value as text."""
        self._write(value, 0)
        return "".join(self._pieces)

    def _write(self, value: Any, depth: int) -> None:
        match value:
            case DecimalText():
                self._say(value)
            case str():
                self._say(self._quoted(value))
            case dict() | list() if depth > MAX_DATA_DEPTH:
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


MOST_CHARS = 5_000_000
MAX_YAML_DEPTH = 60
MOST_ALIASES = 10_000
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def parse_yaml(text: str) -> Any:
    """Return the value of the first YAML document; aliases share their value instead of copying it."""
    if len(text) > MOST_CHARS:
        raise ExtractError(f"YAML of more than {MOST_CHARS:,} characters")
    import yaml

    building, loader = _Building(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            building.take(event)
    except (yaml.YAMLError, ValueError) as error:
        raise ExtractError(f"broken YAML ({' '.join(str(error).split())[:200]})") from error
    return building.root


@dataclass(slots=True)
class _Open:
    """An incomplete mapping or list."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    key: str | None = None


class _Building:
    """Builds a value from the events of the YAML parser."""

    def __init__(self) -> None:
        self.root: Any = None
        self._open: list[_Open] = []
        self._named: dict[str, Any] = {}
        self._aliases = 0

    def take(self, event: Any) -> None:
        """Process the next event of the parser."""
        match type(event).__name__:
            case "ScalarEvent":
                value = event.value if event.style else _WORDS.get(event.value.lower(), event.value)
                self._put(value, event.anchor)
            case "AliasEvent":
                self._aliases += 1
                # An alias to an enclosing value is not known yet.
                if self._aliases > MOST_ALIASES or event.anchor not in self._named:
                    raise ExtractError("YAML with aliases that lead nowhere or are too many")
                self._put(self._named[event.anchor], None)
            case "MappingStartEvent" | "SequenceStartEvent" as kind:
                if len(self._open) >= MAX_YAML_DEPTH:
                    raise ExtractError("YAML that is nested too deeply")
                self._open.append(_Open({} if kind == "MappingStartEvent" else [], event.anchor))
            case "MappingEndEvent" | "SequenceEndEvent":
                done = self._open.pop()
                self._put(done.value, done.anchor)
            case _:
                pass

    def _put(self, value: Any, anchor: str | None) -> None:
        if anchor:
            self._named[anchor] = value
        if not self._open:
            self.root = value
            return
        inside = self._open[-1]
        if isinstance(inside.value, list):
            inside.value.append(value)
        elif inside.key is None:
            inside.key = _key(value)
        else:
            _keep(inside.value, inside.key, value)
            inside.key = None


def _keep(into: dict[str, Any], key: str, value: Any) -> None:
    """Set a key; `<<` adds the missing keys of other mappings."""
    if key != "<<":
        into[key] = value
        return
    for other in value if isinstance(value, list) else [value]:
        for name, each in other.items() if isinstance(other, dict) else ():
            into.setdefault(name, each)


def _key(value: Any) -> str:
    """Return a key as a string: `200:` and `true:` are valid keys, too."""
    if isinstance(value, str):
        return value
    return "…" if isinstance(value, dict | list) else "null" if value is None else str(value).lower()
