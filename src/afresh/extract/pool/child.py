"""Run a parser process, which `pool.py` starts: read calls from standard input, write answers to standard output."""

import ctypes
import gc
import os
import pickle
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from afresh.extract.pool.wire import FRAME, LENGTH, encode, encode_failure

MEGABYTE = 1024 * 1024
ROOM = 1536 * MEGABYTE  # address space in addition to that at the start
SLACK = 8 * MEGABYTE  # if a process uses a quarter and this more than before, it returns freed memory
GROWN = 256 * MEGABYTE  # a process that uses more memory after a call is replaced
_STATM = Path("/proc/self/statm")
_PAGE = 1 if sys.platform == "win32" else os.sysconf("SC_PAGESIZE")


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Signal readiness, then answer calls until the input ends or the process needs to be replaced."""
    _write(answers, b"", last=False)
    last, kept = False, resident_bytes()
    while not last and (header := calls.read(LENGTH.size)):
        answer, broken = _answer(calls.read(LENGTH.unpack(header)[0]))
        last = broken or resident_bytes() > GROWN
        _write(answers, answer, last=last)
        del answer
        if resident_bytes() > kept + kept // 4 + SLACK:
            give_back()
            kept = resident_bytes()


def _write(answers: BinaryIO, answer: bytes, *, last: bool) -> None:
    answers.write(FRAME.pack(len(answer), last))
    answers.write(answer)
    answers.flush()


def _answer(payload: bytes) -> tuple[bytes, bool]:
    """Execute a call; return the encoded answer, and whether the process may be damaged and has to be replaced."""
    try:
        function, args, kwargs = pickle.loads(payload)  # noqa: S301 - from our own parent
        return encode(function(*args, **kwargs)), False
    except MemoryError:
        return encode_failure("parsing the page needs too much memory"), True
    except Exception as error:
        return encode_failure(str(error) or type(error).__name__), False
    except BaseException as error:  # a panic of a Rust library
        return encode_failure(f"{type(error).__name__}: {error}"), True


def resident_bytes() -> int:
    return _sizes()[1]


def _sizes() -> tuple[int, int]:
    """Return the address space and the resident memory of this process in bytes; zeros if unknown."""
    try:
        sizes = _STATM.read_bytes().split()
    except OSError:
        return 0, 0
    return int(sizes[0]) * _PAGE, int(sizes[1]) * _PAGE


def give_back() -> None:
    """Return freed memory to the system; otherwise glibc keeps all memory that one large page needed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def limit_itself() -> None:
    """Limit the address space of this process, and disable core files, which would contain page content."""
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    has = _sizes()[0]
    with suppress(OSError, ValueError):
        if has:
            resource.setrlimit(resource.RLIMIT_AS, (has + ROOM, has + ROOM))


if __name__ == "__main__":
    if sys.platform == "linux":  # let the kernel kill this process when its parent dies
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    # One thread for numpy, because thread pools would fill the address space on a machine with many cores.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    limit_itself()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)  # libraries, including C code, must not write to the answers
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    serve(sys.stdin.buffer, answers)
