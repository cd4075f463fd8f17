"""Files and folders that only their owner can read, from the moment they exist and whatever the umask is.

On Windows the folder of the user protects what is in it; there files are only created.
"""

import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    """Make the folders that are missing on the way, each for its owner alone; others stay as they are."""
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # raises what is wrong with it


def make_private_file(path: Path) -> None:
    """Make an empty file where none is.

    It is never opened where the system can do without: closing a handle of a SQLite file drops the locks that
    this process holds on it.
    """
    with suppress(FileExistsError):
        try:
            os.mknod(path, FILE_MODE | stat.S_IFREG)
        except (AttributeError, PermissionError):  # Windows, macOS
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def narrow_file(path: Path) -> None:
    """Take the rights of others on a file of ours; what is no regular file of this user stays as it is."""
    if os.name == "nt":
        return
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def open_private_log(path: Path) -> FileIO:
    """Open a file to append to; one that is there already is narrowed first."""
    narrow_file(path)
    return FileIO(path, "ab", opener=lambda name, flags: os.open(name, flags, FILE_MODE))
