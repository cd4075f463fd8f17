"""The words of a Markdown text without its marks: what an embedded model reads."""

import re

LONGEST = 8_000  # characters; a chunk has about 2,000, and a question is no book

_MARKS = re.compile(
    r"\{[ *#][^}]{0,200}\}"  # { #anchor }
    r"|\]\([^)\s]{0,2000}(?:\s[^)]{0,200})?\)"  # the target of a link
    r"|https?://\S+"
    r"|[`*#_>|\[\]]+"
)


def prose(text: str) -> str:
    """The text on one line without Markdown's marks, addresses and whatever is not valid Unicode."""
    whole = text[:LONGEST].encode("utf-8", "replace").decode("utf-8")
    return " ".join(_MARKS.sub(" ", whole).split())
