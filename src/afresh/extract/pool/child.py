"""The other end of `offload_process.py`: calls come on standard input, answers go to standard output."""

import ctypes
import gc
import os
import pickle
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from afresh.extract.pool.wire import encode, encode_failure

FRAME = struct.Struct(">I?")
LENGTH = struct.Struct(">I")
MEGABYTE = 1024 * 1024
ROOM = 1536 * MEGABYTE  # of address space for the work, above what the process has at its start
GROWN = 256 * MEGABYTE  # of memory held after an answer; a process that holds more is replaced
_STATM = Path("/proc/self/statm")
_PAGE = 1 if sys.platform == "win32" else os.sysconf("SC_PAGESIZE")


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Say that we are ready, then answer calls until the input ends or the process has served its time."""
    _write(answers, b"", last=False)
    last = False
    while not last and (header := calls.read(LENGTH.size)):
        answer, broken = _answer(calls.read(LENGTH.unpack(header)[0]))
        last = broken or held() > GROWN
        _write(answers, answer, last=last)


def _write(answers: BinaryIO, answer: bytes, *, last: bool) -> None:
    answers.write(FRAME.pack(len(answer), last))
    answers.write(answer)
    answers.flush()


def _answer(payload: bytes) -> tuple[bytes, bool]:
    """The answer as data, and whether the process may have been damaged on the way."""
    try:
        function, args, kwargs = pickle.loads(payload)  # noqa: S301 - from our own parent
        return encode(function(*args, **kwargs)), False
    except MemoryError:
        return encode_failure("reading the page needs too much memory"), True
    except Exception as error:
        return encode_failure(str(error) or type(error).__name__), False
    except BaseException as error:  # a panic of a library in Rust
        return encode_failure(f"{type(error).__name__}: {error}"), True


def held() -> int:
    """The bytes of memory that this process holds, where that can be known."""
    return _sizes()[1]


def _sizes() -> tuple[int, int]:
    """The bytes of address space and of memory of this process; nothing where that cannot be known."""
    try:
        sizes = _STATM.read_bytes().split()
    except OSError:
        return 0, 0
    return int(sizes[0]) * _PAGE, int(sizes[1]) * _PAGE


def limit_itself() -> None:
    """No more address space than pages need, and no core files: they would hold what others wrote."""
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    has = _sizes()[0]
    with suppress(OSError, ValueError):
        if has:
            resource.setrlimit(resource.RLIMIT_AS, (has + ROOM, has + ROOM))


def end_with_parent() -> None:
    """On Linux the kernel ends this process with its parent, even in an endless loop."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def hush() -> None:
    """What a library prints on its way, also from C, reaches neither the answers nor the user's screen."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def work_alone() -> None:
    """Numbers are counted in one thread: pools of them would fill the address space on a large machine."""
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"


if __name__ == "__main__":
    end_with_parent()
    work_alone()
    limit_itself()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "wb")
    hush()
    serve(sys.stdin.buffer, answers)
