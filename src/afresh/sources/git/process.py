"""Runs git: bounded in time, output and size of files, and never left behind."""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from afresh.errors import SourceError
from afresh.ops.processes import reaped

MOST_OUTPUT = 128 * 1024**2
MOST_MEMORY = 4 * 1024**3  # address space, which maps packs too
_TOLD = 8_192  # bytes of what git complains that are kept
_PIECE = 65_536
# Packs are the one thing of unknown size that git writes, so the largest file it may write bounds a download.
_BOUNDED = 'ulimit -f "$1"; ulimit -v "$2" 2>/dev/null || :; shift 2; exec "$@"'


class GitError(SourceError):
    """A call of git did not end well."""

    def __init__(
        self, reason: str, *, late: bool = False, explained: bool = True, named: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(reason)
        self.named = named  # the ids that git complained of
        self.late = late
        self.explained = explained  # it is known to be no fault of the clone


class GitTooMuch(GitError):
    """git said more than anybody reads."""


class GitDamage(GitError):
    """What a clone holds is not what it should hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of git."""

    args: Sequence[str]
    env: Mapping[str, str]
    folder: str
    seconds: float
    stdin: bytes = b""
    largest_file: int | None = None
    kept_open: tuple[int, ...] = ()  # locks that last as long as the process does


def program() -> str:
    """Where git is."""
    found = shutil.which("git")
    if found is None:
        raise GitError(
            "git is not installed, or not on the PATH: install it (apt install git, brew install git)"
        )
    return found


async def output_of(call: Call) -> bytes:
    """What a call of git prints; GitError with what it complains of if it fails."""
    process = await start(call)
    told = bytearray()
    tasks = [
        asyncio.ensure_future(each)
        for each in (_read(process), _listen(process, told), _feed(process, call.stdin))
    ]
    try:
        async with asyncio.timeout(call.seconds) as deadline:
            said, *_ = await asyncio.gather(*tasks)
            code = await process.wait()
    except TimeoutError:
        if not deadline.expired():
            raise
        raise GitError(f"git gave no answer within {call.seconds:g} s", late=True) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await end(process)
    if code:
        raise GitError(bytes(told).decode("utf-8", "replace").strip() or f"git ended with {code}")
    return said or b""


async def start(call: Call) -> Process:
    """A git process in a group of its own, so that it is ended with all that it started."""
    command = [program(), *call.args]
    if call.largest_file is not None:
        blocks, memory = str(call.largest_file // 512 + 1), str(MOST_MEMORY // 1024)
        command = ["/bin/sh", "-c", _BOUNDED, "sh", blocks, memory, *command]
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=call.env,
            cwd=call.folder,
            start_new_session=True,
            pass_fds=call.kept_open,
            umask=0o077,  # what it writes is for this user alone, in whatever folder
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror or error}") from None


async def end(process: Process) -> None:
    """End a process and all that it started, if it still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    await reaped(process)


async def _read(process: Process) -> bytes | None:
    pieces, size = [], 0
    while process.stdout and (piece := await process.stdout.read(_PIECE)):
        size += len(piece)
        if size > MOST_OUTPUT:
            raise GitTooMuch(f"git said more than {MOST_OUTPUT // 1024**2} MB")
        pieces.append(piece)
    return b"".join(pieces)


async def _listen(process: Process, told: bytearray) -> bytes | None:
    while process.stderr and (piece := await process.stderr.read(_PIECE)):
        told += piece
        del told[:-_TOLD]
    return None


async def _feed(process: Process, data: bytes) -> bytes | None:
    if process.stdin is None:
        return None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    return None
