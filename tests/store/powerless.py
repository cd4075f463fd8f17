"""Being an ordinary user for a while: to the superuser, who runs many tests, nothing is read-only."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

VERSION_3 = 0x20080522
OVERRIDES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@contextmanager
def powerless() -> Iterator[None]:
    """Permissions of files hold for this thread, and for those it starts."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    powers = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    _check(libc.capget(header, powers))
    before = powers[0]
    powers[0] = before & ~OVERRIDES
    _check(libc.capset(header, powers))
    try:
        yield
    finally:
        powers[0] = before
        _check(libc.capset(header, powers))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "the powers of this thread cannot be changed")
