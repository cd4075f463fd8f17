"""Tells people through apprise, in a process of its own: we say what it may connect to, and how long."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress

from afresh.errors import ApiError, ApiLate
from afresh.ops.processes import reaped
from afresh.sources.web.trouble import not_allowed
from afresh.text.json_input import read_json

SECONDS = 30.0  # for one message, the start of the process included
CHILD = "afresh.notify.apprise_child"
# No proxies, no credentials, none of our settings: the child gets what it needs to start, and the message.
_PASSED = (
    *("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT"),
    *("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


class AppriseNotifier:
    """Fulfils `carriers.Notifier`; to public addresses, and to those that `allow` names."""

    def __init__(self, allow: Sequence[str] = (), *, seconds: float = SECONDS) -> None:
        self._allow = list(allow)
        self._seconds = seconds

    async def tell(self, url: str, title: str, text: str) -> None:
        """Send one message; ApiError says why it did not get there, without anything of the address."""
        order = {"url": url, "title": title, "text": text, "allow": self._allow}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", CHILD),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={name: os.environ[name] for name in _PASSED if name in os.environ} | {"NETRC": os.devnull},
        )
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                said, _ = await process.communicate(json.dumps(order).encode())
        except TimeoutError:
            if not deadline.expired():
                raise
            raise ApiLate(f"the service gave no answer within {self._seconds:g} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await reaped(process)
        _check(said)


def _check(said: bytes) -> None:
    try:
        told = read_json(said)
        refused, reason = told["refused"], told["reason"]
    except (ValueError, KeyError, TypeError):
        raise ApiError("apprise ended without saying how it went") from None
    if refused is not None:
        raise ApiError(not_allowed(*refused))
    if reason is not None:
        raise ApiError(str(reason))
