"""Settings of folders and the files in them."""

from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import flag, text, texts, whole
from afresh.urls.globs import MAX_GLOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """Which files of a folder are read, and what tells that one changed."""

    verify: str = text(
        "stat",
        "what tells that a file changed: `stat` its size and time, `hash` what it holds (every file is read)",
        choices=("stat", "hash"),
    )
    gitignore: bool = flag(True, "leave out what `.gitignore` files name")
    ignore: tuple[str, ...] = texts(
        "more patterns to leave out, written as in `.gitignore`, each of at most 200 characters",
        form=forms.glob,
        most=MAX_GLOBS,
    )
    hidden: bool = flag(False, "also read files and folders whose names begin with a dot")
    symlinks: bool = flag(False, "follow symbolic links that stay inside the folder")
    max_file_bytes: int = whole(10_485_760, "larger files are left out", 1, 1_073_741_824)
    max_files: int = whole(200_000, "files of one folder at most", 1, 10_000_000)
