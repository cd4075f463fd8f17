"""Answers of parser processes as data: MessagePack, which is decoded into the one type that the call expects.

A parser process reads what strangers wrote. Were it taken over, its answers could say wrong things of a page,
and nothing else: no name in them is imported, no code in them is run, and every field has its declared type.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from afresh.errors import ExtractError, ParserCrashed

if TYPE_CHECKING:
    from msgspec.msgpack import Decoder

MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_REASON_CHARACTERS = 10_000
_DONE, _FAILED = b"\1", b"\0"


def encode(value: object) -> bytes:
    """A result as bytes; TypeError for what is no data."""
    from msgspec import msgpack

    answer = _DONE + msgpack.encode(value)
    if len(answer) <= MAX_ANSWER_BYTES:
        return answer
    raise ValueError(f"the page makes an answer of more than {MAX_ANSWER_BYTES // (1024 * 1024)} MB")


def encode_failure(reason: str) -> bytes:
    """Why there is no result, as bytes."""
    return _FAILED + reason[:MAX_REASON_CHARACTERS].encode("utf-8", "replace")


def decode(answer: bytes | bytearray, kind: Any) -> Any:
    """The result, which is of that type; ExtractError with the reason if there is none.

    ParserCrashed for bytes that are neither: the process that sent them is not to be believed again.
    """
    from msgspec import DecodeError

    mark, rest = bytes(answer[:1]), memoryview(answer)[1:]
    try:
        if mark == _DONE:
            return _decoder(kind).decode(rest)
        reason = str(rest[: 4 * MAX_REASON_CHARACTERS], "utf-8") if mark == _FAILED else None
    except (DecodeError, UnicodeDecodeError, RecursionError):
        reason = None
    if reason is None:
        raise ParserCrashed("the parser gave an answer that is not understood")
    raise ExtractError(reason)


@cache
def _decoder(kind: Any) -> "Decoder[Any]":
    from msgspec import msgpack

    return msgpack.Decoder(kind)
