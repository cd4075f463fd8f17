"""Whether the only interactive content of a page is a login."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_LOGIN_HTML_CHARS = 2_000_000
MAX_CONTROLS = 30

_HINT = re.compile(r"password|username|saml|log.?in|sign.?in|sso|auth", re.IGNORECASE)
_FIELDS = ", ".join((
    "input[type=password]", "input[autocomplete~=username i]", "input[autocomplete~=current-password i]",
    "input[name=SAMLRequest i]", "input[name=SAMLResponse i]",
))  # fmt: skip
_LOGIN = re.compile(r"\b(?:log|sign)[-_ ]?in\b|\bsso\b|\bsaml2?\b|\bo?auth2?\b|\bopenid\b", re.IGNORECASE)
_AROUND_LOGIN = re.compile(r"password|register|sign[-_ ]?up|account|remember|forgot", re.IGNORECASE)


def has_only_login(html: str) -> bool:
    """Return whether a page with next to no text asks its readers to log in and offers nothing else."""
    html = html[:MAX_LOGIN_HTML_CHARS]
    if _HINT.search(html) is None:
        return False
    tree = LexborHTMLParser(html)
    if tree.css_first(_FIELDS) is not None:
        return True
    if any(_LOGIN.search(form.attributes.get("action") or "") for form in tree.css("form[action]")):
        return True
    controls = tree.css("a[href], button, input:not([type=hidden]), select, textarea")
    if not 0 < len(controls) <= MAX_CONTROLS:
        return False
    said = [_words_of(control) for control in controls]
    return any(map(_LOGIN.search, said)) and all(_LOGIN.search(s) or _AROUND_LOGIN.search(s) for s in said)


def _words_of(control: LexborNode) -> str:
    attributes = control.attributes
    return " ".join((control.text(), *(attributes.get(name) or "" for name in ("href", "name", "value"))))
