"""Run git within limits of time, output and file size, and read the files of a clone with one process."""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from afresh.dataclass import dataclass
from afresh.errors import SourceError
from afresh.files import make_private_folder
from afresh.ops.processes import wait_for_exit
from afresh.sources.git.address import blob_id

MAX_OUTPUT_BYTES = 128 * 1024**2
MAX_MEMORY_BYTES = 4 * 1024**3  # of address space, into which git also maps its pack files
_KEPT_ERROR_BYTES = 8_192  # of git's error output that are used
_PIECE_BYTES = 65_536
# Downloads arrive in pack files, so a limit for the size of files also limits a download.
_BOUNDED = 'ulimit -f "$1"; ulimit -v "$2" 2>/dev/null || :; shift 2; exec "$@"'
READ_SECONDS = 60.0


class GitError(SourceError):
    def __init__(
        self, reason: str, *, late: bool = False, explained: bool = True, named: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(reason)
        self.named = named  # the ids that the error message contains
        self.late = late
        self.explained = explained  # the cause is known and is not a damaged clone


class GitOutputTooLarge(GitError):
    """Git wrote more output than allowed."""


class DamagedClone(GitError):
    """A clone lacks files or has invalid ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCall:
    args: Sequence[str]
    env: Mapping[str, str]
    folder: str
    seconds: float
    stdin: bytes = b""
    largest_file: int | None = None
    kept_open: tuple[int, ...] = ()  # file descriptors of locks that the process holds until it ends


async def output_of(call: GitCall) -> bytes:
    """Run git and return its output; if it fails, raise GitError with its error output."""
    process = await start(call)
    errors = bytearray()
    work = (_read_output(process), _read_errors(process, errors), _feed(process, call.stdin))
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        async with asyncio.timeout(call.seconds) as deadline:
            output, *_ = await asyncio.gather(*tasks)
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
        raise GitError(bytes(errors).decode("utf-8", "replace").strip() or f"git failed with exit code {code}")
    return output or b""


async def start(call: GitCall) -> Process:
    """Start git in its own process group, so that `end` can kill it with all its children."""
    if (program := shutil.which("git")) is None:
        raise GitError("git is not installed, or not on the PATH: install it (apt install git, brew install git)")
    command = [program, *call.args]
    if call.largest_file is not None:
        blocks, memory = str(call.largest_file // 512 + 1), str(MAX_MEMORY_BYTES // 1024)
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
            umask=0o077,  # no other user may read the files that git writes
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror or error}") from None


async def end(process: Process) -> None:
    """Kill a process and all its children, if it is still running."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    await wait_for_exit(process)


async def _read_output(process: Process) -> bytes | None:
    pieces, size = [], 0
    while process.stdout and (piece := await process.stdout.read(_PIECE_BYTES)):
        size += len(piece)
        if size > MAX_OUTPUT_BYTES:
            raise GitOutputTooLarge(f"git wrote more than {MAX_OUTPUT_BYTES // 1024**2} MB")
        pieces.append(piece)
    return b"".join(pieces)


async def _read_errors(process: Process, errors: bytearray) -> None:
    while process.stderr and (piece := await process.stderr.read(_PIECE_BYTES)):
        errors += piece
        del errors[:-_KEPT_ERROR_BYTES]


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()


class BlobReader:
    """Reads blobs by id with one git process, one at a time, and checks that the content matches the id."""

    def __init__(self, call: GitCall) -> None:
        self._call = call
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def read(self, blob: str, size: int) -> bytes:
        """Return the content of a blob, which the clone must have with this size."""
        async with self._turn:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    return await self._ask(blob, size)
            except BaseException as error:
                await self._end()  # the pipe may still contain output of this request
                if isinstance(error, TimeoutError):
                    raise GitError("git gave no answer in time", late=True) from None
                raise

    async def close(self) -> None:
        async with self._turn:
            await self._end()

    async def _ask(self, blob: str, size: int) -> bytes:
        if self._process is None:
            self._process = await start(self._call)
        source, sink = self._process.stdout, self._process.stdin
        if source is None or sink is None:
            raise GitError("git was started without pipes")
        try:
            sink.write(f"{blob}\n".encode())
            await sink.drain()
            if await source.readline() != f"{blob} blob {size}\n".encode():
                raise DamagedClone("a file is missing from the clone")
            data = (await source.readexactly(size + 1))[:-1]
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            raise DamagedClone("the clone is damaged") from None
        if blob_id(data, blob) != blob:
            raise DamagedClone("a file in the clone does not match its id")
        return data

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await end(process)


def private_folder(folder: Path) -> None:
    """Create a folder that only this user can access; raise GitError if another user owns it."""
    try:
        make_private_folder(folder)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise GitError(f"the folder of clones {folder} belongs to another user: change git.cache_dir")
        if found.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise GitError(f"the folder of clones {folder} cannot be used: {error.strerror}") from None
