"""Convert JSON, YAML and Jupyter notebooks to documents."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.decode import DecimalText, decode, mapping, parse_json_text, sequence, storable, words
from afresh.extract.markdown import cut, fenced, file_name, heading, joined, written
from afresh.extract.openapi import is_openapi, reference
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

MAX_OUTPUT_CHARS = 1_000
MAX_OUTPUT_LINES = 20
MAX_CELLS = 10_000

# Each match ends before the next image begins, so matching takes linear time.
_PICTURE = re.compile(r"!\[((?:[^\]!]|!(?!\[))*+)\]\((?:data|attachment):(?:[^)!]|!(?!\[))*+\)")
_DATA_SOURCE = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=\s]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}")
MAX_DATA_CHARS = 200_000  # data beyond this size is not useful as text
MAX_READ_CHARS = 10 * MAX_DATA_CHARS  # the same before long lines are shortened
MAX_STRING_CHARS = 2_000  # a longer string is an embedded file
KEPT = 200  # characters kept of such a string
MAX_DATA_DEPTH = 100
_DESCRIBES_API = re.compile(r"""^[ ]{0,8}["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)
_LONG_LINE = re.compile(r"^([^\n]{200})[^\n]{1800,}+", re.MULTILINE)
MOST_CHARS = 5_000_000  # of YAML
MAX_YAML_DEPTH = 60
MAX_ALIASES = 10_000
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def extract_notebook(body: Body) -> Document:
    value = parse_json_text(decode(body.data, body.charset))
    if not _is_notebook(value):
        raise ExtractError("not a Jupyter notebook: the file has no cells")
    return _notebook_document(body, value)


def _is_notebook(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("nbformat"), int) and _cells(value) is not None


def _notebook_document(body: Body, value: dict[str, Any]) -> Document:
    metadata, cells = mapping(value.get("metadata")), _cells(value) or []
    declared = words(mapping(metadata.get("language_info")).get("name"))
    declared = declared or words(mapping(metadata.get("kernelspec")).get("language")) or "python"
    language = declared.lower() if _LANGUAGE.fullmatch(declared) else ""
    blocks = [block for cell in cells[:MAX_CELLS] for block in _blocks(mapping(cell), language)]
    if len(cells) > MAX_CELLS:
        blocks.append(f"(cut after {MAX_CELLS:,} cells)")
    return written(body, joined(blocks), words(metadata.get("title")))


def _cells(value: dict[str, Any]) -> list[Any] | None:
    """Return the cells of a notebook (in old formats, those of its worksheets); None if it has none."""
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


def _output(raw: Any) -> str:
    """Return an output of a cell as Markdown, shortened; "" for images."""
    output = mapping(raw)
    data = mapping(output.get("data"))
    if any(kind.startswith("image/") for kind in data):
        return ""
    if output.get("output_type") in ("error", "pyerr"):
        return _output_block(f"{words(output.get('ename'))}: {words(output.get('evalue'))}")
    if "text/markdown" in data:
        return _without_pictures(_text(data["text/markdown"]))[:MAX_OUTPUT_CHARS]
    return _output_block(_text(data.get("text/plain", output.get("text"))))


def _without_pictures(markdown: str) -> str:
    return _DATA_SOURCE.sub("", _PICTURE.sub(r"\1", markdown))


def _output_block(text: str) -> str:
    clean = _COLOUR.sub("", text[: 2 * MAX_OUTPUT_CHARS]).strip("\n")
    kept = "\n".join(clean[:MAX_OUTPUT_CHARS].split("\n")[:MAX_OUTPUT_LINES])
    whole = len(kept) == len(clean) and len(text) <= 2 * MAX_OUTPUT_CHARS
    return fenced(kept if whole else f"{kept}\n…") if kept.strip() else ""


def _text(value: Any) -> str:
    """Return a text that a notebook stores as one string or as a list of lines."""
    if isinstance(value, list):
        return "".join([line for line in value if isinstance(line, str)])
    return value if isinstance(value, str) else ""


def extract_json(body: Body) -> Document:
    """Return JSON as an API reference if it is an OpenAPI description, else pretty-printed; keep invalid JSON as is."""
    text = decode(body.data, body.charset)
    try:
        value = parse_json_text(text)
    except ExtractError:
        return _as_code(body, text, "json")
    if _is_notebook(value):
        return _notebook_document(body, value)
    if is_openapi(value):
        return written(body, reference(value), _title(value))
    return _as_code(body, _Pretty().of(value), "json", _title(value))


def extract_yaml(body: Body) -> Document:
    """Return YAML as an API reference if it is an OpenAPI description, else unchanged."""
    text = decode(body.data, body.charset)
    if _DESCRIBES_API.search(text):
        with suppress(ExtractError):  # invalid or malicious YAML is kept as text
            value = parse_yaml(text)
            if is_openapi(value):
                return written(body, reference(value), _title(value))
    return _as_code(body, text, "yaml")


def _as_code(body: Body, text: str, language: str, title: str = "") -> Document:
    code = _LONG_LINE.sub(r"\1…", normalise(storable(text[:MAX_READ_CHARS])))
    if not code.strip():
        raise ExtractError(f"the {language.upper()} file is empty")
    note = f"(cut after {MAX_READ_CHARS:,} characters)" if len(text) > MAX_READ_CHARS else ""
    if len(code) > MAX_DATA_CHARS:
        code, _, note = cut(code, MAX_DATA_CHARS).rpartition("\n\n")
    named = title or file_name(body)
    return written(body, joined([heading(1, named), fenced(code, language), note]), named, links=())


def _title(value: Any) -> str:
    """Return the title of an API or schema, or the name of a package, that the data contains; else ""."""
    found = mapping(value)
    names = (mapping(found.get("info")).get("title"), found.get("title"), found.get("name"))
    return next((name.strip()[:200] for name in names if isinstance(name, str) and name.strip()), "")


class _Pretty:
    """Pretty-prints a value as at most `MAX_DATA_CHARS` characters, and shortens strings with embedded files."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._left = MAX_DATA_CHARS

    def of(self, value: Any) -> str:
        self._write(value, 0)
        return "".join(self._pieces)

    def _write(self, value: Any, depth: int) -> None:
        match value:
            case DecimalText():
                self._add(value)
            case str():
                self._add(self._quoted(value))
            case dict() | list() if depth > MAX_DATA_DEPTH:
                self._add('"…"')
            case dict():
                self._group("{}", depth, ((self._quoted(key) + ": ", each) for key, each in value.items()))
            case list():
                self._group("[]", depth, (("", each) for each in value))
            case _:
                self._add(json.dumps(value))

    def _group(self, marks: str, depth: int, items: Iterator[tuple[str, Any]]) -> None:
        self._add(marks[0])
        empty = True
        for key, each in takewhile(lambda _: self._left > 0, items):
            self._add(("" if empty else ",") + "\n" + "  " * (depth + 1) + key)
            self._write(each, depth + 1)
            empty = False
        self._add(marks[1] if empty else "\n" + "  " * depth + marks[1])

    def _quoted(self, text: str) -> str:
        long = len(text) > MAX_STRING_CHARS
        text_kept = f"{text[:KEPT]}… ({len(text):,} characters)" if long else text
        return json.dumps(text_kept, ensure_ascii=False)

    def _add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._left -= len(piece)


def parse_yaml(text: str) -> Any:
    """Return the value of the first YAML document in a text; aliases refer to one value instead of copies."""
    if len(text) > MOST_CHARS:
        raise ExtractError(f"the YAML is too long: more than {MOST_CHARS:,} characters")
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = yaml.parse(text, Loader=loader)
        first = next((event for event in events if isinstance(event, yaml.NodeEvent)), None)
        value = _YamlReader(events).read(first) if first is not None else None
        next(events, None)  # reads up to the end of the document, to detect errors there
    except (yaml.YAMLError, ValueError) as error:
        raise ExtractError(f"broken YAML ({' '.join(str(error).split())[:200]})") from error
    return value


class _YamlReader:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._named: dict[str, Any] = {}
        self._aliases = 0

    def read(self, event: Any, depth: int = 0) -> Any:
        value: Any
        match type(event).__name__:
            case "AliasEvent":
                self._aliases += 1
                # An alias may not refer to a value that contains it, which is not stored yet.
                if self._aliases > MAX_ALIASES or event.anchor not in self._named:
                    raise ExtractError("invalid YAML: an alias is undefined, or there are too many aliases")
                return self._named[event.anchor]
            case "ScalarEvent":
                value = event.value if event.style else _WORDS.get(event.value.lower(), event.value)
            case _ if depth >= MAX_YAML_DEPTH:
                raise ExtractError("the YAML is nested too deeply")
            case "SequenceStartEvent":
                value = [self.read(each, depth + 1) for each in self._inside()]
            case _:
                value = {}
                for each in self._inside():
                    key = _key(self.read(each, depth + 1))
                    _keep(value, key, self.read(next(self._events), depth + 1))
        if event.anchor:
            self._named[event.anchor] = value
        return value

    def _inside(self) -> Iterator[Any]:
        """Yield the first event of each item or key, until the current mapping or sequence ends."""
        return takewhile(lambda event: not type(event).__name__.endswith("EndEvent"), self._events)


def _keep(into: dict[str, Any], key: str, value: Any) -> None:
    """Set a key of `into`; for the merge key `<<`, add those keys of the mappings in `value` that `into` lacks."""
    if key != "<<":
        into[key] = value
        return
    for other in value if isinstance(value, list) else [value]:
        for name, each in other.items() if isinstance(other, dict) else ():
            into.setdefault(name, each)


def _key(value: Any) -> str:
    """Return a YAML key as a string; numbers and booleans are valid keys, too."""
    if isinstance(value, str):
        return value
    return "…" if isinstance(value, dict | list) else "null" if value is None else str(value).lower()
