"""Answers of parser processes as data: JSON of plain values and of a closed list of records.

A parser process reads what strangers wrote. Were it taken over, its answers could say wrong things of a page,
and nothing else: no name in them is imported, no code in them is run, and every field has its declared type.
"""

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from afresh.core.errors import ExtractError
from afresh.core.looks import Chunk, Document, Link, Terms

MAX_ANSWER_BYTES = 64 * 1024 * 1024
RECORDS: dict[str, type[Any]] = {each.__name__: each for each in (Chunk, Document, Link, Terms)}
_LIST, _DICT = "list", "dict"
_SCALARS = frozenset({str, int, float, bool, NoneType})
Types = tuple[type[Any], ...]


class NoData(ExtractError):
    """An answer that is none of ours."""


def encode(value: object) -> bytes:
    """A value as bytes; TypeError for what is neither plain nor one of the records."""
    text = json.dumps(_told(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes | bytearray) -> Any:
    """The value of bytes that a process sent; NoData for all that `encode` does not make."""
    try:
        return _read(json.loads(data.decode("utf-8", "surrogatepass")))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NoData(f"the parser gave an answer that is not understood ({type(error).__name__})") from None


def _told(value: object) -> object:
    name = type(value).__name__
    if type(value) in _SCALARS:
        return value
    if type(value) is tuple:
        return _all_told(value)
    if isinstance(value, list):
        return {_LIST: _all_told(value)}
    if isinstance(value, dict):
        return {_DICT: [_all_told(pair) for pair in value.items()]}
    if RECORDS.get(name) is type(value):
        return {name: _all_told(getattr(value, each) for each in _types(name))}
    raise TypeError(f"{name} is no data that a parser may answer")


def _all_told(values: Iterable[object]) -> list[object]:
    return [each if type(each) in _SCALARS else _told(each) for each in values]


def _read(told: Any) -> Any:
    if isinstance(told, list):
        return tuple(_all_read(told))
    if not isinstance(told, dict):
        return told
    ((name, inner),) = told.items()
    if name == _LIST:
        return _all_read(inner)
    if name == _DICT:
        return {_read(key): _read(each) for key, each in inner}
    return _record(name, _all_read(inner))


def _all_read(told: list[Any]) -> list[Any]:
    return [each if type(each) in _SCALARS else _read(each) for each in told]


def _record(name: str, values: list[Any]) -> Any:
    types = _types(name)
    if len(values) != len(types):
        raise ValueError(name)
    for value, (allowed, members) in zip(values, types.values(), strict=True):
        if not isinstance(value, allowed):
            raise TypeError(name)
        if members and not all(isinstance(each, members) for each in value):
            raise TypeError(name)
    return RECORDS[name](**dict(zip(types, values, strict=True)))


@cache
def _types(record: str) -> dict[str, tuple[Types, Types]]:
    """The fields of a record, with the types that each may have, and those of its members."""
    kind = RECORDS[record]
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else hints
    return {name: (_allowed(hints[name]), _members(hints[name])) for name in names}


def _members(hint: Any) -> Types:
    return _allowed(get_args(hint)[0]) if get_origin(hint) is tuple else ()


def _allowed(hint: Any) -> Types:
    if get_origin(hint) in (Union, UnionType):
        return tuple(each for part in get_args(hint) for each in _allowed(part))
    return (get_origin(hint) or hint,)
