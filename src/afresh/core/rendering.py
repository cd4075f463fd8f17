"""Whether a page has to be shown in a browser to be read, told from its HTML alone."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

PLENTY = 400  # characters of visible text: with so much a page is content, whatever its scripts add
BARE = 40  # characters: with fewer, a page with scripts shows next to nothing by itself
_GLANCE = 300_000  # characters of a page that are looked at; a shell is small apart from its scripts
_LONGEST = 3_000_000  # of HTML that is compared
_MOST_PIECES = 50_000  # between tags that are looked at; no shell has so many

BY_SCRIPT = "its content is made by script"
ASKS = "it asks for JavaScript"
CHALLENGE = "it is a check for browsers"
TURNED_AWAY = "the site turns plain clients away"
WANTED = "crawl.render is always"

RENDERED = "text/html; rendered=browser"  # how content that a browser showed is on record

_HIDES = ("script", "style", "title", "template", "noscript", "svg", "iframe", "select")
_HIDING = re.compile(rf"({'|'.join(_HIDES)})(?=[\s/>])", re.IGNORECASE)
_CLOSING = {name: re.compile(rf"</{name}\b[^>]{{0,100}}>", re.IGNORECASE) for name in _HIDES}
_SPACE = re.compile(r"(?:\s|&nbsp;|&#160;)+")
_SCRIPT = re.compile(r"<script\b(?![^>]{0,200}\btype\s*=\s*[\"']?application/(?:ld\+)?json)", re.IGNORECASE)
_NOSCRIPT = re.compile(r"<noscript\b[^>]{0,100}>(.{0,500}?)</noscript", re.IGNORECASE | re.DOTALL)
_ASKING = re.compile(
    r"(?:enable|requires?|needs?|without|turn on|activate|aktivier\w*|activer)\W+(?:\w+\W+){0,3}java\s?script"
    r"|java\s?script\W+(?:\w+\W+){0,4}(?:disabled|required|enabled|turned off|needed|aktivier\w*|activ)",
    re.IGNORECASE,
)
_MOUNT = re.compile(
    r"<(?:app-root|my-app|ion-app)\b[^>]{0,200}>\s*</"
    r"|<(?:div|main|section|body)\b[^>]{0,200}\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte|q-app|main-app"
    r"|application|app-root|react-root|reactroot|react-app|vue-app|ember-app|mount|docsify)[\"'\s>][^<]{0,60}</",
    re.IGNORECASE,
)
_CHALLENGES = re.compile(
    r"_cf_chl_opt|/cdn-cgi/challenge-platform/|cf-browser-verification|<title>\s*just a moment"
    r"|checking (?:if the site connection is secure|your browser before)|_incapsula_resource"
    r"|sucuri_cloudproxy|aws-?waf-?(?:token|challenge)|ddos-guard|px-captcha"
    r"|verifying (?:that )?you are (?:a )?human|(?:please )?enable javascript and cookies to continue"
    r"|anubis_challenge",
    re.IGNORECASE,
)
_LINKS = re.compile(
    r"<a\b[^<>]{0,500}?\bhref\s*=\s*(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|([^\s>]{1,2000}))", re.IGNORECASE
)


def _texts(html: str) -> Iterator[str]:
    """The pieces between tags that are shown; in time that grows with the page and no faster."""
    at = 0
    while True:
        tag = html.find("<", at)
        yield html[at:] if tag < 0 else html[at:tag]
        if tag < 0:
            return
        if html.startswith("<!--", tag):
            close, over = html.find("-->", tag), 3
        elif hiding := _HIDING.match(html, tag + 1):
            closing = _CLOSING[hiding[1].lower()].search(html, hiding.end())
            close, over = closing.end() if closing else -1, 0
        else:
            close, over = html.find(">", tag), 1
        if close < 0:  # what is never closed hides the rest
            return
        at = close + over


def visible_text(html: str) -> str:
    """About what a reader sees of a page, blanks made one; of an endless page the beginning."""
    return _joined(islice(_texts(html), _MOST_PIECES))


def _joined(pieces: Iterable[str]) -> str:
    return _SPACE.sub(" ", " ".join(pieces)).strip()


def _shows_plenty(html: str) -> bool:
    shown = 0
    for at, piece in enumerate(_texts(html)):
        if at >= _MOST_PIECES:
            return True
        if not piece or piece.isspace():
            continue
        shown += len(_SPACE.sub(" ", piece).strip())
        if shown >= PLENTY:
            return True
    return False


def why_render(html: str) -> str | None:
    """Why a page shows its content only in a browser; None if it can be read as it is."""
    if not _SCRIPT.search(html) or _shows_plenty(html):
        return None
    head = html[:_GLANCE]
    if challenge_in(head):
        return CHALLENGE
    if any(_ASKING.search(found) for found in _NOSCRIPT.findall(head)):
        return ASKS
    return BY_SCRIPT if len(visible_text(html)) < BARE or _MOUNT.search(head) else None


def challenge_in(html: str) -> bool:
    """Whether a page is one that lets browsers through after a moment, and nobody else."""
    return _CHALLENGES.search(html[:_GLANCE]) is not None


def why_render_refused(status: int, *, challenge: bool) -> str | None:
    """Why a page that was refused may be shown to a browser; None if waiting or a login is what it takes."""
    if challenge:
        return CHALLENGE
    return TURNED_AWAY if status in (403, 406) else None


def shows_the_same(plain: str, rendered: str) -> bool:
    """Whether scripts left text and links alone, so that what vouches for the one does for the other."""
    if max(len(plain), len(rendered)) > _LONGEST:
        return False
    texts = [list(islice(_texts(html), _MOST_PIECES)) for html in (plain, rendered)]
    if max(map(len, texts)) == _MOST_PIECES:
        return False
    return _joined(texts[0]) == _joined(texts[1]) and _targets(plain) == _targets(rendered)


def _targets(html: str) -> set[str]:
    return {"".join(found) for found in _LINKS.findall(html)}
