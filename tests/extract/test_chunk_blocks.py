"""The line scanner sees what a full Markdown parser sees: sections, code blocks, tables."""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pyromark
import pytest

from afresh.extract.chunk.blocks import scan
from afresh.extract.chunk.markdown import chunk as chunk_document
from afresh.model.fetch import Document

PARSER = pyromark.Markdown(
    options=pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
    | pyromark.Options.ENABLE_HEADING_ATTRIBUTES
)
# The scanner knows no link definitions; each of these headings holds or follows one.
KNOWN_DIFFERENCES = 3


def _name(tag: Any) -> str:
    return tag if isinstance(tag, str) else str(next(iter(tag)))


def headings(text: str) -> list[tuple[int, str]]:
    """Level and title of the headings that open sections, by the full parser."""
    found: list[tuple[int, str]] = []
    title: list[str] | None = None
    depth = 0
    events: Any = PARSER.events(text)
    for event in events:
        if isinstance(event, str):
            if title is not None:
                title.append(" ")
        elif "Start" in event:
            depth += _name(event["Start"]) in ("BlockQuote", "List")
            if _name(event["Start"]) == "Heading" and not depth:
                title = []
        elif "End" in event:
            depth -= _name(event["End"]) in ("BlockQuote", "List")
            if _name(event["End"]) == "Heading" and title is not None:
                found.append((int(event["End"]["Heading"][1:]), " ".join("".join(title).split())))
                title = None
        elif title is not None:
            title.append(str(event.get("Text") or event.get("Code") or ""))
    return found


def fenced_blocks(text: str) -> list[str]:
    """The fenced code blocks, by the full parser."""
    data = text.encode()
    return [
        data[span["start"] : span["end"]].decode()
        for event, span in PARSER.events_with_range(text)
        if isinstance(event, dict) and "Fenced" in str(event.get("Start"))
    ]


def scanned(text: str) -> list[tuple[int, str]]:
    return [(block.level, block.title) for block in scan(text) if block.level]


def chunked(text: str) -> list[str]:
    document = Document(title="", markdown=text, content_hash="", links_hash="")
    return [chunk.content for chunk in chunk_document(document)]


def test_headings_of_the_commonmark_examples(shared: Path) -> None:
    with gzip.open(shared / "data/naughty/commonmark_examples.jsonl.gz", "rt") as lines:
        examples = [json.loads(line)["markdown"] for line in lines]
    assert sum(len(headings(text)) for text in examples) > 50
    assert sum(scanned(text) != headings(text) for text in examples) <= KNOWN_DIFFERENCES


def test_headings_and_code_of_real_documentation(shared: Path) -> None:
    fences = 0
    with tarfile.open(shared / "data/docs-refresh/fastapi.tar.xz") as tar:
        for member in tar:
            if not (member.name.lstrip("./").startswith("s4/") and (file := tar.extractfile(member))):
                continue
            text = file.read().decode()
            assert scanned(text) == headings(text), member.name
            contents = chunked(text)
            for block in fenced_blocks(text):
                fences += 1
                assert len(block) > 2000 or any(block.strip() in content for content in contents), block
    assert fences == 400


@pytest.mark.parametrize(
    "text",
    [
        "Short.\n\nTitle *x*\n===\n\ntext",
        "Two\nlines\n---\n",
        "- item\n---\ntext",
        "# A\n    code\nB\n---\n",
        "- # in an item\n- b\n\n# A",
        "> # in a quote\n\n# A",
        "```\n# x\n\n    ```\n# y\n```\n# A",
        "- ```\n  # x\n# A",
        "> ```\n> # x\n\n# A",
        "text\n1986. A year\n# A",
        "| a |\n| - |\n| b |\n# A",
        "<div>\n# x\n\n# A",
        "<!-- x --> y\n# A",
        "####### seven\n\n#hash\n\n# A #",
        "***\n# A\n***",
        "\\# no\n\n# A \\# b",
        "#\n\n# A",
    ],
)
def test_headings_of_hard_texts(text: str) -> None:
    assert scanned(text) == headings(text)


def test_blocks_cover_the_text() -> None:
    text = "intro\n\n# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n\n```\nc\n```\ntail\n"
    kinds = [(text[block.start :].partition("\n")[0], block.kind) for block in scan(text)]
    assert kinds == [
        ("intro", "text"),
        ("# A", "text"),
        ("| a | b |", "table"),
        ("- x", "list"),
        ("```", "code"),
        ("tail", "text"),
    ]
