"""Comparing what a source lists with what is on record of it: only what differs is looked at."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from afresh.model.fetch import Validators
from afresh.model.records import Listed, PageId


class OnRecord(NamedTuple):
    """What is known of a page that a listing may show unchanged."""

    id: PageId
    url: str
    depth: int
    validators: Validators
    sound: bool  # read well, by the present recipe, and nothing speaks against it
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a listing leaves to look at."""

    asked: Sequence[Listed]  # new, other than on record, or of unknown state
    gone: Sequence[Listed]  # on record and no longer listed


def compare(
    listed: Iterable[Listed], on_record: Iterable[OnRecord], walks: Callable[[str], bool], *, full: bool
) -> Compared:
    """What to look at: what is listed as it is on record is left alone, unless all is to be read anew."""
    known = {page.url: page for page in on_record}
    asked, names = [], set()
    for item in listed:
        names.add(item.url)
        if full or not _is_same(item, known.get(item.url)):
            asked.append(item)
    gone = [
        Listed(page.url, page.depth)
        for page in known.values()
        if page.url not in names and not walks(page.url)
    ]
    return Compared(asked=asked, gone=gone)


def _is_same(item: Listed, page: OnRecord | None) -> bool:
    return (
        page is not None
        and page.sound
        and item.validators is not None
        and bool(item.validators)
        and item.validators == page.validators
    )
