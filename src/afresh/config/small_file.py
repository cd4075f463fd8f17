"""Reads a file that the operator names: a regular one, whole, bounded, and without waiting for anybody."""

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_small_file(path: Path, max_bytes: int) -> bytes:
    """What a regular file holds; OSError for a pipe, a device or a larger one.

    No more is read than its size says: files that the kernel makes up while they are read have none.
    """
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if found.st_size > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes // 1000:,} KB", str(path))
        return file.read(found.st_size)
