"""Jupyter notebooks to a document: text as it is, code as code, short outputs, no pictures."""

import re
from collections.abc import Iterator
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.data.json_tree import mapping, parse_json, sequence, words
from afresh.extract.written import fenced, joined, written
from afresh.model import recipe
from afresh.model.fetch import Body, Document

LONGEST_OUTPUT = 1_000
MOST_LINES = 20
MOST_CELLS = 10_000

_PICTURE = re.compile(
    r"!\[((?:[^\]!]|!(?!\[))*+)\]\((?:data|attachment):(?:[^)!]|!(?!\[))*+\)"
)  # each ends where the next begins
_DATA_SOURCE = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=\s]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}")


class NotebookExtractor:
    """Reads Jupyter notebooks."""

    version = recipe.NOTEBOOK

    def extract(self, body: Body) -> Document:
        """The document of a notebook."""
        found = parse_json(body)
        if not is_notebook(found):
            raise ExtractError("not a Jupyter notebook: it has no cells")
        return notebook_document(body, found)


def is_notebook(value: Any) -> bool:
    """Whether a JSON value is a notebook."""
    return isinstance(value, dict) and isinstance(value.get("nbformat"), int) and _cells(value) is not None


def notebook_document(body: Body, value: dict[str, Any]) -> Document:
    """The document of a JSON value that is a notebook."""
    language = _language(mapping(value.get("metadata")))
    cells = _cells(value) or []
    blocks = [block for cell in cells[:MOST_CELLS] for block in _blocks(mapping(cell), language)]
    if len(cells) > MOST_CELLS:
        blocks.append(f"(cut after {MOST_CELLS:,} cells)")
    return written(body, joined(blocks), words(mapping(value.get("metadata")).get("title")))


def _cells(value: dict[str, Any]) -> list[Any] | None:
    """The cells, which older notebooks keep in worksheets."""
    if isinstance(value.get("cells"), list):
        return sequence(value["cells"])
    sheets = value.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in sheets for cell in sequence(mapping(sheet).get("cells"))]


def _language(metadata: dict[str, Any]) -> str:
    told = (
        words(mapping(metadata.get("language_info")).get("name"))
        or words(mapping(metadata.get("kernelspec")).get("language"))
        or "python"
    )
    return told.lower() if _LANGUAGE.fullmatch(told) else ""


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _text(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "markdown":
            yield _DATA_SOURCE.sub("", _PICTURE.sub(r"\1", source)).strip("\n")
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
    """What a cell printed or answered, as far as it is short text."""
    output = mapping(raw)
    data = mapping(output.get("data"))
    if any(kind.startswith("image/") for kind in data):
        return ""
    if output.get("output_type") in ("error", "pyerr"):
        return _shown(f"{words(output.get('ename'))}: {words(output.get('evalue'))}")
    if "text/markdown" in data:
        return _DATA_SOURCE.sub("", _PICTURE.sub(r"\1", _text(data["text/markdown"])))[:LONGEST_OUTPUT]
    return _shown(_text(data.get("text/plain", output.get("text"))))


def _shown(text: str) -> str:
    clean = _COLOUR.sub("", text[: 2 * LONGEST_OUTPUT]).strip("\n")
    lines = clean[:LONGEST_OUTPUT].split("\n")[:MOST_LINES]
    kept = "\n".join(lines)
    return (
        fenced(kept if len(kept) == len(clean) and len(text) <= 2 * LONGEST_OUTPUT else f"{kept}\n…")
        if kept.strip()
        else ""
    )


def _text(value: Any) -> str:
    """A text, which notebooks keep as one string or line by line."""
    if isinstance(value, list):
        return "".join([line for line in value if isinstance(line, str)])
    return value if isinstance(value, str) else ""
