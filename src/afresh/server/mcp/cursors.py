"""Cursors: where an answer goes on, good for the question that it was given with."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from afresh.errors import UsageError
from afresh.text.json_input import read_json


def make_cursor(place: int, *question: object) -> str:
    """A cursor that goes on at a place."""
    return urlsafe_b64encode(json.dumps([place, _digest(question)]).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, *question: object) -> int:
    """The place that a cursor names, 0 without one; UsageError if it belongs to another question."""
    if not cursor:
        return 0
    try:
        place, digest = read_json(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        is_ours = isinstance(place, int) and 0 <= place < 2**62 and digest == _digest(question)
    except (ValueError, TypeError, RecursionError):
        is_ours, place = False, 0
    if not is_ours:
        raise UsageError(
            "cursor: it is not the one that this question was answered with; "
            "ask with the same arguments, or leave the cursor out to begin again"
        )
    return int(place)


def _digest(question: tuple[object, ...]) -> str:
    return sha256(json.dumps(question, default=str).encode()).hexdigest()[:12]
