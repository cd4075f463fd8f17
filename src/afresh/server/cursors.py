"""Cursors: where a list goes on, as a text that says nothing to others."""

import base64
import json
from datetime import datetime

from afresh.errors import UsageError
from afresh.model.fetch import Outcome
from afresh.model.filters import AttemptPlace, LinkPlace, LookPlace
from afresh.model.records import Attempt
from afresh.model.reports import NextLook
from afresh.text.json_input import read_json

LARGEST = 2**63 - 1
HIGHEST = 1e9  # above every score; whole numbers beyond what a float holds fail at nothing but this
WRONG = "cursor: this is none of ours: take `next` of the answer before, or leave it out"


def number_cursor(number: int) -> str:
    """A cursor behind the record with this number."""
    return _packed([number])


def read_number(cursor: str | None) -> int | None:
    """The number that a cursor holds."""
    if cursor is None:
        return None
    match _unpacked(cursor):
        case [int(number)] if 0 <= number <= LARGEST and not isinstance(number, bool):
            return number
    raise UsageError(WRONG)


def link_cursor(place: LinkPlace) -> str:
    """A cursor behind a link."""
    return _packed(list(place))


def read_link(cursor: str | None) -> LinkPlace | None:
    """The place that a cursor holds."""
    if cursor is None:
        return None
    match _unpacked(cursor):
        case [int() | float() as score, str(url), int(number)] if (
            abs(score) <= HIGHEST and 0 <= number <= LARGEST
        ):
            return LinkPlace(float(score), url, number)
    raise UsageError(WRONG)


def attempt_cursor(attempt: Attempt) -> str:
    """A cursor behind an attempt of a run."""
    return _packed([attempt.outcome, attempt.id])


def read_attempt(cursor: str | None) -> AttemptPlace | None:
    """The outcome and the number that a cursor holds."""
    if cursor is None:
        return None
    match _unpacked(cursor):
        case [str(outcome), int(number)] if (
            outcome in list(Outcome) and 0 <= number <= LARGEST and not isinstance(number, bool)
        ):
            return AttemptPlace(Outcome(outcome), number)
    raise UsageError(WRONG)


def look_cursor(look: NextLook) -> str:
    """A cursor behind a page that waits."""
    return _packed([look.planned.isoformat(), look.url])


def read_look(cursor: str | None) -> LookPlace | None:
    """The time and the address that a cursor holds."""
    if cursor is None:
        return None
    match _unpacked(cursor):
        case [str(at), str(url)]:
            try:
                moment = datetime.fromisoformat(at)
            except ValueError:
                raise UsageError(WRONG) from None
            if moment.tzinfo is not None and 1900 <= moment.year < 9900:  # what every store can hold
                return LookPlace(moment, url)
    raise UsageError(WRONG)


def _packed(parts: list[object]) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(cursor: str) -> object:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = read_json(raw)
        json.dumps(found, ensure_ascii=False).encode()  # no half characters
    except (ValueError, RecursionError):
        raise UsageError(WRONG) from None
    return found
