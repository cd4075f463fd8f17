"""Encode calls as function names, and answers as MessagePack, which is decoded into the expected type.

A parser process reads untrusted content. If an attacker took control of it, its answers could contain wrong
data about a page but do no other harm: decoding runs no code, and every field has its declared type.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from afresh.dataclass import dataclass
from afresh.errors import ExtractError, ParserCrashed
from afresh.model.fetch import Chunk, Document

FRAME = struct.Struct(">I?")  # head of an answer: its length, and whether it is the last one of its process
LENGTH = struct.Struct(">I")  # head of a call: its length
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_REASON_CHARACTERS = 10_000
_DONE, _FAILED = b"\1", b"\0"


def encode(value: object) -> bytes:
    """Encode a result; raise TypeError if it is not plain data, ValueError if it is too large."""
    from msgspec import msgpack

    answer = _DONE + msgpack.encode(value)
    if len(answer) <= MAX_ANSWER_BYTES:
        return answer
    raise ValueError(f"the result of parsing the page is larger than {MAX_ANSWER_BYTES // (1024 * 1024)} MB")


def encode_failure(reason: str) -> bytes:
    return _FAILED + reason[:MAX_REASON_CHARACTERS].encode("utf-8", "replace")


def decode(answer: bytes | bytearray, kind: Any) -> Any:
    """Decode a result of the type `kind`; raise ExtractError if the call failed, ParserCrashed for invalid bytes."""
    from msgspec import DecodeError

    mark, rest = bytes(answer[:1]), memoryview(answer)[1:]
    with suppress(DecodeError, UnicodeDecodeError, RecursionError):
        if mark == _DONE:
            return _decoder(kind)(rest)
        if mark == _FAILED:
            raise ExtractError(str(rest[: 4 * MAX_REASON_CHARACTERS], "utf-8"))
    raise ParserCrashed("the parser process sent an invalid answer")


@cache
def _decoder(kind: Any) -> Callable[[memoryview], Any]:
    from msgspec import msgpack

    return msgpack.Decoder(kind).decode


@dataclass(frozen=True)
class LazyFunction:
    """A function whose module is imported only when the function is called."""

    module: str
    name: str
    answer: Any = Any  # the type of the result, if it is not plain data
    goes_first: bool = False  # its calls overtake calls that still wait for a process

    def __reduce__(self) -> tuple[type["LazyFunction"], tuple[str, str]]:
        """Return the pickled form, without what only the parent process needs."""
        return LazyFunction, (self.module, self.name)

    def __call__(self, *args: Any) -> Any:
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function(*args)


EXTRACT = LazyFunction("afresh.extract", "extract", Document)
EXTRACT_VISIBLE = LazyFunction("afresh.extract", "extract_visible", Document)
READ = LazyFunction("afresh.extract.chunk.markdown", "extract_and_chunk", tuple[Document, tuple[Chunk, ...] | None])
CHUNK = LazyFunction("afresh.extract.chunk.markdown", "chunk", tuple[Chunk, ...])
DIFF = LazyFunction("afresh.text.diff", "markdown_diff", str)
