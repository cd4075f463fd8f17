"""Send notifications with apprise in a separate process, with limits on connections and time."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress

from afresh.errors import ApiError, ApiTimeout
from afresh.ops.processes import wait_for_exit
from afresh.sources.web.client import not_allowed
from afresh.text.json_input import read_json

SECONDS = 30.0  # time limit per message, including the start of the process
CHILD = "afresh.notify.apprise_child"
# Variables that the child process gets: only those it needs to start, without proxies, credentials and settings.
_PASSED = (
    *("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT"),
    *("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


async def notify(url: str, title: str, text: str, allow: Sequence[str]) -> None:
    """Send one message to a public host or to one in `allow`; raise ApiError with a text that does not show the URL."""
    order = {"url": url, "title": title, "text": text, "allow": list(allow)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", CHILD),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={name: os.environ[name] for name in _PASSED if name in os.environ} | {"NETRC": os.devnull},
    )
    try:
        async with asyncio.timeout(SECONDS) as deadline:
            output, _ = await process.communicate(json.dumps(order).encode())
    except TimeoutError:
        if not deadline.expired():
            raise
        raise ApiTimeout(f"the service did not answer within {SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await wait_for_exit(process)
    try:
        result = read_json(output)
        refused, reason = result["refused"], result["reason"]
    except (ValueError, KeyError, TypeError):
        raise ApiError("apprise ended without a result") from None
    if refused is not None:
        raise ApiError(not_allowed(*refused))
    if reason is not None:
        raise ApiError(str(reason))
