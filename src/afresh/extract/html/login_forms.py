"""Whether a page asks its readers to log in, and whether it offers anything else."""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.crawl.plausibility import TERSE

MAX_LOGIN_HTML_CHARS = 2_000_000
MAX_LOGIN_TEXT_CHARS = 5_000
MAX_CONTROLS = 30
MAX_LOGIN_FIELDS = 8

_HINT = re.compile(r"password|username|saml|log.?in|sign.?in|sso|auth", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Login:
    """What a page has of a login."""

    is_all: bool = False  # it offers nothing else
    has_field: bool = False  # where its content is, not in a header or a dialog


def find_login(html: str, text_chars: int) -> Login:
    """Return what a page with so much text has of a login; nothing where it has much text."""
    html = html[:MAX_LOGIN_HTML_CHARS]
    if text_chars > MAX_LOGIN_TEXT_CHARS or _HINT.search(html) is None:
        return Login()
    tree = LexborHTMLParser(html)
    fields, controls = _fields_of(tree), tree.css(_CONTROLS)
    if text_chars <= TERSE and fields:
        return Login(is_all=True, has_field=True)
    beside = set() if text_chars <= TERSE else {node.mem_id for node in tree.css(_BESIDE_CONTENT)}
    field = next((each for each in fields if not _is_within(each, beside)), None)
    if len(controls) > MAX_CONTROLS:
        return Login(has_field=field is not None)
    others = [each for each in controls if not _is_said_to_be_of_login(each)]
    if field is None:
        leads = any(_LOGIN.search(_words_of(each)) and not _is_within(each, beside) for each in controls)
        return Login(is_all=leads and not others)
    form = _form_of(field)
    is_all = len(others) <= MAX_LOGIN_FIELDS and all(_belongs_to_form(each, form) for each in others)
    return Login(is_all=is_all, has_field=True)


def _fields_of(tree: LexborHTMLParser) -> list[LexborNode]:
    forms = tree.css("form[action]")
    return [*tree.css(_FIELDS), *(f for f in forms if _LOGIN.search(f.attributes.get("action") or ""))]


def _is_within(node: LexborNode, places: set[int]) -> bool:
    """Whether a node is one of these places or lies in one."""
    at: LexborNode | None = node
    while places and at is not None:
        if at.mem_id in places:
            return True
        at = at.parent
    return False


def _form_of(node: LexborNode) -> int | None:
    at: LexborNode | None = node
    while at is not None and at.tag != "form":
        at = at.parent
    return None if at is None else at.mem_id


def _belongs_to_form(control: LexborNode, form: int | None) -> bool:
    """Whether a control is a field or a button of the login, or leads to the start page."""
    attributes = control.attributes
    if control.tag == "a":
        return _TO_START.fullmatch((attributes.get("href") or "").strip()) is not None
    if control.tag == "input":
        kind, name = ((attributes.get(each) or "").lower() for each in ("type", "name"))
        return kind not in _OTHER_FIELDS and name not in _SEARCH_NAMES and _form_of(control) == form
    return control.tag == "button" and _form_of(control) == form


def _is_said_to_be_of_login(control: LexborNode) -> bool:
    words = _words_of(control)
    return bool(_LOGIN.search(words) or _AROUND_LOGIN.search(words))


def _words_of(control: LexborNode) -> str:
    attributes = control.attributes
    return " ".join((control.text(), *(attributes.get(name) or "" for name in ("href", "name", "value"))))
