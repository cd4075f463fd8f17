"""Plain text to a document: the text itself, its first line as title."""

import re

from afresh.extract.decode import decode
from afresh.extract.html.head import LONGEST_TITLE, one_line
from afresh.extract.language import language_of
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import links_hash, normalise, text_hash

_WORD = re.compile(r"\w")


class TextExtractor:
    """Reads plain text."""

    version = recipe.TEXT

    def extract(self, body: Body) -> Document:
        """The document of a plain text body; it has no links, because nothing in it is one for sure."""
        text = normalise(decode(body.data, body.charset))
        return Document(
            title=first_line(text),
            markdown=text,
            language=language_of(text, body.language),
            content_hash=text_hash(text),  # it is in normal form already
            links_hash=links_hash(()),
            index=body.index,
            follow=body.follow,
        )


def first_line(text: str) -> str:
    """The first line that holds a word, as a title."""
    lines = (line for line in text.split("\n", 50)[:50] if _WORD.search(line))
    return one_line(next(lines, ""))[:LONGEST_TITLE].strip()
