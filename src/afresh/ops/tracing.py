"""Create spans for a tracing system; without a recorder they do nothing."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from afresh.ops.otel import Spans

Value = str | int | float | bool


class SpanNotes(Protocol):
    """Adds attributes to an open span, or renames it."""

    def add(self, attributes: Mapping[str, Value]) -> None: ...

    def rename(self, name: str, *, failed: bool = False) -> None: ...


class _NullSpan:
    """A span that is not recorded; all such spans share one instance."""

    def __enter__(self) -> SpanNotes:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add(self, attributes: Mapping[str, Value]) -> None:
        pass

    def rename(self, name: str, *, failed: bool = False) -> None:
        pass


NULL_SPAN = _NullSpan()

_recorders: "list[Spans]" = []  # empty, or contains the current recorder


def set_recorder(recorder: "Spans | None") -> None:
    _recorders[:] = [] if recorder is None else [recorder]


def get_recorder() -> "Spans | None":
    return _recorders[0] if _recorders else None


def span(name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[SpanNotes]:
    """Return a span that is recorded whenever there is a recorder."""
    return _recorders[0].span(name, attributes) if _recorders else NULL_SPAN


def sampled_span(name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[SpanNotes]:
    """Return a span for frequent operations, of which only a share is recorded."""
    return _recorders[0].span(name, attributes) if _recorders and _recorders[0].picks() else NULL_SPAN
