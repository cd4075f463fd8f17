"""Where the token for GitHub comes from: the setting, the environment, or the `gh` program."""

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress

from afresh.ops.processes import reaped

VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")
_SECONDS = 5.0
_LONGEST = 1_024


class Token:
    """The token for one server, looked for when it is first needed."""

    def __init__(
        self, setting: str | None, environment: Mapping[str, str], host: str, *, anonymous: bool = False
    ) -> None:
        self.is_anonymous = anonymous  # none is shown, whatever there is
        self._setting = setting
        self._environment = environment
        self._host = host
        self._found: asyncio.Future[str | None] | None = None

    async def get(self) -> str | None:
        """The token, or None where there is none."""
        if self.is_anonymous:
            return None
        if self._found is None:
            self._found = asyncio.ensure_future(find_token(self._setting, self._environment, self._host))
        return await asyncio.shield(self._found)


async def find_token(
    setting: str | None, environment: Mapping[str, str], host: str, *, seconds: float = _SECONDS
) -> str | None:
    """The token to show to one server, or None; nothing that is wrong with `gh` is worth an error."""
    for token in (setting, *(environment.get(name) for name in VARIABLES)):
        if token and _sound(token):
            return token
    program = shutil.which("gh", path=environment.get("PATH"))
    return await _from_program(program, environment, host, seconds) if program else None


async def _from_program(
    program: str, environment: Mapping[str, str], host: str, seconds: float
) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            program, "auth", "token", "--hostname", host,
            env={**environment, "GH_PROMPT_DISABLED": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
    said = b""
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await reaped(process)
    token = said.decode("ascii", "replace").strip()
    return token if process.returncode == 0 and _sound(token) else None


def _sound(token: str) -> bool:
    """Whether a text can stand in a header."""
    return 0 < len(token) <= _LONGEST and token.isascii() and token.isprintable() and " " not in token
