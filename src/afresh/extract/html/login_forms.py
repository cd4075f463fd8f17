"""Detect whether a page asks its readers to log in, and whether it offers anything else."""

import re
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.crawl.plausibility import TERSE
from afresh.extract.html.main_content import around

MAX_LOGIN_HTML_CHARS = 2_000_000
MAX_LOGIN_TEXT_CHARS = 5_000
MAX_CONTROLS = 30
MAX_LOGIN_FIELDS = 8

_HINTS = (b"password", b"username", b"saml", b"openid")
_HINT_PATTERNS = (  # each begins with plain characters, which makes the search fast; a character has up to four bytes
    re.compile(rb"log.?.?.?.?in"), re.compile(rb"sign.?.?.?.?in"), re.compile(rb"sso(?<!\wsso)\b"),
    re.compile(rb"auth(?:(?<!\wauth)|(?<=\boauth))2?\b"),
)  # fmt: skip
_FIELDS = ", ".join((
    "input[type=password]", "input[autocomplete~=username i]", "input[autocomplete~=current-password i]",
    "input[name=SAMLRequest i]", "input[name=SAMLResponse i]",
))  # fmt: skip
_CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea"
_BESIDE_CONTENT = ", ".join((
    "header", "nav", "aside", "footer", "dialog", "[role=banner]", "[role=navigation]", "[role=dialog]",
    "#header", ".header", ".navbar", ".topbar", ".modal", "[hidden]", "[aria-hidden=true]",
))  # fmt: skip
_OTHER_FIELDS = frozenset(("search", "file", "date", "color", "range", "image"))
_LOGIN = re.compile(r"\b(?:log|sign)[-_ ]?in\b|\bsso\b|\bsaml2?\b|\bo?auth2?\b|\bopenid\b", re.IGNORECASE)
_AROUND_LOGIN = re.compile(
    r"password|register|sign[-_ ]?up|account|remember|forgot|privacy|terms|legal|imprint|impressum|cookie"
    r"|\blang(?:uage)?\b|locale",
    re.IGNORECASE,
)
_SEARCH_NAMES = frozenset(("q", "s", "query", "search"))
_TO_START = re.compile(r"#?|/|https?://[^/]+/?", re.IGNORECASE)


class LoginForm(NamedTuple):
    is_all: bool = False  # the page has no other content
    has_field: bool = False  # the form is in the content, not in a header or a dialog


def find_login(html: str, lower_html: bytes, text_chars: int) -> LoginForm:
    """Return the kind of login form; pages with much text or without hints in `lower_html` are not searched for one."""
    if text_chars > MAX_LOGIN_TEXT_CHARS or not _has_hint(lower_html):
        return LoginForm()
    tree = LexborHTMLParser(html[:MAX_LOGIN_HTML_CHARS])
    forms, controls = tree.css("form[action]"), tree.css(_CONTROLS)
    fields = [*tree.css(_FIELDS), *(f for f in forms if _LOGIN.search(f.attributes.get("action") or ""))]
    if text_chars <= TERSE and fields:
        return LoginForm(is_all=True, has_field=True)
    beside = set() if text_chars <= TERSE else {node.mem_id for node in tree.css(_BESIDE_CONTENT)}
    field = next((each for each in fields if not _is_within(each, beside)), None)
    if len(controls) > MAX_CONTROLS:
        return LoginForm(has_field=field is not None)
    labels = [(each, _words_of(each)) for each in controls]
    others = [each for each, words in labels if not (_LOGIN.search(words) or _AROUND_LOGIN.search(words))]
    if field is None:
        leads = any(_LOGIN.search(words) and not _is_within(each, beside) for each, words in labels)
        return LoginForm(is_all=leads and not others)
    form = _form_of(field)
    is_all = len(others) <= MAX_LOGIN_FIELDS and all(_belongs_to_form(each, form) for each in others)
    return LoginForm(is_all=is_all, has_field=True)


def _has_hint(lower_html: bytes) -> bool:
    return any(hint in lower_html for hint in _HINTS) or any(pattern.search(lower_html) for pattern in _HINT_PATTERNS)


def _is_within(node: LexborNode, places: set[int]) -> bool:
    return any(each.mem_id in places for each in around(node))


def _form_of(node: LexborNode) -> int | None:
    return next((each.mem_id for each in around(node) if each.tag == "form"), None)


def _belongs_to_form(control: LexborNode, form: int | None) -> bool:
    attributes = control.attributes
    if control.tag == "a":
        return _TO_START.fullmatch((attributes.get("href") or "").strip()) is not None
    if control.tag == "input":
        kind, name = ((attributes.get(each) or "").lower() for each in ("type", "name"))
        return kind not in _OTHER_FIELDS and name not in _SEARCH_NAMES and _form_of(control) == form
    return control.tag == "button" and _form_of(control) == form


def _words_of(control: LexborNode) -> str:
    attributes = control.attributes
    return " ".join((control.text(), *(attributes.get(name) or "" for name in ("href", "name", "value"))))
