"""An answer that brought nothing of use, in a sentence that names the fix and no secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from afresh.errors import AfreshError
from afresh.ports import Reply
from afresh.text.redact import mask_secrets, one_line

_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What an API is asked for, and how its trouble is told."""

    section: str  # of the settings
    gives: str  # what a good answer holds
    error: type[AfreshError]  # this request failed
    down: type[AfreshError]  # any other would fail as well
    less: str  # what makes it ask for less
    odd: str  # what to check when it does not understand a request
    strikes: int = 1  # late answers and errors of the server in a row after which it counts as down

    def fix(self, status: int) -> str | None:
        """What to do about a status that no other request would change; None for any other status."""
        section = self.section
        fixes = {
            401: f"check {section}.api_key",
            402: f"check the account that {section}.api_key belongs to",
            403: f"check {section}.api_key and what it may use",
            404: f"check {section}.model and {section}.base_url",
            405: f"check {section}.base_url",
            429: f"the next run tries again; {self.less}",
        }
        return fixes.get(status)


def refusal(service: Service, reply: Reply, host: str, secrets: Sequence[str]) -> AfreshError:
    """What an answer of no use means: the service is down where another request would fare no better."""
    status = reply.status
    if status == 200:
        return service.error(f"{host} answered without {service.gives}{told(reply.json, secrets)}")
    words = f"{host} answered {_words(status)}"
    if 300 <= status < 400:
        return service.down(f"{words}: set {service.section}.base_url to the address it moved to")
    fix = service.fix(status)
    if status in (401, 403):  # some services repeat the key when they refuse it
        return service.down(f"{words}: {fix}")
    said = told(reply.json, secrets)
    if fix or status >= 500:
        return service.down(f"{words}{said}: {fix or 'the next run tries again'}")
    return service.error(f"{words}{said}: check {service.odd}")


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def told(answer: Any, secrets: Sequence[str]) -> str:
    """` ("model not found")` where the answer says why."""
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message.strip():
        return ""
    shown = one_line(mask_secrets(message.strip(), secrets))
    return f' ("{shown[:_LONGEST]}")'
