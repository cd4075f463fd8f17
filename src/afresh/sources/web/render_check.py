"""Whether a page has to be shown in a browser to be read, told from its HTML alone."""

import re
from collections.abc import Callable
from functools import cache

PLENTY = 400  # characters of visible text: with so much a page is content, whatever its scripts add
BARE = 40  # characters: with fewer, a page with scripts shows next to nothing by itself
_GLANCE = 300_000  # characters of a page that are looked at; a shell is small apart from its scripts
_LONGEST = 3_000_000  # of HTML that is compared

BY_SCRIPT = "its content is made by script"
ASKS = "it asks for JavaScript"
CHALLENGE = "it is a check for browsers"
TURNED_AWAY = "the site turns plain clients away"
NOTHING = "it shows nothing but its shell: what its scripts ask for may be out of reach"
WANTED = "crawl.render is always"
STYLES = "it has so many styles that only a browser tells what they hide"

RENDERED = "text/html; rendered=browser"  # how content that a browser showed is on record


def _late(pattern: str, flags: int = re.IGNORECASE) -> Callable[[], re.Pattern[str]]:
    """An expression that is made when it is first needed, as most commands never do."""
    return cache(lambda: re.compile(pattern, flags))


_MANY_RULES = 5_000  # in `<style>` elements
_SHEET = re.compile(rb"<style\b[^<]*+(?:<(?!/style)[^<]*+)*+", re.IGNORECASE)
_WINDOW = 8_192  # characters that are judged first: most pages show enough in them
# What is between two pieces of text that are shown; what is never closed hides the rest. No way leads back
# in it, so its time grows with the page and no faster.
_UNSEEN = _late(
    r"<(?:!--(?:-?>|[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?)"
    r"|(script|style|title|template|noscript|svg|iframe|select)(?=[\s/>])[^<]*+(?:<(?!/\1\b)[^<]*+)*+(?:</\1\b[^>]*+>?)?"
    r"|[^>]*+>?)",
)
_SCRIPT = _late(r"<script\b(?![^>]{0,200}\btype\s*=\s*[\"']?application/(?:ld\+)?json)")
_MAKES = _late(r"<script\b[^>]{0,500}\bsrc\b|\bdocument\b|\bfetch\s*\(|\bimport\b|innerHTML")  # content
_NOSCRIPT = _late(r"<noscript\b[^>]{0,100}>(.{0,500}?)</noscript", re.IGNORECASE | re.DOTALL)
_ASKING = _late(
    r"(?:enable|requires?|needs?|without|turn on|activate|aktivier\w*|activer)\W+(?:\w+\W+){0,3}java\s?script"
    r"|java\s?script\W+(?:\w+\W+){0,4}(?:disabled|required|enabled|turned off|needed|aktivier\w*|activ)",
)
_MOUNT = _late(
    r"<(?:app-root|my-app|ion-app)\b[^>]{0,200}>\s*</"
    r"|<(?:div|main|section|body)\b[^>]{0,200}\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte|q-app|main-app"
    r"|application|app-root|react-root|reactroot|react-app|vue-app|ember-app|mount|docsify)[\"'\s>][^<]{0,60}</",
)
_CHALLENGES = _late(
    r"_cf_chl_opt|/cdn-cgi/challenge-platform/|cf-browser-verification|<title>\s*just a moment"
    r"|checking (?:if the site connection is secure|your browser before)|_incapsula_resource"
    r"|sucuri_cloudproxy|aws-?waf-?(?:token|challenge)|ddos-guard|px-captcha"
    r"|verifying (?:that )?you are (?:a )?human|(?:please )?enable javascript and cookies to continue"
    r"|anubis_challenge",
)
_WORD = _late(r"[^\W_]+")
# What pages say while the data behind them does not come; a page of nothing else shows no content.
_PHRASES = (
    "loading load please wait waiting moment just one a is the this page app application data content"
    " error errors failed failure fail could not cannot couldn t be loaded to oops sorry something went wrong"
    " try again retry later reload refresh unavailable server internal network timeout 500 502 503 504"
    " lädt laden wird geladen bitte warten fehler chargement en cours cargando"
)
_WAITING = frozenset(_PHRASES.split())
_LINKS = _late(r"<a\b[^<>]{0,500}?\bhref\s*=\s*(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|([^\s>]{1,2000}))")


def visible_text(html: str) -> str:
    """About what a reader sees of a page, blanks made one."""
    text = _UNSEEN().sub(" ", html)
    if "&" in text:
        text = text.replace("&nbsp;", " ").replace("&#160;", " ")
    return " ".join(text.split())


def _shows_plenty(html: str) -> bool:
    size = _WINDOW
    while len(visible_text(html[:size])) < PLENTY:
        if size >= len(html):
            return False
        size *= 8
    return True


def is_readable(page: bytes) -> bool:
    """Whether a first glance tells that a page needs no browser: no script in it, or much text."""
    if b"<script" not in page and b"<SCRIPT" not in page:
        return True
    return len(visible_text(page[:_WINDOW].decode("latin-1"))) >= PLENTY


def has_many_styles(page: bytes) -> bool:
    """Return whether a page has more rules in its own styles than are compared without a browser."""
    return page.count(b"{") > _MANY_RULES and (
        sum(sheet.count(b"{") for sheet in _SHEET.findall(page)) > _MANY_RULES
    )


def why_render(html: str) -> str | None:
    """Why a page shows its content only in a browser; None if it can be read as it is."""
    if not _SCRIPT().search(html) or _shows_plenty(html):
        return None
    head = html[:_GLANCE]
    if challenge_in(head):
        return CHALLENGE
    if any(_ASKING().search(found) for found in _NOSCRIPT().findall(head)):
        return ASKS
    bare = len(visible_text(html)) < BARE and _MAKES().search(head)
    return BY_SCRIPT if bare or _MOUNT().search(head) else None


def challenge_in(html: str) -> bool:
    """Whether a page is one that lets browsers through after a moment, and nobody else."""
    return _CHALLENGES().search(html[:_GLANCE]) is not None


def why_render_refused(status: int, *, challenge: bool) -> str | None:
    """Why a page that was refused may be shown to a browser; None if waiting or a login is what it takes."""
    if challenge:
        return CHALLENGE
    return TURNED_AWAY if status in (403, 406) else None


def shows_the_same(plain: str, rendered: str) -> bool:
    """Whether scripts left text and links alone, so that what vouches for the one does for the other."""
    if max(len(plain), len(rendered)) > _LONGEST:
        return False
    return visible_text(plain) == visible_text(rendered) and _targets(plain) == _targets(rendered)


def shows_nothing(rendered: str) -> bool:
    """Whether a page says nothing in a browser but that it waits, or waited in vain."""
    text = visible_text(rendered[:_LONGEST])
    return len(text) < PLENTY and _WAITING.issuperset(_WORD().findall(text.casefold()))


def _targets(html: str) -> set[str]:
    return {"".join(found) for found in _LINKS().findall(html)}
