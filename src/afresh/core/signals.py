"""The text of a page without its body: the words it holds, in no order that tells what it said."""

from afresh.core.analysis import words_in


def signals(text: str) -> str:
    """Every word once, sorted: enough to find the page, not enough to read it."""
    return " ".join(sorted(set(words_in(text))))
