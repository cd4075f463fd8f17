"""Spans for a tracing system; without a recorder they do nothing."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

Value = str | int | float | bool


class SpanNotes(Protocol):
    """Adds to an open span."""

    def add(self, told: Mapping[str, Value]) -> None: ...

    def rename(self, name: str, *, failed: bool = False) -> None: ...


class SpanRecorder(Protocol):
    """Records spans."""

    def span(
        self, name: str, told: Mapping[str, Value], caller: Mapping[str, str] | None = None
    ) -> AbstractContextManager[SpanNotes]:
        """Return a context manager for a span; `caller` holds the headers of the incoming request."""
        ...

    def picks(self) -> bool:
        """Return whether to record the next sampled span."""
        ...


class _Unheard:
    """A span that is not recorded; one instance is enough."""

    def __enter__(self) -> SpanNotes:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add(self, told: Mapping[str, Value]) -> None:
        """Do nothing."""

    def rename(self, name: str, *, failed: bool = False) -> None:
        """Do nothing."""


UNHEARD = _Unheard()
"""The span of whoever is not listened to."""

_recorders: list[SpanRecorder] = []  # at most one


def record(recorder: SpanRecorder | None) -> None:
    """Set the recorder of spans, or None to stop recording."""
    _recorders[:] = [] if recorder is None else [recorder]


def recorder() -> SpanRecorder | None:
    """Return the recorder of spans, if there is one."""
    return _recorders[0] if _recorders else None


def span(name: str, told: Mapping[str, Value]) -> AbstractContextManager[SpanNotes]:
    """Return a span that is always recorded."""
    return _recorders[0].span(name, told) if _recorders else UNHEARD


def sampled(name: str, told: Mapping[str, Value]) -> AbstractContextManager[SpanNotes]:
    """Return a span of frequent work, of which only a share is recorded."""
    return _recorders[0].span(name, told) if _recorders and _recorders[0].picks() else UNHEARD
