"""Output streams that print anything, whatever their encoding."""

import codecs
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

ERRORS = "afresh.nearest"
# What stands for the signs that afresh itself prints where the terminal has no such letters.
NEAREST = {"✓": "+", "✗": "x", "·": "-", "–": "-", "…": "...", "→": "->", "›": ">", "━": "-", "╸": "-"}


def stand_in() -> None:
    """Puts the null device where a standard stream is closed, so that no other file takes its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def is_broken() -> bool:
    """Whether stdout takes nothing any more, a full disk behind it for example."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def print_anything() -> None:
    """Makes stdout and stderr print the nearest sign, or a question mark, for what they cannot encode."""
    codecs.register_error(ERRORS, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def give_up(stream: TextIO) -> None:
    """Sends what a stream still holds nowhere: nobody reads it, or there is no room for it."""
    with suppress(OSError, ValueError):  # a stream without a number keeps nothing back
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _nearest(wrong: UnicodeError) -> tuple[str, int]:
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    return "".join(NEAREST.get(sign, "?") for sign in wrong.object[wrong.start : wrong.end]), wrong.end
