"""A folder of Markdown files as an external store: one file for each page, with its mark on top.

A file is named by the address of its page, so it stays where it is when the page changes, and is old or new
but never in between. Its id also names page and content: dropping an old version leaves a newer one alone.
Files without our mark belong to others: they are listed and never touched.
"""

import asyncio
import errno
import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from afresh.config.sinks import SinkSettings
from afresh.errors import SinkBusy, SinkError, SinkFull, SinkGone, SinkRefused
from afresh.files.whole_file import TEMPORARY, replace_whole
from afresh.sync.remote import Mark, Remote, RemoteState, Upload

T = TypeVar("T")
FENCE = "---"
LONGEST_HEAD = 16_384
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL, errno.EISDIR, errno.ENOTDIR)
_ODD = re.compile(r"[^a-z0-9._-]+")


def open_sink(name: str, settings: SinkSettings) -> "FolderSink":
    """The folder that settings name."""
    return FolderSink(name, Path(settings.path or name).expanduser(), settings.at_once)


class FolderSink:
    """Fulfils `ports.sinks.Sink` with files."""

    def __init__(self, name: str, folder: Path, at_once: int = 10) -> None:
        self.name = name
        self.at_once = at_once
        self.folder = folder

    async def put(self, upload: Upload) -> Remote:
        """Write the file of a page; one that somebody else put in its place is left alone."""
        return await self._off_loop(lambda: self._put(upload))

    async def drop(self, remote_id: str) -> None:
        """Delete a file, if it still is the version that is meant."""
        await self._off_loop(lambda: self._drop(remote_id))

    async def look(self, remote_id: str) -> Remote | None:
        """A file as it stands."""
        return await self._off_loop(lambda: self._look(remote_id))

    async def all(self) -> AsyncIterator[Remote]:
        """Every file in the folder."""
        for relative in await self._off_loop(self._files):
            found = await self._off_loop(partial(self._read, relative))
            if found is not None:
                yield found

    async def close(self) -> None:
        """Nothing is open."""

    def _put(self, upload: Upload) -> Remote:
        self._check_folder()
        relative = file_name(upload)
        there = self._read(relative)
        if there is not None and there.mark is None:
            raise SinkRefused(f"{self.folder / relative} is not ours: move it away")
        replace_whole(self.folder / relative, text_of(upload).encode())
        written = self._read(relative)
        if written is None:
            raise SinkBusy(f"{relative} was deleted while it was written")
        return written

    def _drop(self, remote_id: str) -> None:
        found = self._look(remote_id)
        if found is None:
            return
        path = self.folder / relative_of(remote_id)
        path.unlink(missing_ok=True)
        if path.parent != self.folder:
            with suppress(OSError):  # others are in it
                path.parent.rmdir()

    def _look(self, remote_id: str) -> Remote | None:
        found = self._read(relative_of(remote_id))
        return found if found is not None and found.id == remote_id else None

    def _check_folder(self) -> None:
        if self.folder.is_dir():
            return
        if self.folder.exists() and not self.folder.is_dir():  # another upload may have made it just now
            raise SinkGone(f"{self.folder} is a file: sinks.{self.name}.path has to be a folder")
        if not self.folder.absolute().parent.is_dir():
            raise SinkGone(f"{self.folder} is not there, nor is the folder above it")

    def _files(self) -> list[str]:
        self._check_folder()
        return sorted(
            Path(where, name).relative_to(self.folder).as_posix()
            for where, _, names in os.walk(self.folder)
            for name in names
            if not name.endswith(TEMPORARY)
        )

    def _read(self, relative: str) -> Remote | None:
        path = self.folder / relative
        try:
            with path.open("rb") as file:
                head = _head(file.read(LONGEST_HEAD))
                file.seek(0)
                mark = None if head is None else _mark(head, file.read())
                size = file.tell()
        except (FileNotFoundError, IsADirectoryError):
            return None
        if head is None or mark is None:
            return Remote(id=relative, name=relative, state=RemoteState.ACTIVE, mark=None)
        return Remote(
            id=f"{relative}#{mark.page}-{mark.hash[:16]}",
            name=head.get("name", relative),
            state=RemoteState.ACTIVE,
            mark=mark,
            url=head.get("url"),
            size=size,
        )

    async def _off_loop(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise _trouble(error) from None


def file_name(upload: Upload) -> str:
    """Where the file of a page is, from the folder: by source and address, whatever its content."""
    source = _slug(upload.mark.source, 60)
    digest = hashlib.sha256(f"{upload.mark.source}\n{upload.url}".encode()).hexdigest()[:10]
    return f"{source}/{_slug(upload.url.partition('://')[2] or upload.url, 80)}-{digest}.md"


def relative_of(remote_id: str) -> str:
    """The path in the folder that an id names."""
    relative = remote_id.rpartition("#")[0] or remote_id
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise SinkRefused(f"{remote_id} is no file of the folder")
    return relative


def text_of(upload: Upload) -> str:
    """The file of a page: front matter that any reader of YAML understands, and the Markdown."""
    body = upload.markdown if upload.markdown.endswith("\n") else f"{upload.markdown}\n"
    head = {
        "title": upload.title,
        "url": upload.url,
        "language": upload.language,
        "name": upload.name,
        "afresh_store": upload.mark.store,
        "afresh_source": upload.mark.source,
        "afresh_page": str(upload.mark.page),
        "afresh_hash": upload.mark.hash,
        "afresh_body": hashlib.sha256(body.encode()).hexdigest(),
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items() if value]
    return "\n".join([FENCE, *lines, FENCE, "", body])


def _slug(text: str, longest: int) -> str:
    return _ODD.sub("-", text.lower()).strip("-.")[:longest].strip("-.") or "page"


def _head(data: bytes) -> dict[str, str] | None:
    """The front matter of a file that we wrote; None of any other."""
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[0] != FENCE or FENCE not in lines[1:]:
        return None
    head: dict[str, str] = {}
    for line in lines[1 : lines.index(FENCE, 1)]:
        key, _, value = line.partition(": ")
        with suppress(ValueError):
            head[key] = str(json.loads(value))
    return head if "afresh_store" in head else None


def _mark(head: dict[str, str], data: bytes) -> Mark | None:
    """The mark of a file; of one whose text was changed by hand it names no content that we know."""
    try:
        page = int(head["afresh_page"])
        body = data.split(f"\n{FENCE}\n\n".encode(), 1)[1]
        same = hashlib.sha256(body).hexdigest() == head["afresh_body"]
        known = head["afresh_hash"] if same else f"changed by hand: {hashlib.sha256(body).hexdigest()}"
        return Mark(store=head["afresh_store"], source=head["afresh_source"], page=page, hash=known)
    except (KeyError, ValueError, IndexError):
        return None


def _trouble(error: OSError) -> SinkError:
    why = f"{error.filename or 'the folder'}: {error.strerror or error}"
    if error.errno in _FULL:
        return SinkFull(why)
    return SinkRefused(why) if error.errno in _FORBIDDEN else SinkBusy(why)
