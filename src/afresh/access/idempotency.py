"""Answers that are kept, so that a request that is made twice is done once."""

from dataclasses import dataclass
from datetime import timedelta

KEPT = timedelta(hours=24)  # how long an answer is given again
RENEWED = timedelta(seconds=15)  # how often who answers says that it goes on
GIVEN_UP = timedelta(minutes=1)  # after which who was not heard of is taken for dead


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What was asked under a name, and what was answered; no status while it is being answered."""

    asked: str  # a fingerprint
    status: int | None = None
    location: str | None = None
    body: str | None = None
