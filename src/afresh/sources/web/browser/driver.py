"""Playwright's driver, which starts browsers: with a folder for what they leave, started anew if it dies."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import psutil

from afresh.ops.processes import passed_on
from afresh.sources.web.browser.launch import NoBrowser
from afresh.sources.web.browser.processes import end, is_alive

if TYPE_CHECKING:
    from playwright.async_api import Playwright

MOST_STARTS = 4  # in one run
_CLOSE_SECONDS = 3.0
_PREFIX = "afresh-"
_SHORT = "/tmp"  # noqa: S108 - a folder of our own is made in it, by a name that nobody can foresee
_LONGEST = 40  # characters of a path: with what browsers add it has to stay below 104
_TRANSPORTS = ("playwright._impl.transport", "playwright._impl._transport")  # by the version of Playwright
_PLACES = ("TMPDIR", "TEMP", "TMP")  # what programs ask for the place of temporary files


class Driver:
    """The driver of one run; its folder goes with it, and with that what browsers left there."""

    def __init__(self) -> None:
        self._starts = 0
        self._manager: Any = None
        self._playwright: Playwright | None = None
        self._process: psutil.Process | None = None
        self._folder: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether it runs, as far as the system tells."""
        return self._playwright is not None and (self._process is None or is_alive(self._process))

    @property
    def may_start(self) -> bool:
        """Whether it has not died too often."""
        return self._starts < MOST_STARTS

    @property
    def environment(self) -> dict[str, str]:
        """What the driver and browsers get of ours: no key, no token, and where temporary files belong."""
        return passed_on() | (dict.fromkeys(_PLACES, self._folder) if self._folder else {})

    async def playwright(self) -> "Playwright":
        """What starts browsers; NoBrowser if the driver cannot be had any more."""
        if self._playwright is not None and self.is_up:
            return self._playwright
        await self.close()
        if not self.may_start:
            raise NoBrowser(f"the driver of the browsers ended {MOST_STARTS} times in this run")
        self._starts += 1
        self._playwright = await self._started()
        return self._playwright

    async def _started(self) -> "Playwright":
        from playwright.async_api import async_playwright

        self._folder = _folder()
        self._manager = async_playwright()
        before = set(psutil.Process().children())
        try:
            with _driven_in(self.environment):
                playwright: Playwright = await self._manager.__aenter__()
        except NoBrowser:
            raise
        except Exception as error:  # the driver tells its trouble by bare exceptions
            said = (str(error).splitlines() or ["no reason given"])[0]
            raise NoBrowser(f"the driver of the browsers does not start: {said[:200]}") from error
        finally:
            _read_its_end(self._manager)
        self._process = _driver_among(set(psutil.Process().children()) - before)
        return playwright

    async def close(self) -> None:
        """End it and all below it, and remove its folder."""
        from playwright.async_api import Error

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
    """A new folder whose name is short enough for sockets of browsers in it."""
    usual = tempfile.gettempdir()  # asked for now, or it might become the folder itself
    short = usual if len(usual) <= _LONGEST or not os.access(_SHORT, os.W_OK) else _SHORT
    return tempfile.mkdtemp(prefix=_PREFIX, dir=short)


@contextmanager
def _driven_in(environment: dict[str, str]) -> Iterator[None]:
    """While it is open, Playwright starts its driver in that environment.

    It has no option for that: it copies all of ours, by a function whose module has two names.
    """
    for name in _TRANSPORTS:
        transport: Any = import_module(name) if find_spec(name) else None
        usual = getattr(transport, "get_driver_env", None)
        if usual is not None:
            break
    else:
        raise NoBrowser("this version of Playwright would hand our keys and tokens to browsers; use another")
    own = {name: value for name, value in usual().items() if name.startswith("PW_")}
    transport.get_driver_env = lambda: environment | own
    try:
        yield
    finally:
        transport.get_driver_env = usual


def _read_its_end(manager: Any) -> None:
    """Have it heard how the driver ended, or asyncio complains that nobody wanted to know."""
    for name in ("_client", "_connection"):  # by the version of Playwright
        transport = getattr(getattr(manager, name, None), "_transport", None)
        future = getattr(transport, "on_error_future", None)
        if isinstance(future, asyncio.Future):
            future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _driver_among(started: set[psutil.Process]) -> psutil.Process | None:
    for process in started:
        with suppress(psutil.Error):
            if "run-driver" in process.cmdline():
                return process
    return None


def _remove(folder: str) -> None:
    for _ in range(3):  # a process that was just killed may have made one more file
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
