"""Parse untrusted JSON, with limits on bytes and values that are checked before parsing.

A parser blocks every thread while it works, so a thread alone does not keep the event loop free: the standard
library takes four seconds and a gigabyte for 15 MB of empty lists. Large JSON is therefore parsed in a thread
and in pieces, and other threads run between them.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

MAX_JSON_BYTES = 64 * 1024
MAX_JSON_VALUES = 50_000
PIECE_BYTES = 256 * 1024  # parsed at a time
MAX_PIECE_DEPTH = 4  # each level scans the whole text again


class BadJson(ValueError):
    """Invalid or too large JSON; the message says which."""


def read_json(data: bytes, *, max_bytes: int = MAX_JSON_BYTES, max_values: int = MAX_JSON_VALUES) -> Any:
    """Parse JSON within limits; raise BadJson if it is invalid or exceeds a limit."""
    _check_size(data, max_bytes, max_values)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadJson("no JSON") from None


def read_large_json(data: bytes, *, max_bytes: int, max_values: int) -> Any:
    """Parse JSON in a thread, like `read_json` but in pieces, so that other threads can run."""
    if len(data) <= PIECE_BYTES:
        return read_json(data, max_bytes=max_bytes, max_values=max_values)
    from msgspec import DecodeError

    _check_size(data, max_bytes, max_values)
    try:
        return _read_pieces(memoryview(data), MAX_PIECE_DEPTH)
    except (ValueError, RecursionError, DecodeError):
        raise BadJson("no JSON") from None


def _check_size(data: bytes, max_bytes: int, max_values: int) -> None:
    if len(data) > max_bytes:
        raise BadJson(f"larger than {max_bytes:,} bytes")
    if count_values(data) > max_values:
        raise BadJson(f"more than {max_values:,} values")


def _read_pieces(text: memoryview, depth: int) -> Any:
    from msgspec import Raw
    from msgspec.json import decode

    kind = bytes(text[:64]).lstrip()[:1] if len(text) > PIECE_BYTES and depth else b""
    if kind == b"{":
        fields = decode(text, type=dict[str, Raw])
        return {name: _read_pieces(memoryview(each), depth - 1) for name, each in fields.items()}
    if kind == b"[":
        items = (memoryview(each) for each in decode(text, type=list[Raw]))
        return [value for piece in _pieces(items) for value in _read_items(piece, depth - 1)]
    return decode(text)


def _pieces(items: Iterable[memoryview]) -> Iterator[list[memoryview]]:
    """Yield the items of a list, as many at a time as fit one piece; a larger one comes alone."""
    piece: list[memoryview] = []
    held = 0
    for item in items:
        if piece and held + len(item) > PIECE_BYTES:
            yield piece
            piece, held = [], 0
        piece.append(item)
        held += len(item) + 1
    yield piece


def _read_items(piece: list[memoryview], depth: int) -> list[Any]:
    if len(piece) == 1:
        return [_read_pieces(piece[0], depth)]
    from msgspec.json import decode

    return decode(b"[%b]" % b",".join(piece), type=list[Any])


def count_values(data: bytes) -> int:
    """Return an upper bound for the number of values, without parsing: marks within strings count, too."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")
