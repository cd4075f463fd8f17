"""An answer that brought no vectors, in a sentence that names the fix and no secret."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from afresh.core.errors import EmbedderDown, EmbedError
from afresh.core.masking import mask_secrets, one_line
from afresh.ports import Reply

_LONGEST = 200
_FIXES = {
    401: "check embedding.api_key",
    402: "check the account that embedding.api_key belongs to",
    403: "check embedding.api_key and what it may use",
    404: "check embedding.model and embedding.base_url",
    405: "check embedding.base_url",
    429: "the next run tries again; embedding.batch_size and embedding.budget_per_run make it ask for less",
}


def refusal(reply: Reply, host: str, secrets: Sequence[str]) -> EmbedError:
    """What an answer without vectors means: EmbedderDown where another text would fare no better."""
    status = reply.status
    if status == 200:
        return EmbedError(f"{host} answered without vectors{_said(reply.json, secrets)}")
    words = f"{host} answered {_words(status)}"
    if 300 <= status < 400:
        return EmbedderDown(f"{words}: set embedding.base_url to the address it moved to")
    if status in (401, 403):  # some services repeat the key when they refuse it
        return EmbedderDown(f"{words}: {_FIXES[status]}")
    said = _said(reply.json, secrets)
    if status in _FIXES or status >= 500:
        return EmbedderDown(f"{words}{said}: {_FIXES.get(status, 'the next run tries again')}")
    return EmbedError(f"{words}{said}: check embedding.model, embedding.dimensions and the prefixes")


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _said(answer: Any, secrets: Sequence[str]) -> str:
    """` ("model not found")` where the answer says why."""
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message.strip():
        return ""
    shown = one_line(mask_secrets(message.strip(), secrets))
    return f' ("{shown[:_LONGEST]}")'
