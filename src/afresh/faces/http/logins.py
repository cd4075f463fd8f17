"""The cookie of a login, in place of a token, for people in front of a browser.

It is a random text that says nothing. The store keeps its hash beside the token that was shown for it, so
that it holds for every server on that store; it ends after some hours, with the token, or when one logs out.
"""

from http.cookies import CookieError, SimpleCookie

from afresh.faces.http.wire import Scope, value, values
from afresh.kb_access import LOGIN_LENGTH

COOKIE = "afresh_login"


def cookie_of(scope: Scope) -> str | None:
    """The login that a request carries."""
    try:
        found = SimpleCookie("; ".join(values(scope, b"cookie"))).get(COOKIE)
    except CookieError:
        return None
    return found.value[:200] if found else None


def cookie_header(scope: Scope, text: str) -> str:
    """How a browser is given a login, or, with no text, told to forget it."""
    secure = scope.get("scheme") == "https" or value(scope, b"x-forwarded-proto") == "https"
    age = int(LOGIN_LENGTH.total_seconds()) if text else 0
    return f"{COOKIE}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{'; Secure' if secure else ''}"
