"""Messages to people: plain text of fixed parts, with nothing that a service could take for a command."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from afresh.notify.outbox import BRAKED, PAGES
from afresh.text.redact import mask_secrets, one_line
from afresh.text.wording import count

MOST_LINES = 20  # pages that one message names
LONGEST = 300  # characters of an address or a reason
_MARKS = re.compile(r"[<>`*|@]")
_CALLS = re.compile(r"[<>`*|]|@(?=everyone|here|channel|all)")
_COUNTED = ("new", "changed", "deleted", "moved", "missing", "failed", "refused")


def plain_text(told: Mapping[str, Any]) -> tuple[str, str]:
    """Title and text for the body of a message."""
    label = _safe(told["source"] + (f"@{told['version']}" if told["version"] else ""))
    run = f"Run {told['run']} of {label}"
    if told["event"] == PAGES:
        return f"afresh: pages of {label}", _of_pages(run, told["pages"], more=told["more"])
    if told["event"] == BRAKED:
        held = count(told["counts"]["held"], "page")
        waits = f"{run} would delete {held}, so it waits. To let it: afresh confirm {told['run']}"
        return f"afresh: {label} waits for you", waits
    return f"afresh: {label} {told['state']}", _of_run(run, told)


def _of_run(run: str, told: Mapping[str, Any]) -> str:
    counts = told["counts"]
    parts = [f"{counts[name]} {name}" for name in _COUNTED if counts[name]]
    lines = [
        f"{run} ended: {told['state']}.",
        f"{counts['checked']} checked, {', '.join(parts) or 'none changed'}.",
    ]
    if told["error"]:
        lines.append(f"Why: {_safe(told['error'])}")
    return "\n".join(lines)


def _of_pages(run: str, pages: Sequence[Mapping[str, Any]], *, more: bool) -> str:
    lines = [f"{run}:"]
    for page in pages[:MOST_LINES]:
        moved = f" -> {_address(page['moved_to'])}" if page["moved_to"] else ""
        lines.append(f"{page['event'].removeprefix('page.')} {_address(page['url'])}{moved}")
    left = len(pages) - MOST_LINES
    if left > 0:
        lines.append(f"and {'more than ' if more else ''}{left} more")
    return "\n".join(lines)


def _address(url: str) -> str:
    """An address that calls nobody: `@everyone` in a path would, in some services."""
    encoded = _MARKS.sub(lambda found: f"%{ord(found[0]):02X}", one_line(url))
    return mask_secrets(encoded)[:LONGEST]


def _safe(text: str) -> str:
    """One line without what services read as markup, or as a call to everyone."""
    return mask_secrets(_CALLS.sub(" ", one_line(text)))[:LONGEST]
