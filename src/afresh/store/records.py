"""Convert rows of the store into records of the model."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from afresh.config.layers import drop_operator_settings
from afresh.model.fetch import Validators
from afresh.model.records import Attempt, ListedUrl, Page, Run, Source, last_answered
from afresh.model.reports import PageView
from afresh.schedule.change_rate import ChangeStats
from afresh.sources.web.http_dates import http_date_of, time_of
from afresh.store.dialect import Row

T = TypeVar("T")
Converter = Callable[[Any], Any]


def at(value: Any) -> datetime | None:
    """Return a stored time with time zone UTC; None for null."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def certain(value: Any) -> datetime:
    """Return a stored time that is never null, with time zone UTC."""
    time = at(value)
    if time is None:
        raise ValueError("a time is missing")
    return time


def record(cls: type[T], row: Row, **own: Any) -> T:
    """Return a record with fields read from the columns of the same names, and other fields from `own`."""
    plain, converted = _columns(cls, frozenset(own))  # type: ignore[arg-type] # a class can be hashed
    for name in plain:
        own[name] = row[name]
    for name, convert in converted:
        own[name] = convert(row[name])
    return cls(**own)


@cache
def _columns(cls: type, own: frozenset[str]) -> tuple[list[str], list[tuple[str, Converter]]]:
    """Return which fields of a record are read from a row unchanged, and which are converted."""
    found = {name: _converter(hint) for name, hint in get_type_hints(cls).items() if name not in own}
    return (
        [name for name, convert in found.items() if convert is None],
        [(name, convert) for name, convert in found.items() if convert is not None],
    )


def _converter(hint: Any) -> Converter | None:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    optional = type(None) in get_args(hint)
    kind = kinds[0] if optional else hint
    if kind is datetime:
        return at if optional else certain
    if isinstance(kind, type) and issubclass(kind, Enum):
        return (lambda value: None if value is None else kind(value)) if optional else kind
    if get_origin(kind) is tuple:
        return lambda text: tuple(json.loads(text))
    return bool if kind is bool else json.loads if get_origin(kind) is Mapping else None


def source_from(row: Row) -> Source:
    settings = {name: drop_operator_settings(json.loads(row[name])) for name in ("rules", "policy")}
    return record(Source, row, version=row["version"] or None, **settings)


def unkept_source(row: Row) -> Source:
    """Return the source in a row of `unkept_runs`; it was removed because its first run (`trial`) read nothing."""
    began, version = certain(row["started_at"]), row["version"] or None
    same = {name: row[name] for name in ("name", "kind", "url")}
    whose = {"id": row["source_id"], "version": version, "trial": True, **same}
    return Source(**whose, created_at=began, updated_at=began)


def run_from(row: Row) -> Run:
    return record(Run, row, full=bool(row["full_look"]))


def listed_from(row: Row) -> ListedUrl:
    return ListedUrl(row["url"], row["depth"])


def validators_from(row: Row) -> Validators:
    return Validators(
        etag=row["etag"],
        last_modified=row["last_modified"],
        size=row["size"],
        mtime_ns=row["mtime_ns"],
        url=row["validators_url"],
    )


def page_from(row: Row) -> Page:
    """Return the page of a row, fast, because a run does so for every row that it claims."""
    # both kinds of rows yield their values; `dict(row)` takes four times as long, as SQLite searches for each name
    columns: dict[str, Any] = dict(zip(row.keys(), row, strict=True))
    columns["validators"], columns["rhythm"] = validators_from(columns), rhythm_from(columns)
    return msgspec.convert(columns, Page)


def rhythm_from(row: Row) -> ChangeStats:
    return ChangeStats(row["change_count"], row["quiet_seconds"], row["span_seconds"])


def times_of(row: Row) -> tuple[datetime | None, datetime | None, datetime | None]:
    """Return when a page was last part of a run, last seen, and last checked.

    A listing that shows the page unchanged counts as a check. A failed check does not count if content is stored.
    """
    crawl_time, seen, checked = at(row["crawl_time"]), at(row["last_seen"]), at(row["checked_at"])
    listed = at(row["told_at"]) if row["listed"] else None
    if listed is not None and checked is not None and checked < listed:
        return at(row["told_run_at"]), at(row["told_run_at"]), listed
    if row["content_hash"] is not None:
        checked = last_answered(checked, at(row["observed_at"]), seen)
    return crawl_time, seen, checked


def page_view(row: Row) -> PageView:
    """Return a page view from a row of `pages` with the times when its source was last found unchanged (`told_…`)."""
    own = dict(zip(("crawl_time", "last_seen", "checked_at"), times_of(row), strict=True))
    modified, mtime = row["last_modified"] or http_date_of(row["mtime_ns"]), time_of(row["mtime_ns"])
    return record(PageView, row, last_modified=modified, mtime=mtime, copies=(), **own)


def attempt_from(row: Row) -> Attempt:
    return record(Attempt, row)
