"""Split lists into parts, with opaque cursors that say where the next part begins."""

import base64
import json
from typing import Annotated, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from afresh.errors import UsageError
from afresh.model.fetch import Outcome
from afresh.model.filters import AttemptCursor, CheckCursor, LinkCursor, LinkRecord
from afresh.model.records import Attempt
from afresh.model.reports import NextCheck

Item = TypeVar("Item")
Parts = TypeVar("Parts")
LARGEST = 2**63 - 1
HIGHEST = 1e9  # above every score
WRONG = "cursor: this is none of ours: take `next` of the answer before, or leave it out"
_Number = Annotated[int, Field(ge=0, le=LARGEST)]
_Score = Annotated[float, Field(ge=-HIGHEST, le=HIGHEST, allow_inf_nan=False)]
_NUMBER = TypeAdapter(tuple[_Number])
_LINK = TypeAdapter(tuple[_Score, str, _Number])
_ATTEMPT = TypeAdapter(tuple[Outcome, _Number])
_LOOK = TypeAdapter(tuple[AwareDatetime, str])


class Listing(BaseModel, Generic[Item]):
    """One part of a list, and where it goes on."""

    items: list[Item]
    next: str | None = None


def number_cursor(number: int) -> str:
    return _packed(number)


def by_id(item: object) -> str:
    return _packed(item.id)  # type: ignore[attr-defined]


def by_worth(link: LinkRecord) -> str:
    return _packed(link.score or 0.0, link.url, link.id)


def attempt_cursor(attempt: Attempt) -> str:
    return _packed(attempt.outcome, attempt.id)


def look_cursor(look: NextCheck) -> str:
    return _packed(look.planned.isoformat(), look.url)


def read_number(cursor: str | None) -> int | None:
    found = _unpacked(_NUMBER, cursor)
    return found[0] if found else None


def read_link(cursor: str | None) -> LinkCursor | None:
    found = _unpacked(_LINK, cursor)
    return LinkCursor(*found) if found else None


def read_attempt(cursor: str | None) -> AttemptCursor | None:
    found = _unpacked(_ATTEMPT, cursor)
    return AttemptCursor(*found) if found else None


def read_look(cursor: str | None) -> CheckCursor | None:
    found = _unpacked(_LOOK, cursor)
    if found and not 1900 <= found[0].year < 9900:  # the range that every store supports
        raise UsageError(WRONG)
    return CheckCursor(*found) if found else None


def _packed(*parts: object) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(kind: TypeAdapter[Parts], cursor: str | None) -> Parts | None:
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return kind.validate_json(raw, strict=True)
    except ValueError:
        raise UsageError(WRONG) from None
