"""Output streams that print anything, whatever their encoding."""

import codecs
import sys
from io import TextIOWrapper

ERRORS = "afresh.nearest"
# What stands for the signs that afresh itself prints where the terminal has no such letters.
NEAREST = {"✓": "+", "✗": "x", "·": "-", "–": "-", "…": "...", "→": "->", "›": ">", "━": "-", "╸": "-"}


def print_anything() -> None:
    """Makes stdout and stderr print the nearest sign, or a question mark, for what they cannot encode."""
    codecs.register_error(ERRORS, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def _nearest(wrong: UnicodeError) -> tuple[str, int]:
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    return "".join(NEAREST.get(sign, "?") for sign in wrong.object[wrong.start : wrong.end]), wrong.end
