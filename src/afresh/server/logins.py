"""The cookie of a login, in place of a token, for people in front of a browser.

It is a random text that says nothing. The store keeps its hash beside the token that was shown for it, so
that it holds for every server on that store; it ends after some hours, with the token, or when one logs out.
"""

from afresh.server.asgi import Scope, value, values
from afresh.services.tokens import LOGIN_LENGTH

COOKIE = "afresh_login"


def cookie_of(scope: Scope) -> str | None:
    """The login that a request carries."""
    # Read by hand: the parser of the library gives up at a cookie it does not like, and whatever else is
    # served on this machine, at any port, sets cookies that come along.
    pairs = (pair.strip().partition("=") for text in values(scope, b"cookie") for pair in text.split(";"))
    return next((text[:200] for name, _, text in pairs if name == COOKIE), None)


def cookie_header(scope: Scope, text: str) -> str:
    """How a browser is given a login, or, with no text, told to forget it."""
    secure = scope.get("scheme") == "https" or value(scope, b"x-forwarded-proto") == "https"
    age = int(LOGIN_LENGTH.total_seconds()) if text else 0
    return f"{COOKIE}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{'; Secure' if secure else ''}"
