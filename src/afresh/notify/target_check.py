"""Whether messages could be sent to a place, by the rules that hold when they are sent."""

import logging
import socket
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from afresh.sources.web.guard import AddressPolicy
from afresh.sources.web.trouble import not_allowed

RESOLVE_SECONDS = 5.0


def why_not_posted(url: str, allow: Sequence[str]) -> str | None:
    """Why nothing would be sent to an address; None also where its name means nothing just now."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    policy = AddressPolicy(allow)
    kinds = [kind for ip in _addresses(host, port) if (kind := policy.check(ip, host, port))]
    return not_allowed(host, kinds[0]) if kinds else None


def _addresses(host: str, port: int) -> list[str]:
    """What a name means; a resolver that gives no answer is not waited for."""
    found: list[str] = []

    def resolve() -> None:
        try:
            told = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        found.extend(str(each[4][0]) for each in told)

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(RESOLVE_SECONDS)
    return list(found)


def why_not_told(url: str) -> str | None:
    """Why apprise would tell nobody at an address, without anything secret of it."""
    kind = url.partition("://")[0].lower()
    with _unheard():
        from apprise import Apprise
        from apprise.manager_plugins import NotificationManager

        manager: Any = NotificationManager
        known: list[str] = sorted(manager().schemas())
        usable = Apprise.instantiate(url, suppress_exceptions=True) if kind in known else None
    if kind not in known:
        near = get_close_matches(kind, known, 5, 0.5) or ("discord", "mailtos", "ntfys", "slack", "tgram")
        return (
            f"apprise knows no {kind[:20]}://; it knows {', '.join(f'{each}://' for each in near)} and "
            f"{len(known) - len(near)} others (`apprise --details` lists them)"
        )
    return None if usable else f"apprise cannot use this address: a part of {kind}:// is missing or wrong"


@contextmanager
def _unheard() -> Iterator[None]:
    """What apprise complains of holds the address, which is secret; its plugins warn of each other."""
    logger = logging.getLogger("apprise")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before
