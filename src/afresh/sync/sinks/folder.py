"""Write pages to a folder of Markdown files: one file per page, with the tag of afresh in its front matter.

A file is named after the URL of its page, so that the name stays the same when the page changes. Writes are
atomic. A document id also contains the page id and the content hash, so that deleting an old version does not
delete a newer one in the same file. Files without the tag are listed but never changed.
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

from afresh.config.server import SinkSettings
from afresh.dataclass import dataclass
from afresh.errors import SinkBusy, SinkFull, SinkMissing, SinkRefused
from afresh.files import TEMPORARY, replace_whole
from afresh.ports import SinkKind
from afresh.sync.copy import OwnerTag, Remote, RemoteState, Upload

T = TypeVar("T")
FENCE = "---"
MAX_HEAD_BYTES = 16_384
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL, errno.EISDIR, errno.ENOTDIR)
_ODD = re.compile(r"[^a-z0-9._-]+")


def open_sink(name: str, settings: SinkSettings) -> "FolderSink":
    return FolderSink(name, Path(settings.path or name).expanduser(), settings.at_once)


@dataclass(slots=True)
class FolderSink:
    name: str
    folder: Path
    at_once: int = 10

    async def put(self, upload: Upload) -> Remote:
        """Write the file of a page; raise SinkRefused if that would overwrite a file of the user."""
        return await self._off_loop(lambda: self._put(upload))

    async def drop(self, remote_id: str) -> None:
        """Delete a file, but not if its content has changed: `remote_id` contains the content hash."""
        await self._off_loop(lambda: self._drop(remote_id))

    async def look(self, remote_id: str) -> Remote | None:
        return await self._off_loop(lambda: self._look(remote_id))

    async def all(self) -> AsyncIterator[Remote]:
        for relative in await self._off_loop(self._files):
            if (found := await self._off_loop(partial(self._read, relative))) is not None:
                yield found

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _put(self, upload: Upload) -> Remote:
        self._check_folder()
        relative = file_name(upload)
        there = self._read(relative)
        if there is not None and there.mark is None:
            raise SinkRefused(
                f"{self.folder / relative} was not written by afresh and is not overwritten: move or rename it"
            )
        replace_whole(self.folder / relative, text_of(upload).encode())
        if (written := self._read(relative)) is None:
            raise SinkBusy(f"{relative} was deleted while afresh was writing it")
        return written

    def _drop(self, remote_id: str) -> None:
        if self._look(remote_id) is None:
            return
        path = self.folder / relative_of(remote_id)
        path.unlink(missing_ok=True)
        if path.parent != self.folder:
            with suppress(OSError):  # not empty
                path.parent.rmdir()

    def _look(self, remote_id: str) -> Remote | None:
        found = self._read(relative_of(remote_id))
        return found if found is not None and found.id == remote_id else None

    def _check_folder(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise SinkMissing(f"{self.folder} is a file: sinks.{self.name}.path has to be a folder")
        if not self.folder.absolute().parent.is_dir():
            raise SinkMissing(f"neither {self.folder} nor the folder above it exists: check sinks.{self.name}.path")

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
                head = _head(file.read(MAX_HEAD_BYTES))
                file.seek(0)
                mark = None if head is None else _mark(head, file.read())
                size = file.tell()
        except (FileNotFoundError, IsADirectoryError):
            return None
        if head is None or mark is None:
            return Remote(id=relative, name=relative, state=RemoteState.ACTIVE, mark=None)
        id_, name = f"{relative}#{mark.page}-{mark.hash[:16]}", head.get("name", relative)
        return Remote(id_, name, RemoteState.ACTIVE, mark, url=head.get("url"), size=size)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            kind = SinkFull if error.errno in _FULL else SinkRefused if error.errno in _FORBIDDEN else SinkBusy
            raise kind(f"{error.filename or 'the folder'}: {error.strerror or error}") from None


def file_name(upload: Upload) -> str:
    """Return the path of the file of a page, relative to the folder."""
    source = _slug(upload.mark.source, 60)
    digest = hashlib.sha256(f"{upload.mark.source}\n{upload.url}".encode()).hexdigest()[:10]
    return f"{source}/{_slug(upload.url.partition('://')[2] or upload.url, 80)}-{digest}.md"


def relative_of(remote_id: str) -> str:
    relative = remote_id.rpartition("#")[0] or remote_id
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise SinkRefused(f"{remote_id} is not the id of a file in the folder")
    return relative


def text_of(upload: Upload) -> str:
    """Return the text of a file: YAML front matter, then the Markdown."""
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


def _slug(text: str, max_chars: int) -> str:
    return _ODD.sub("-", text.lower()).strip("-.")[:max_chars].strip("-.") or "page"


def _head(data: bytes) -> dict[str, str] | None:
    """Parse the front matter of a file; return None if afresh did not write it."""
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[0] != FENCE or FENCE not in lines[1:]:
        return None
    head: dict[str, str] = {}
    for line in lines[1 : lines.index(FENCE, 1)]:
        key, _, value = line.partition(": ")
        with suppress(ValueError):
            head[key] = str(json.loads(value))
    return head if "afresh_store" in head else None


def _mark(head: dict[str, str], data: bytes) -> OwnerTag | None:
    """Return the tag in the front matter; after a manual edit, with a wrong hash, so that a sync replaces the file."""
    try:
        page = int(head["afresh_page"])
        digest = hashlib.sha256(data.split(f"\n{FENCE}\n\n".encode(), 1)[1]).hexdigest()
        known = head["afresh_hash"] if digest == head["afresh_body"] else f"changed by hand: {digest}"
        return OwnerTag(store=head["afresh_store"], source=head["afresh_source"], page=page, hash=known)
    except (KeyError, ValueError, IndexError):
        return None


KIND = SinkKind(open=open_sink, needs=("path",))
