"""Encode calls by name, and answers of parser processes as MessagePack, decoded into the expected type.

A parser process reads untrusted content. If it were taken over, its answers could contain wrong data about a
page, but nothing else: decoding imports and runs nothing, and every field has its declared type.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from afresh.dataclass import dataclass
from afresh.errors import ExtractError, ParserCrashed
from afresh.model.fetch import Chunk, Document

if TYPE_CHECKING:
    from msgspec.msgpack import Decoder


FRAME = struct.Struct(">I?")  # length of an answer, and whether it is the last one of its process
LENGTH = struct.Struct(">I")  # of a call
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_REASON_CHARACTERS = 10_000
_DONE, _FAILED = b"\1", b"\0"


def encode(value: object) -> bytes:
    """Return a result as bytes; raise TypeError if it is not plain data, ValueError if it is too large."""
    from msgspec import msgpack

    answer = _DONE + msgpack.encode(value)
    if len(answer) <= MAX_ANSWER_BYTES:
        return answer
    raise ValueError(f"the page makes an answer of more than {MAX_ANSWER_BYTES // (1024 * 1024)} MB")


def encode_failure(reason: str) -> bytes:
    return _FAILED + reason[:MAX_REASON_CHARACTERS].encode("utf-8", "replace")


def decode(answer: bytes | bytearray, kind: Any) -> Any:
    """Return the result, which has the type `kind`; raise ExtractError with the reason if the call failed.

    Raise ParserCrashed for other bytes: the process that sent them must not be trusted any more.
    """
    from msgspec import DecodeError

    mark, rest = bytes(answer[:1]), memoryview(answer)[1:]
    with suppress(DecodeError, UnicodeDecodeError, RecursionError):
        if mark == _DONE:
            return _decoder(kind).decode(rest)
        if mark == _FAILED:
            raise ExtractError(str(rest[: 4 * MAX_REASON_CHARACTERS], "utf-8"))
    raise ParserCrashed("the parser gave an answer that is not understood")


@cache
def _decoder(kind: Any) -> "Decoder[Any]":
    from msgspec import msgpack

    return msgpack.Decoder(kind)


@dataclass(frozen=True)
class LazyFunction:
    """Calls a function of a module that is imported only when the call is made."""

    module: str
    name: str
    answer: Any = Any  # the type of its result, if that is not plain data

    def __reduce__(self) -> tuple[type["LazyFunction"], tuple[str, str]]:
        """Pickle without the result type, which only the parent needs."""
        return LazyFunction, (self.module, self.name)

    def __call__(self, *args: Any) -> Any:
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function(*args)


EXTRACT = LazyFunction("afresh.extract", "extract", Document)
EXTRACT_VISIBLE = LazyFunction("afresh.extract", "extract_visible", Document)
CHUNK = LazyFunction("afresh.extract.chunk.markdown", "chunk", tuple[Chunk, ...])
DIFF = LazyFunction("afresh.text.diff", "markdown_diff", str)
