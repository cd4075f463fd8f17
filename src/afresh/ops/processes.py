"""How processes of ours begin and end."""

import asyncio
import os
from asyncio.subprocess import Process
from contextlib import suppress

_PIECE = 65_536
# What a process needs to run at all; keys, tokens and settings are never among it.
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


def passed_on() -> dict[str, str]:
    """Return the environment for a process that handles outside input: it holds no secret."""
    return {name: value for name, value in os.environ.items() if _is_passed_on(name)}


def _is_passed_on(name: str) -> bool:
    return name.upper() in _PASSED_ON or name.upper().startswith("LC_")


async def reaped(process: Process) -> int:
    """The exit code of a process that ends; what is left in its pipes is thrown away.

    asyncio tells of an end only when the pipes are closed too, which they never are while somebody pauses
    reading a full one.
    """
    await asyncio.gather(_drained(process.stdout), _drained(process.stderr))
    return await process.wait()


async def _drained(stream: asyncio.StreamReader | None) -> None:
    with suppress(OSError):
        while stream is not None and await stream.read(_PIECE):
            pass
