"""Rows of the store, read into the records of the core."""

import json
from datetime import datetime
from typing import Any

from afresh.config.overlay import own_settings
from afresh.model.fetch import Outcome, Validators
from afresh.model.history import HistoryEntry, history_entry
from afresh.model.records import (
    Attempt,
    CrawlId,
    Page,
    PageId,
    PageStatus,
    Run,
    RunId,
    RunMode,
    RunState,
    Source,
    SourceId,
    Worker,
)
from afresh.model.reports import PageView
from afresh.schedule.change_rate import Rhythm
from afresh.schedule.due import Waiting
from afresh.sources.web.http_dates import http_date_of, time_of
from afresh.store.dialect import Row


def at(value: Any) -> datetime | None:
    """A stored time, aware of its zone."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def certain(value: Any) -> datetime:
    """A stored time that is never null."""
    time = at(value)
    if time is None:
        raise ValueError("a time is missing")
    return time


def source_from(row: Row) -> Source:
    """A row of `sources`."""
    return Source(
        id=SourceId(row["id"]),
        name=row["name"],
        version=row["version"] or None,
        kind=row["kind"],
        url=row["url"],
        rules=own_settings(json.loads(row["rules"])),
        policy=own_settings(json.loads(row["policy"])),
        mark=row["mark"],
        trial=bool(row["trial"]),
        crawl_time=at(row["crawl_time"]),
        operator_url=row["operator_url"],
        created_at=certain(row["created_at"]),
        updated_at=certain(row["updated_at"]),
    )


def unkept_source(row: Row) -> Source:
    """What a row of `unkept_runs` tells of its source."""
    began = certain(row["started_at"])
    return Source(
        id=SourceId(row["source_id"]),
        name=row["name"],
        version=row["version"] or None,
        kind=row["kind"],
        url=row["url"],
        trial=True,
        created_at=began,
        updated_at=began,
    )


def run_from(row: Row) -> Run:
    """A row of `runs`."""
    return Run(
        id=RunId(row["id"]),
        source_id=SourceId(row["source_id"]),
        mode=RunMode(row["mode"]),
        state=RunState(row["state"]),
        full=bool(row["full_look"]),
        worker=row["worker"],
        taken_at=at(row["taken_at"]),
        worked_at=at(row["worked_at"]),
        queued=row["queued"],
        known=row["known"],
        counts=json.loads(row["counts"]),
        notes=tuple(json.loads(row["notes"])),
        error=row["error"],
        started_at=certain(row["started_at"]),
        finished_at=at(row["finished_at"]),
    )


def validators_from(row: Row) -> Validators:
    """The validators in a row of `pages`."""
    return Validators(
        etag=row["etag"],
        last_modified=row["last_modified"],
        size=row["size"],
        mtime_ns=row["mtime_ns"],
        url=row["validators_url"],
    )


def page_from(row: Row) -> Page:
    """A row of `pages`."""
    return Page(
        id=PageId(row["id"]),
        source_id=SourceId(row["source_id"]),
        url=row["url"],
        status=PageStatus(row["status"]),
        title=row["title"],
        depth=row["depth"],
        language=row["language"],
        validators=validators_from(row),
        content_type=row["content_type"],
        content_hash=row["content_hash"],
        links_hash=row["links_hash"],
        links_left_out=row["links_left_out"],
        recipe=row["recipe"],
        chunker=row["chunker"],
        failures=row["failures"],
        gone_count=row["gone_count"],
        missing_count=row["missing_count"],
        doomed_by=row["doomed_by"],
        crashes=row["crashes"],
        doubt=row["doubt"],
        doubt_hash=row["doubt_hash"],
        doubt_run=row["doubt_run"],
        refused_hash=row["refused_hash"],
        moved_to=row["moved_to"],
        crawl_time=at(row["crawl_time"]),
        last_seen=at(row["last_seen"]),
        last_scraped=at(row["last_scraped"]),
        checked_at=at(row["checked_at"]),
        changed_at=at(row["changed_at"]),
        observed_at=at(row["observed_at"]),
        rhythm=rhythm_from(row),
        created_at=at(row["created_at"]),
        updated_at=at(row["updated_at"]),
    )


def rhythm_from(row: Row) -> Rhythm:
    """What a row of `pages` says of its changes."""
    return Rhythm(row["change_count"], row["quiet_seconds"], row["span_seconds"])


def looked_at(row: Row) -> tuple[datetime | None, datetime | None, datetime | None]:
    """When a page was last visited, seen and checked: by itself, or because its source is as it was."""
    own = at(row["crawl_time"]), at(row["last_seen"]), at(row["checked_at"])
    told = at(row["told_at"]) if row["listed"] else None
    if told is None or own[2] is None or own[2] >= told:
        return own
    return at(row["told_run_at"]), at(row["told_run_at"]), told


def page_view(row: Row) -> PageView:
    """A row of `pages` with the times of its source, as it is listed."""
    crawl_time, last_seen, checked_at = looked_at(row)
    return PageView(
        id=PageId(row["id"]),
        source_id=SourceId(row["source_id"]),
        url=row["url"],
        status=PageStatus(row["status"]),
        title=row["title"],
        depth=row["depth"],
        language=row["language"],
        content_hash=row["content_hash"],
        etag=row["etag"],
        last_modified=row["last_modified"] or http_date_of(row["mtime_ns"]),
        content_type=row["content_type"],
        crawl_time=crawl_time,
        last_seen=last_seen,
        checked_at=checked_at,
        changed_at=at(row["changed_at"]),
        missing_count=row["missing_count"],
        moved_to=row["moved_to"],
        doubt=row["doubt"],
        created_at=at(row["created_at"]),
        updated_at=at(row["updated_at"]),
        last_scraped=at(row["last_scraped"]),
        size=row["size"],
        mtime=time_of(row["mtime_ns"]),
        next_look=at(row["next_look"]),
    )


def attempt_from(row: Row) -> Attempt:
    """A row of `page_crawls`."""
    return Attempt(
        id=CrawlId(row["id"]),
        page_id=row["page_id"],
        run_id=row["run_id"],
        url=row["url"],
        domain=row["domain"],
        priority=row["priority"],
        scheduled_for=certain(row["scheduled_for"]),
        locked_at=at(row["locked_at"]),
        locked_by=row["locked_by"],
        completed_at=at(row["completed_at"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        status_code=row["status_code"],
        error_message=row["error_message"],
        reason=row["reason"],
        created_at=certain(row["created_at"]),
        updated_at=certain(row["updated_at"]),
        unchanged=row["unchanged"],
    )


def history_from(row: Row) -> HistoryEntry:
    """A row of `page_crawls` with the name and version of its source."""
    return history_entry(attempt_from(row), row["source_name"], row["source_version"] or None)


def worker_from(row: Row) -> Worker:
    """A row of `workers`."""
    return Worker(
        name=row["name"],
        host=row["host"],
        pid=row["pid"],
        heartbeat_at=certain(row["heartbeat_at"]),
        started_at=at(row["started_at"]),
        helps=None if row["helps"] is None else RunId(row["helps"]),
    )


def waiting_from(row: Row) -> Waiting:
    """A row of the queue that nobody works on."""
    return Waiting(
        url=row["url"],
        next_at=certain(row["scheduled_for"]),
        written_at=certain(row["updated_at"]),
        answered_at=at(row["last_seen"]),
    )
