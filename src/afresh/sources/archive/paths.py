"""Convert between the names of archive entries and their URLs, such as `file:///a/docs.zip!/x.md`."""

import re
from typing import NamedTuple

from afresh.model.fetch import Validators
from afresh.urls.canonical import MAX_LENGTH
from afresh.urls.files import SCHEME, file_url, path_of

INSIDE = "!/"  # separates the URL of an archive from the name of an entry
ZIP_ENDINGS = (".zip",)
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")

NESTED = "an archive within an archive"
OUTSIDE = "its name leads out of the archive"
TOO_LONG = "its name is too long"

_DRIVE = re.compile(r"[A-Za-z]:")
_SEPARATORS = re.compile(r"[/\\]")


class ArchiveEntry(NamedTuple):
    name: str  # as in its URL; bytes that are not UTF-8 are represented by lone surrogates
    size: int  # in bytes, unpacked
    validators: Validators
    place: int = 0  # its offset (tar) or its index in the directory (ZIP)
    refusal: str | None = None  # why the entry is not read; None if it is


def is_archive(name: str) -> bool:
    return name.lower().endswith(ZIP_ENDINGS + TAR_ENDINGS)


def entry_url(archive: str, name: str) -> str:
    return archive + INSIDE + file_url(name).removeprefix(SCHEME)


def entry_name(archive: str, url: str) -> str | None:
    start = archive + INSIDE
    return path_of(url[len(start) :]) if url.startswith(start) else None


def plain_name(raw: str) -> str:
    """Remove empty parts and `.` from a name: `./a//b` is `a/b`."""
    return "/".join(part for part in raw.split("/") if part not in ("", "."))


def name_refusal(raw: str, archive: str) -> str | None:
    if "\0" in raw or raw.startswith(("/", "\\")) or _DRIVE.match(raw) or ".." in _SEPARATORS.split(raw):
        return OUTSIDE
    if is_archive(raw):
        return NESTED
    return TOO_LONG if len(entry_url(archive, plain_name(raw))) > MAX_LENGTH else None
