"""Parse untrusted JSON after checking its size and its number of values.

The parser of the standard library blocks all threads while it works; for 15 MB of empty lists it takes four
seconds and a gigabyte. Large JSON is therefore parsed in a thread and in pieces, so that other threads can
run between the pieces.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

MAX_JSON_BYTES = 64 * 1024
MAX_JSON_VALUES = 50_000
PIECE_BYTES = 256 * 1024  # size of a piece that is parsed at once
MAX_PIECE_DEPTH = 4  # nesting of lists that are split, because each level scans the whole text again


class BadJson(ValueError):
    """The JSON is invalid or too large; the message gives the reason."""


def read_json(data: bytes, *, max_bytes: int = MAX_JSON_BYTES, max_values: int = MAX_JSON_VALUES) -> Any:
    _check_size(data, max_bytes, max_values)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadJson("no JSON") from None


def read_large_json(data: bytes, *, max_bytes: int, max_values: int) -> Any:
    """Parse JSON in pieces, between which other threads can run; call this in a thread."""
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
    """Yield the items of a list in groups of at most `PIECE_BYTES`; a larger item is a group of its own."""
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
    """Return an upper bound for the number of values without parsing: it counts all separators, also in strings."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")
