"""How a message gets to its target: signed to a webhook, or as plain text to people."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from afresh.errors import ApiError
from afresh.notify.incoming import sign
from afresh.notify.message import plain_text
from afresh.notify.outbox import Letter, Target
from afresh.ports.calls import Answer
from afresh.text.redact import NOT_ALLOWED, mask_secrets, one_line

TIMEOUT = 15.0  # seconds for one message
LONGEST = 300  # characters of a reason

Told = Mapping[str, Any]
Outcome = tuple[str | None, bool]
"""Why a message did not get there, or None; and whether that is the last word."""


class Carrier(Protocol):
    """Brings messages to one target."""

    @property
    def target(self) -> Target:
        """Who it is."""
        ...

    async def carry(self, letter: Letter, told: Told, now: datetime) -> Outcome:
        """Try once."""
        ...


class Asker(Protocol):
    """The guarded client."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None, timeout: float
    ) -> Answer: ...


class Notifier(Protocol):
    """What tells people; an ApiError says why it cannot."""

    async def tell(self, url: str, title: str, text: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPost:
    """Posts messages as signed JSON."""

    target: Target
    url: str
    secret: str
    client: Asker

    async def carry(self, letter: Letter, told: Told, now: datetime) -> Outcome:
        """Try once."""
        at, body = int(now.timestamp()), json.dumps(told).encode()
        headers = {
            "Content-Type": "application/json",
            "webhook-id": letter.message,
            "webhook-timestamp": str(at),
            "webhook-signature": sign(self.secret, letter.message, at, body),
        }
        try:
            answer = await self.client.ask("POST", self.url, headers, body, TIMEOUT)
        except ApiError as error:
            return _refused(error)
        if 200 <= answer.status < 300:
            return None, True
        if 300 <= answer.status < 400:
            return f"it answered {answer.status}: redirects are not followed, set the address itself", False
        return f"it answered {answer.status}", answer.status == 410


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainNotice:
    """Tells people in a few lines of text."""

    target: Target
    url: str
    notifier: Notifier

    async def carry(self, letter: Letter, told: Told, now: datetime) -> Outcome:
        """Try once."""
        try:
            await self.notifier.tell(self.url, *plain_text(told))
        except ApiError as error:
            return _refused(error)
        return None, True


def _refused(error: ApiError) -> Outcome:
    return one_line(mask_secrets(str(error)))[:LONGEST], NOT_ALLOWED in str(error)
