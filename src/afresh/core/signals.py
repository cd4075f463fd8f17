"""The text of a page without its body: the words it holds, in no order that tells what it said."""

import re

_WORD = re.compile(r"\w+", re.UNICODE)


def signals(text: str) -> str:
    """Every word once, sorted: enough to find the page, not enough to read it."""
    return " ".join(sorted(set(_WORD.findall(text.lower()))))
