"""Decide from the HTML of a page whether it has to be rendered in a browser."""

import re
from collections.abc import Callable
from functools import cache

from afresh.model.fetch import Body

HTML = frozenset({"text/html", "application/xhtml+xml"})
PLENTY_CHARS = 400  # with so much visible text, a page is read as it is, whatever its scripts add
BARE = 40  # with less visible text, a page with scripts is almost empty
_HEAD_CHARS = 300_000  # only the start of a page is searched: a shell is small apart from its scripts
_MAX_HTML_CHARS = 3_000_000  # only the start of a page is compared

BY_SCRIPT = "its content is created by scripts"
ASKS = "it asks for JavaScript"
CHALLENGE = "it is a browser check"
TURNED_AWAY = "the site refuses clients that are not browsers"
NOTHING = "the page shows no content: the data that its scripts request may be unreachable"
WANTED = "crawl.render is always"
STYLES = "it has too much CSS to know without a browser which text is hidden"

RENDERED = "text/html; rendered=browser"  # media type that marks stored content as rendered by a browser


def _late(pattern: str, flags: int = re.IGNORECASE) -> Callable[[], re.Pattern[str]]:
    """Return a function that compiles a pattern on first use; most commands never need it."""
    return cache(lambda: re.compile(pattern, flags))


_MANY_RULES = 5_000  # CSS rules in `<style>` elements
_SHEET = re.compile(rb"<style\b[^<]*+(?:<(?!/style)[^<]*+)*+", re.IGNORECASE)
_WINDOW_CHARS = 8_192  # checked first, because most pages have enough visible text in this part
# Matches what is between two pieces of visible text; an element without an end tag hides the rest.
# The pattern never backtracks, so its time is linear in the length of the page.
_UNSEEN = _late(
    r"<(?:!--(?:-?>|[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?)"
    r"|(script|style|title|template|noscript|svg|iframe|select)(?=[\s/>])[^<]*+(?:<(?!/\1\b)[^<]*+)*+(?:</\1\b[^>]*+>?)?"
    r"|[^>]*+>?)"
)
_SCRIPT = _late(r"<script\b(?![^>]{0,200}\btype\s*=\s*[\"']?application/(?:ld\+)?json)")
_MAKES = _late(r"<script\b[^>]{0,500}\bsrc\b|\bdocument\b|\bfetch\s*\(|\bimport\b|innerHTML")  # content
_NOSCRIPT = _late(r"<noscript\b[^>]{0,100}>(.{0,500}?)</noscript", re.IGNORECASE | re.DOTALL)
_ASKING = _late(
    r"(?:enable|requires?|needs?|without|turn on|activate|aktivier\w*|activer)\W+(?:\w+\W+){0,3}java\s?script"
    r"|java\s?script\W+(?:\w+\W+){0,4}(?:disabled|required|enabled|turned off|needed|aktivier\w*|activ)"
)
_MOUNT = _late(
    r"<(?:app-root|my-app|ion-app)\b[^>]{0,200}>\s*</"
    r"|<(?:div|main|section|body)\b[^>]{0,200}\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte|q-app|main-app"
    r"|application|app-root|react-root|reactroot|react-app|vue-app|ember-app|mount|docsify)[\"'\s>][^<]{0,60}</"
)
_CHALLENGES = _late(
    r"_cf_chl_opt|/cdn-cgi/challenge-platform/|cf-browser-verification|<title>\s*just a moment"
    r"|checking (?:if the site connection is secure|your browser before)|_incapsula_resource"
    r"|sucuri_cloudproxy|aws-?waf-?(?:token|challenge)|ddos-guard|px-captcha"
    r"|verifying (?:that )?you are (?:a )?human|(?:please )?enable javascript and cookies to continue"
    r"|anubis_challenge"
)
_WORD = _late(r"[^\W_]+")
# Words of loading and error messages; a page with no other words shows no content.
_PHRASES = (
    "loading load please wait waiting moment just one a is the this page app application data content"
    " error errors failed failure fail could not cannot couldn t be loaded to oops sorry something went wrong"
    " try again retry later reload refresh unavailable server internal network timeout 500 502 503 504"
    " lädt laden wird geladen bitte warten fehler chargement en cours cargando"
)
_WAITING = frozenset(_PHRASES.split())
_LINKS = _late(r"<a\b[^<>]{0,500}?\bhref\s*=\s*(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|([^\s>]{1,2000}))")


def visible_text(html: str) -> str:
    """Return an estimate of the visible text of a page, with whitespace collapsed."""
    text = _UNSEEN().sub(" ", html)
    if "&" in text:
        text = text.replace("&nbsp;", " ").replace("&#160;", " ")
    return " ".join(text.split())


def _shows_plenty(html: str) -> bool:
    size = _WINDOW_CHARS
    while len(visible_text(html[:size])) < PLENTY_CHARS:
        if size >= len(html):
            return False
        size *= 8
    return True


def is_readable(body: Body) -> bool:
    """Return whether a quick check shows that HTML needs no browser: few styles, and either no script or much text."""
    page = body.data
    if body.media_type not in HTML or page.count(b"{") > _MANY_RULES:
        return False
    if b"<script" not in page and b"<SCRIPT" not in page:
        return True
    return len(visible_text(page[:_WINDOW_CHARS].decode("latin-1"))) >= PLENTY_CHARS


def has_many_styles(page: bytes) -> bool:
    """Return whether a page has too many CSS rules to find its hidden text without a browser."""
    return page.count(b"{") > _MANY_RULES and (sum(sheet.count(b"{") for sheet in _SHEET.findall(page)) > _MANY_RULES)


def why_render(html: str) -> str | None:
    if not _SCRIPT().search(html) or _shows_plenty(html):
        return None
    head = html[:_HEAD_CHARS]
    if challenge_in(head):
        return CHALLENGE
    if any(_ASKING().search(found) for found in _NOSCRIPT().findall(head)):
        return ASKS
    bare = len(visible_text(html)) < BARE and _MAKES().search(head)
    return BY_SCRIPT if bare or _MOUNT().search(head) else None


def challenge_in(html: str) -> bool:
    """Return whether a page is a browser check, which lets browsers pass after a moment and stops other clients."""
    return _CHALLENGES().search(html[:_HEAD_CHARS]) is not None


def why_render_refused(status: int, *, challenge: bool) -> str | None:
    """Return why a refused page is tried in a browser; None if it needs a wait or a login instead."""
    if challenge:
        return CHALLENGE
    return TURNED_AWAY if status in (403, 406) else None


def shows_the_same(plain: str, rendered: str) -> bool:
    """Return whether two versions of a page have the same text and links, so that the validators apply to both."""
    if max(len(plain), len(rendered)) > _MAX_HTML_CHARS:
        return False
    if visible_text(plain) != visible_text(rendered):
        return False
    one, other = ({"".join(found) for found in _LINKS().findall(html)} for html in (plain, rendered))
    return one == other


def shows_nothing(rendered: str) -> bool:
    text = visible_text(rendered[:_MAX_HTML_CHARS])
    return len(text) < PLENTY_CHARS and _WAITING.issuperset(_WORD().findall(text.casefold()))
