"""The other end of `offload.py`: reads calls from standard input, writes answers to standard output."""

import ctypes
import gc
import os
import pickle
import signal
import struct
import sys
from contextlib import suppress
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


def end_with_parent() -> None:
    """On Linux the kernel ends this process with its parent, even in an endless loop."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    end_with_parent()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints, also from C, must not mix with the answers
    serve(sys.stdin.buffer, answers)
