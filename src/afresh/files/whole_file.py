"""A file that is old or new and never in between, whatever happens while it is written."""

import errno
import glob
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from afresh.errors import KbError

TEMPORARY = ".tmp"
_LEFT_SECONDS = 3600  # a temporary file this old belongs to a process that was killed
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def read_whole(path: Path) -> bytes | None:
    """What a file holds; None where there is none."""
    try:
        return path.read_bytes() if _is_there(path) else None
    except OSError as error:
        raise KbError(f"cannot read {path}: {error.strerror or error}") from None


def write_whole(path: Path, data: bytes) -> bool:
    """Replace what a file holds, as `replace_whole` does; KbError says what to do about trouble."""
    try:
        return replace_whole(path, data)
    except OSError as error:
        why = error.strerror or str(error)
        raise KbError(f"cannot write {path}: {why}. It is as it was; mend that and try again") from None


def replace_whole(path: Path, data: bytes) -> bool:
    """Replace what a file holds, in one step; False and nothing touched where it holds just that already.

    On any error the file is as it was. A link is followed, so that it stays one; the mode is kept.
    """
    target = Path(os.path.realpath(path))
    if _holds(target, data):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_left(target)
    _replace(target, data)
    _sync_folder(target.parent)
    return True


def _is_there(path: Path) -> bool:
    """Whether there is such a file; OSError for a folder, a pipe or a device of that name."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is no ordinary file", str(path))
    return True


def _holds(target: Path, data: bytes) -> bool:
    return _is_there(target) and target.stat().st_size == len(data) and target.read_bytes() == data


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        file = os.open(temporary, _NEW, 0o666)
        try:
            _fill(file, data)
            _take_after(target, file)
            os.fsync(file)
        finally:
            os.close(file)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _fill(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _take_after(old: Path, file: int) -> None:
    """Give a new file the owner, where that is allowed, and the mode of the one whose place it takes."""
    with suppress(FileNotFoundError):
        was = old.stat()
        if hasattr(os, "fchmod"):
            with suppress(PermissionError):
                os.fchown(file, was.st_uid, was.st_gid)
            os.fchmod(file, was.st_mode & 0o7777)


def _remove_left(target: Path) -> None:
    long_ago = time.time() - _LEFT_SECONDS
    for left in target.parent.glob(f"{glob.escape(target.name)}.*{TEMPORARY}"):
        with suppress(OSError):
            if left.lstat().st_mtime < long_ago:
                left.unlink()


def _sync_folder(folder: Path) -> None:
    """Have the disk know the new name; where it cannot be asked, the file is whole all the same."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
