"""Send notifications with apprise in a separate process, with limits on connections and time."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress

from afresh.errors import ApiError, ApiTimeout
from afresh.ops.processes import reaped
from afresh.sources.web.client import not_allowed
from afresh.text.json_input import read_json

SECONDS = 30.0  # per message, including the start of the process
CHILD = "afresh.notify.apprise_child"
# No proxies, credentials or settings of ours: the child only gets what it needs to start.
_PASSED = (
    *("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT"),
    *("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


class AppriseNotifier:
    """Implements `sender.Notifier`, for public addresses and those in `allow`."""

    def __init__(self, allow: Sequence[str] = (), *, seconds: float = SECONDS) -> None:
        self._allow = list(allow)
        self._seconds = seconds

    async def tell(self, url: str, title: str, text: str) -> None:
        """Send one message; raise ApiError with the reason, without parts of the URL."""
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
            raise ApiTimeout(f"the service gave no answer within {self._seconds:g} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await reaped(process)
        try:
            told = read_json(said)
            refused, reason = told["refused"], told["reason"]
        except (ValueError, KeyError, TypeError):
            raise ApiError("apprise ended without saying how it went") from None
        if refused is not None:
            raise ApiError(not_allowed(*refused))
        if reason is not None:
            raise ApiError(str(reason))
