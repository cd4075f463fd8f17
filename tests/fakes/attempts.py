"""Factories for the history of a page: attempts that succeeded, failed, wait or are in flight."""

from datetime import datetime
from itertools import count
from urllib.parse import urlsplit

from afresh.model.fetch import Outcome
from afresh.model.records import Attempt, CrawlId, PageId, RunId
from afresh.testing.script import START


class Attempts:
    """Makes attempts at one page, each with the next id; all happen at `now` unless told otherwise."""

    def __init__(
        self, url: str = "http://127.0.0.1/", *, page_id: int | None = 1, run_id: int | None = 1, now: datetime = START
    ) -> None:
        self.url = url
        self.now = now
        self._page_id = None if page_id is None else PageId(page_id)
        self._run_id = None if run_id is None else RunId(run_id)
        self._ids = count(1)

    def successful(self, *, status_code: int = 200) -> Attempt:
        """An attempt that read the page."""
        return self._finished(Outcome.SUCCESS, status_code, None)

    def failed(self, message: str, *, outcome: Outcome = Outcome.FAILED, status_code: int | None = None) -> Attempt:
        """An attempt that went wrong, and how."""
        return self._finished(outcome, status_code, message)

    def scheduled_at(self, at: datetime) -> Attempt:
        """An attempt that waits for its time."""
        return self._open(scheduled_for=at)

    def locked(self, by: str = "worker-1", at: datetime | None = None) -> Attempt:
        """An attempt that a worker has in hand."""
        return self._open(locked_by=by, locked_at=at or self.now)

    def _open(
        self, *, scheduled_for: datetime | None = None, locked_by: str | None = None, locked_at: datetime | None = None
    ) -> Attempt:
        return Attempt(
            id=CrawlId(next(self._ids)),
            page_id=self._page_id,
            run_id=self._run_id,
            url=self.url,
            domain=urlsplit(self.url).hostname or "",
            scheduled_for=scheduled_for or self.now,
            locked_at=locked_at,
            locked_by=locked_by,
            created_at=self.now,
            updated_at=self.now,
        )

    def _finished(self, outcome: Outcome, status_code: int | None, message: str | None) -> Attempt:
        return Attempt(
            id=CrawlId(next(self._ids)),
            page_id=self._page_id,
            run_id=self._run_id,
            url=self.url,
            domain=urlsplit(self.url).hostname or "",
            scheduled_for=self.now,
            completed_at=self.now,
            outcome=outcome,
            status_code=status_code,
            error_message=message,
            created_at=self.now,
            updated_at=self.now,
        )
