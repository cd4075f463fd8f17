"""The other end of `offload.py`: reads calls from standard input, writes answers to standard output."""

import gc
import pickle
import struct
import sys
from typing import BinaryIO

HEADER = struct.Struct(">I")


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until the input ends."""
    while header := calls.read(HEADER.size):
        (size,) = HEADER.unpack(header)
        answer = _answer(calls.read(size))
        answers.write(HEADER.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def _answer(payload: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(payload)  # noqa: S301 - from our own parent
        result = (True, function(*args, **kwargs))
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps((False, str(error) or type(error).__name__))


if __name__ == "__main__":
    gc.freeze()
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a library prints must not mix with the answers
    serve(sys.stdin.buffer, answers)
