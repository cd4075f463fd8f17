"""Split lists into parts, with opaque cursors that say where the next part begins."""

import base64
import json
from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter

from afresh.errors import UsageError
from afresh.model.fetch import Outcome
from afresh.model.filters import AttemptCursor, CheckCursor, LinkCursor, LinkRecord
from afresh.model.records import Attempt
from afresh.model.reports import NextCheck

Item = TypeVar("Item")
Place = TypeVar("Place")
MAX_ID = 2**63 - 1
MAX_SCORE = 1e9  # greater than every score
BAD_CURSOR = "cursor: this is not a cursor of this list; use `next` of the previous answer, or leave it out"
_Number = Annotated[int, Field(ge=0, le=MAX_ID)]
_Score = Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE, allow_inf_nan=False)]


class Listing(BaseModel, Generic[Item]):
    """One part of a list, and the cursor of the next part."""

    items: list[Item]
    next: str | None = None


def make_cursor(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def id_cursor(item: object) -> str:
    return make_cursor(item.id)  # type: ignore[attr-defined]


def link_cursor(link: LinkRecord) -> str:
    return make_cursor(link.score or 0.0, link.url, link.id)


def attempt_cursor(attempt: Attempt) -> str:
    return make_cursor(attempt.outcome, attempt.id)


def check_cursor(check: NextCheck) -> str:
    return make_cursor(check.planned.isoformat(), check.url)


def _reader(kind: Any, place: Callable[..., Place]) -> Callable[[str | None], Place | None]:
    adapter: TypeAdapter[tuple[object, ...]] = TypeAdapter(kind)

    def read(cursor: str | None) -> Place | None:
        if cursor is None:
            return None
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            return place(*adapter.validate_json(raw, strict=True))
        except ValueError:
            raise UsageError(BAD_CURSOR) from None

    return read


def _check_place(planned: AwareDatetime, url: str) -> CheckCursor:
    if not 1900 <= planned.year < 9900:
        raise ValueError(f"expected a year from 1900 to 9899, got {planned.year}")  # not every store supports others
    return CheckCursor(planned, url)


read_number = _reader(tuple[_Number], int)
read_link = _reader(tuple[_Score, str, _Number], LinkCursor)
read_attempt = _reader(tuple[Outcome, _Number], AttemptCursor)
read_check = _reader(tuple[AwareDatetime, str], _check_place)
