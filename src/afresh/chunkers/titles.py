"""The text of a heading as it is read, without the marks it is written with."""

import re

import pyromark

from afresh.chunkers.limits import MAX_TITLE

_MARKUP = re.compile(r"[`*_\[\]<>&\\{~#!]")
_PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_HEADING_ATTRIBUTES)


def plain_title(raw: str) -> str:
    """The title without emphasis, links, code marks, closing hashes and attributes, and not endless."""
    if _MARKUP.search(raw):
        raw = _read(raw)
    return " ".join(raw.split())[:MAX_TITLE]


def _read(raw: str) -> str:
    parts: list[str] = []
    for event in _PARSER.events("# " + raw.replace("\n", " "), merge_text=True):
        if isinstance(event, dict):
            parts.append(str(event.get("Text") or event.get("Code") or ""))
    return "".join(parts)
