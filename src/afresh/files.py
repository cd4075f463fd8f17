"""Read files with size limits; write files atomically, and private ones that only their owner can read."""

import errno
import glob
import os
import stat
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from afresh.errors import KbError

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077
TEMPORARY = ".tmp"
_LEFT_SECONDS = 3600  # an older temporary file belongs to a killed process
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# Opening a pipe does not wait for its writer; child processes do not inherit the handle.
READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def make_private_folder(folder: Path) -> None:
    """Create missing folders, readable only by their owner; existing ones stay as they are."""
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # raises the actual error


def make_private_file(path: Path) -> None:
    """Create an empty private file if there is none."""
    with suppress(FileExistsError):
        try:  # without opening it: closing a handle of a SQLite file releases the locks of this process
            os.mknod(path, FILE_MODE | stat.S_IFREG)
        except (AttributeError, PermissionError):  # Windows, macOS
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def narrow_file(path: Path) -> None:
    """Remove all permissions of other users from a regular file that this user owns."""
    if os.name == "nt":  # the permissions of the user's folder protect private files
        return
    with suppress(OSError):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def open_private_log(path: Path) -> FileIO:
    """Open a private file for appending; remove the permissions of other users if it exists."""
    narrow_file(path)
    return FileIO(path, "ab", opener=lambda name, flags: os.open(name, flags, FILE_MODE))


def read_whole(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if _is_there(path) else None
    except OSError as error:
        raise KbError(f"cannot read {path}: {error.strerror or error}") from None


def write_whole(path: Path, data: bytes) -> bool:
    """Replace the content of a file like `replace_whole`, but raise KbError with advice instead of OSError."""
    try:
        return replace_whole(path, data)
    except OSError as error:
        why = error.strerror or str(error)
        raise KbError(f"cannot write {path}: {why}. The file is unchanged; fix the cause and try again") from None


def replace_whole(path: Path, data: bytes) -> bool:
    """Replace a file atomically, with its mode and through a symbolic link; return False if the content is the same."""
    target = Path(os.path.realpath(path))
    if _is_there(target) and target.stat().st_size == len(data) and target.read_bytes() == data:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale_temporaries(target)
    _replace(target, data)
    _sync_folder(target.parent)
    return True


def _is_there(path: Path) -> bool:
    """Return whether a regular file exists; raise OSError for a folder, pipe or device."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return True


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f"{target.name}.{os.urandom(4).hex()}{TEMPORARY}")
    try:
        file, rest = os.open(temporary, _NEW, 0o666), memoryview(data)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            _copy_permissions(target, file)
            os.fsync(file)
        finally:
            os.close(file)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _copy_permissions(old: Path, file: int) -> None:
    with suppress(FileNotFoundError):
        was = old.stat()
        if hasattr(os, "fchmod"):
            with suppress(PermissionError):
                os.fchown(file, was.st_uid, was.st_gid)
            os.fchmod(file, was.st_mode & 0o7777)


def _remove_stale_temporaries(target: Path) -> None:
    long_ago = time.time() - _LEFT_SECONDS
    for left in target.parent.glob(f"{glob.escape(target.name)}.*{TEMPORARY}"):
        with suppress(OSError):
            if left.lstat().st_mtime < long_ago:
                left.unlink()


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk; ignore errors, because the file itself is already complete."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError for a pipe or a device, which might never end."""
    file = os.fdopen(os.open(path, READ_FLAGS), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def read_small_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file; raise OSError for a pipe, a device or a larger file.

    At most the reported size is read: files such as those in /proc report 0 and could be endless.
    """
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes // 1000:,} KB", str(path))
        return file.read(size)
