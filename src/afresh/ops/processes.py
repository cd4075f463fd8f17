"""Environment and exit of child processes."""

import asyncio
import os
from asyncio.subprocess import Process
from contextlib import suppress

_PIECE = 65_536
# What a process needs to run; it includes no keys, tokens or settings.
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
    """Return the environment for a process that handles outside input: it holds no secret."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _PASSED_ON or name.upper().startswith("LC_")
    }


async def wait_for_exit(process: Process) -> int:
    """Return the exit code of a process that ends, and discard the rest of its output.

    asyncio reports an exit only when the pipes are closed, which never happens while a full one is not read.
    """
    await asyncio.gather(_drain(process.stdout), _drain(process.stderr))
    return await process.wait()


async def _drain(stream: asyncio.StreamReader | None) -> None:
    with suppress(OSError):
        while stream is not None and await stream.read(_PIECE):
            pass
