"""MDX to a document: Markdown without its imports and without the tags of components, whose text stays."""

import re
from collections.abc import Iterator
from dataclasses import replace

from afresh.extract.decode import decode
from afresh.extract.markdown import MarkdownExtractor
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

LONGEST_TAG = 5_000
MOST_OPEN = 100  # tags without an end; a text with more of them is no MDX

_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(r"^(?:import|export)[ \t{*][^\n]*(?:\n(?!\s*\n|#|<)[^\n]+)*", re.MULTILINE)
_COMMENT = re.compile(r"\{/\*(?:[^{]|\{(?!/\*))*?\*/\}")
_TAG = re.compile(r"(?<!`)(`++)[^`\n]+\1|</?(?=[A-Z>])")  # code within a line is skipped
_SAID = re.compile(r"\b(?:title|label|summary|heading)=(?:\"([^\"]*)\"|'([^']*)')")


class MdxExtractor:
    """Reads MDX."""

    version = recipe.MARKDOWN

    def extract(self, body: Body) -> Document:
        """The document of an MDX body."""
        text = without_components(normalise(decode(body.data, body.charset)))
        return MarkdownExtractor().extract(
            replace(body, data=text.encode("utf-8", "replace"), charset="utf-8")
        )


def without_components(text: str) -> str:
    """The text as plain Markdown; code stays as it is."""
    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_plain(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return re.sub(r"\n{3,}", "\n\n", "".join([*parts, _plain(text[at:])]))


def _plain(prose: str) -> str:
    prose = _COMMENT.sub("", _STATEMENT.sub("", prose))
    return "".join(_pieces(prose)) if "<" in prose else prose


def _pieces(prose: str) -> Iterator[str]:
    """The prose piece by piece, each tag replaced by what it says to readers."""
    at, open_tags, start = 0, 0, _TAG.search(prose)
    while start is not None and open_tags < MOST_OPEN:
        end = None if start[1] else _end_of_tag(prose, start.end())
        if end is None:
            yield prose[at : start.end()]
            at = start.end()
            open_tags += start[1] is None
        else:
            yield prose[at : start.start()]
            said = _SAID.search(prose, start.end(), end)
            if said is not None:
                yield f"\n\n**{said[1] or said[2]}**\n\n"
            at = end
        start = _TAG.search(prose, at)
    yield prose[at:]


def _end_of_tag(text: str, at: int) -> int | None:
    """Where a tag ends: `>` in quotes or braces does not end it."""
    depth, quote = 0, ""
    for place in range(at, min(len(text), at + LONGEST_TAG)):
        character = text[place]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        elif character in "{}":
            depth += 1 if character == "{" else -1
        elif character == ">" and depth <= 0:
            return place + 1
    return None
