"""Logins: a cookie in place of a token, for people in front of a browser.

The cookie is a random text that says nothing. This process keeps its hash, beside the hash of the token that
was shown for it, for some hours: a token that is revoked or expires ends its logins, and so does a new start.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from afresh.config.access import AccessSettings
from afresh.core.access import digest_of
from afresh.faces.http.limits import Buckets
from afresh.faces.http.wire import Scope, value, values

COOKIE = "afresh_login"
LENGTH = timedelta(hours=12)
MOST = 10_000  # logins that are remembered; the oldest is forgotten
RANDOM_BYTES = 32


class _Login(NamedTuple):
    token: str  # the digest of the token that was shown
    until: datetime


class Logins:
    """Who is logged in."""

    def __init__(self, settings: AccessSettings, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._open: OrderedDict[str, _Login] = OrderedDict()
        self.failed = Buckets(settings.requests_per_second, settings.burst)

    def begin(self, token: str) -> str:
        """The cookie of a new login with a token."""
        text = secrets.token_urlsafe(RANDOM_BYTES)
        self._open[digest_of(text)] = _Login(digest_of(token), self._clock() + LENGTH)
        if len(self._open) > MOST:
            self._open.popitem(last=False)
        return text

    def token_behind(self, cookie: str) -> str | None:
        """The digest of the token that a login stands for; None: there is no such login."""
        login = self._open.get(digest_of(cookie))
        if login is None or login.until > self._clock():
            return login.token if login else None
        self.end(cookie)
        return None

    def end(self, cookie: str) -> None:
        """Log out."""
        self._open.pop(digest_of(cookie), None)


def cookie_of(scope: Scope) -> str | None:
    """The login that a request carries."""
    # Read by hand: the parser of the library gives up at a cookie it does not like, and whatever else is
    # served on this machine, at any port, sets cookies that come along.
    pairs = (pair.strip().partition("=") for text in values(scope, b"cookie") for pair in text.split(";"))
    return next((text[:200] for name, _, text in pairs if name == COOKIE), None)


def cookie_header(scope: Scope, text: str) -> str:
    """How a browser is given a login, or, with no text, told to forget it."""
    secure = scope.get("scheme") == "https" or value(scope, b"x-forwarded-proto") == "https"
    age = int(LENGTH.total_seconds()) if text else 0
    return f"{COOKIE}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{'; Secure' if secure else ''}"
