"""Sign outgoing messages, and check the signatures of incoming webhooks."""

import base64
import binascii
import hashlib
import hmac
import re
from contextlib import suppress
from datetime import datetime

from afresh.access.permissions import same

TOLERANCE_SECONDS = 300  # maximum age of a message, and difference between the clocks of two machines
_HEX = re.compile(r"sha256=[0-9a-f]{64}")


def may_be_signed_by_github(header: str | None) -> bool:
    """Return whether a header has the form of a GitHub signature; a cheap check before the body is read."""
    return header is not None and _HEX.fullmatch(header) is not None


def github_signed(secret: str, body: bytes, header: str | None) -> bool:
    """Return whether the GitHub signature of a body is valid; an empty secret is not."""
    if not secret or header is None or not may_be_signed_by_github(header):
        return False
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return same(f"sha256={digest}", header)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message by the Standard Webhooks specification."""
    digest = hmac.new(_key(secret), f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _key(secret: str) -> bytes:
    if secret.startswith("whsec_"):
        with suppress(binascii.Error):
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


def may_be_signed(message_id: str | None, timestamp: str | None, header: str | None, now: datetime) -> bool:
    """Return whether the headers are complete and recent; a cheap check before the body is read."""
    if not message_id or not header or not re.fullmatch(r"[0-9]{1,12}", timestamp or ""):
        return False
    return abs(now.timestamp() - int(timestamp or "")) <= TOLERANCE_SECONDS


def signed(
    secret: str, message_id: str | None, timestamp: str | None, body: bytes, header: str | None, now: datetime
) -> bool:
    """Return whether a message is recent and has a valid signature in `header`; False if any header is missing."""
    if not secret or not message_id or not header or not may_be_signed(message_id, timestamp, header, now):
        return False
    wanted = sign(secret, message_id, int(timestamp or ""), body)
    return any([same(wanted, each) for each in header.split(" ")[:10]])  # noqa: C419 - all of them, always
