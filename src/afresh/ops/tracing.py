"""Spans: what took how long, told to a tracing system; nothing happens unless somebody set a recorder."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

Value = str | int | float | bool


class Note(Protocol):
    """What may still be said of a span while it is open."""

    def add(self, told: Mapping[str, Value]) -> None: ...

    def rename(self, name: str, *, failed: bool = False) -> None: ...


class Recorder(Protocol):
    """Keeps spans."""

    def span(
        self, name: str, told: Mapping[str, Value], caller: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Note]:
        """A span while it is open; `caller` are the headers of who asked for it."""
        ...

    def picks(self) -> bool:
        """Whether the next of many is to be kept."""
        ...


class _Unheard:
    """A span that nobody keeps; one is enough for all."""

    def __enter__(self) -> Note:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def add(self, told: Mapping[str, Value]) -> None:
        """Nobody hears it."""

    def rename(self, name: str, *, failed: bool = False) -> None:
        """Nobody hears it."""


UNHEARD = _Unheard()
"""The span of whoever is not listened to."""

_recorders: list[Recorder] = []  # one, or none


def record(recorder: Recorder | None) -> None:
    """Have spans kept from now on, or no more."""
    _recorders[:] = [] if recorder is None else [recorder]


def recorder() -> Recorder | None:
    """Who keeps spans, if anybody does."""
    return _recorders[0] if _recorders else None


def span(name: str, told: Mapping[str, Value]) -> AbstractContextManager[Note]:
    """A span of work that is always worth telling."""
    return _recorders[0].span(name, told) if _recorders else UNHEARD


def sampled(name: str, told: Mapping[str, Value]) -> AbstractContextManager[Note]:
    """A span of work of which there is so much that a part speaks for all."""
    return _recorders[0].span(name, told) if _recorders and _recorders[0].picks() else UNHEARD
