"""Provide the environment of child processes, and wait for their exit."""

import asyncio
import os
from asyncio.subprocess import Process
from contextlib import suppress

_PIECE = 65_536
# Variables that a process needs to run, without keys, tokens and settings.
_PASSED_ON = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONHASHSEED", "LD_LIBRARY_PATH"),
        *("DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "FONTCONFIG_PATH", "FONTCONFIG_FILE"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
        *("SYSTEMROOT", "SYSTEMDRIVE", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES"),
        *("PLAYWRIGHT_BROWSERS_PATH", "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS"),
    }
)


def child_environment() -> dict[str, str]:
    """Return an environment without secrets, for a process that handles untrusted input."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _PASSED_ON or name.upper().startswith("LC_")
    }


async def wait_for_exit(process: Process) -> int:
    """Read the output of a process to its end, because its exit is reported only then; return its exit code."""
    await asyncio.gather(_drain(process.stdout), _drain(process.stderr))
    return await process.wait()


async def _drain(stream: asyncio.StreamReader | None) -> None:
    with suppress(OSError):
        while stream is not None and await stream.read(_PIECE):
            pass
