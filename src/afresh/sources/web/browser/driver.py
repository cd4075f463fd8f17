"""Start and stop Playwright's driver, and watch and kill the browser processes that it starts."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import psutil
from playwright.async_api import Error, Playwright, async_playwright

from afresh.ops.processes import child_environment
from afresh.sources.web.browser.launch import NoBrowser

MB = 1024 * 1024
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)
MAX_STARTS = 4  # of the driver, in one run
_CLOSE_SECONDS = 3.0
_PREFIX = "afresh-"
_SHORT = "/tmp"  # noqa: S108 - we create a folder in it, with an unpredictable name
_MAX_FOLDER_CHARS = 40  # socket paths, which browsers create in the folder, may have 103 characters
_TRANSPORTS = ("playwright._impl.transport", "playwright._impl._transport")  # depends on the Playwright version
_PLACES = ("TMPDIR", "TEMP", "TMP")  # variables for the temporary folder


def first_process(token: str) -> psutil.Process | None:
    """Return the first process of the browser whose command line contains a token, or None."""
    for process in psutil.Process().children(recursive=True):
        with suppress(*_GONE):
            if any(token in word for word in process.cmdline()):
                return process
    return None


def family(first: psutil.Process | None) -> list[psutil.Process]:
    with suppress(*_GONE):
        return [first, *first.children(recursive=True)] if first else []
    return []


def heaviest_beyond(limit_mb: int, first: psutil.Process | None) -> psutil.Process | None:
    """Return the page process with the most memory if the whole browser exceeds the limit, else None."""
    sizes: dict[psutil.Process, int] = {}
    for process in family(first):
        with suppress(*_GONE):
            sizes[process] = process.memory_info().rss
    if sum(sizes.values()) <= limit_mb * MB:
        return None
    pages = []
    for process in sizes:
        with suppress(*_GONE):
            if "--type=renderer" in process.cmdline():
                pages.append(process)
    return max(pages or sizes, key=sizes.__getitem__)


def is_alive(process: psutil.Process) -> bool:
    with suppress(*_GONE):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def end(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(*_GONE):
            process.kill()


class Driver:
    """The Playwright driver of one run; its temporary folder for browsers is removed on closing."""

    def __init__(self) -> None:
        self._starts = 0
        self._manager: Any = None
        self._playwright: Playwright | None = None
        self._process: psutil.Process | None = None
        self._folder: str | None = None

    @property
    def is_up(self) -> bool:
        return self._playwright is not None and (self._process is None or is_alive(self._process))

    @property
    def may_start(self) -> bool:
        return self._starts < MAX_STARTS

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment for the driver and the browsers, with its temporary folder and without secrets."""
        return child_environment() | (dict.fromkeys(_PLACES, self._folder) if self._folder else {})

    async def playwright(self) -> Playwright:
        """Return Playwright; start the driver if needed, and raise NoBrowser if that fails."""
        if self._playwright is not None and self.is_up:
            return self._playwright
        await self.close()
        if not self.may_start:
            raise NoBrowser(f"the Playwright driver crashed {MAX_STARTS} times in this run")
        self._starts += 1
        self._playwright = await self._started()
        return self._playwright

    async def _started(self) -> Playwright:
        self._folder = _folder()
        self._manager = async_playwright()
        before = set(psutil.Process().children())
        try:
            with _driven_in(self.environment):
                playwright: Playwright = await self._manager.__aenter__()
        except NoBrowser:
            raise
        except Exception as error:  # the driver raises plain Exceptions
            message = (str(error).splitlines() or ["no reason given"])[0]
            raise NoBrowser(f"the Playwright driver does not start: {message[:200]}") from error
        finally:
            _retrieve_exception(self._manager)
        for process in set(psutil.Process().children()) - before:
            with suppress(psutil.Error):
                if "run-driver" in process.cmdline():
                    self._process = process
        return playwright

    async def close(self) -> None:
        """Stop the driver and all its child processes, and remove its temporary folder."""
        manager, self._manager, self._playwright = self._manager, None, None
        process, self._process = self._process, None
        folder, self._folder = self._folder, None
        if manager is not None:
            with suppress(Error, OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await manager.__aexit__()
        if process is not None:
            end([process])
        if folder is not None:
            await asyncio.to_thread(_remove, folder)


def _folder() -> str:
    """Create a folder whose path is short enough for the sockets of browsers."""
    usual = tempfile.gettempdir()  # called first: later it might return the new folder itself
    short = usual if len(usual) <= _MAX_FOLDER_CHARS or not os.access(_SHORT, os.W_OK) else _SHORT
    return tempfile.mkdtemp(prefix=_PREFIX, dir=short)


@contextmanager
def _driven_in(environment: dict[str, str]) -> Iterator[None]:
    """Make Playwright start its driver with this environment.

    Playwright has no such option: its function `get_driver_env` copies the environment of this process. This
    context replaces that function, which is in one of two modules, depending on Playwright's version.
    """
    for name in _TRANSPORTS:
        transport: Any = import_module(name) if find_spec(name) else None
        if (usual := getattr(transport, "get_driver_env", None)) is not None:
            break
    else:
        raise NoBrowser("this version of Playwright would pass keys and tokens to browsers: install another version")
    own = {name: value for name, value in usual().items() if name.startswith("PW_")}
    transport.get_driver_env = lambda: environment | own
    try:
        yield
    finally:
        transport.get_driver_env = usual


def _retrieve_exception(manager: Any) -> None:
    """Retrieve the exception with which the driver ended; otherwise asyncio logs a warning about it."""
    for name in ("_client", "_connection"):  # depends on the version of Playwright
        transport = getattr(getattr(manager, name, None), "_transport", None)
        future = getattr(transport, "on_error_future", None)
        if isinstance(future, asyncio.Future):
            future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _remove(folder: str) -> None:
    for _ in range(3):  # a killed process may have created another file meanwhile
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
