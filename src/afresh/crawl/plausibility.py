"""Decide whether content can be trusted: error, login and empty pages may come with status 200.

| content of the 200 response                            | if content is stored           | of a new page |
|--------------------------------------------------------|--------------------------------|---------------|
| the same as for a URL that cannot exist                | hold                           | hold          |
| a challenge ("verify you are human")                   | hold                           | hold          |
| a short text whose title is an error message           | hold, unless titled so before  | hold          |
| a login or consent page, unlike the stored content     | hold                           | accept        |
| no text, only a login form                             | hold                           | flag          |
| no text                                                | hold; flag in a later run      | flag          |
| almost no text, but a browser showed more before       | hold                           | -             |
| another text, the same at three URLs or more           | hold                           | accept        |
| another text with a password field, at one or two URLs | flag at the end of the run     | accept        |
| another text without such a field, at one or two URLs  | accept at the end of the run   | accept        |
| less than a twentieth of the stored content            | flag                           | -             |

Hold: do not store the new content, flag the page, and delete nothing because of the response.
Flag: store the new content and flag the page. The flag stays until the content changes or is trusted (`--trust`). The
store keeps the former text, even if the new one is trusted. Links of the knowledge base are flagged where other
pages are held (`Policy.holds`).
"""

import re
from enum import StrEnum
from functools import partial

from afresh.dataclass import dataclass, replace
from afresh.model.fetch import ContentSignals, Document
from afresh.model.records import Page, Policy
from afresh.sources.web.render_check import BARE, RENDERED
from afresh.text.normalize import EMPTY_HASH

STRANGE = 0.2  # likeness to the stored text below which a page has become another one
SAME = 0.8  # likeness above which two texts are the same page
MIN_LOOKALIKES = 2  # if this many other URLs turned into the same page, it is a login or error page
SHRUNK = 0.05  # share of the former length below which a page lost nearly all text
SHORT = 2_000  # characters: a challenge page is short, as is an error page in place of content
CURT = 600  # characters: a login page is shorter, as is an error page that was never anything else
TERSE = 120  # characters: less text than this beside a login form is not content
PROBE = "afresh-probe-"  # prefix of the URL that cannot exist
CRASHES = 3  # of the parser on one page; then its body is skipped

_CHALLENGE = re.compile(
    r"just a moment\.\.\.|checking your browser before|enable javascript and cookies to continue"
    r"|verif(?:y|ying) (?:that )?you are (?:a )?human|attention required! \| cloudflare"
    r"|complete the security check|unusual traffic from your|are you a robot\?|ddos protection by"
    r"|request unsuccessful\. incapsula|pardon our interruption",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"\b(?:log|sign) ?in\b|\banmelden\b|\bse connecter\b|\biniciar sesión\b", re.IGNORECASE)
_PASSWORD = re.compile(r"\bpassword\b|\bpasswort\b|\bmot de passe\b|\bcontraseña\b", re.IGNORECASE)
_CONSENT = re.compile(r"\baccept (?:all )?cookies\b|\bbefore you continue\b|\bwe value your privacy\b", re.IGNORECASE)


class SuspicionAction(StrEnum):
    HOLD = "hold"  # keep the stored content
    WAIT = "wait"  # decide when the run has seen the other pages
    FLAG = "flag"  # accept it, and flag the page


@dataclass(frozen=True, slots=True)
class Suspicion:
    action: SuspicionAction
    text: str


_hold, _flag = partial(Suspicion, SuspicionAction.HOLD), partial(Suspicion, SuspicionAction.FLAG)
NO_TEXT = "it has no text"
ERROR_MESSAGE = "it is an error message, not the page"
ANOTHER_WITH_LOGIN = "it has become another page, with a login form"
RESTORED = "its former text was restored; the page itself still shows the replaced text"
WAIT = Suspicion(SuspicionAction.WAIT, "it has become another page: decided after the other pages")


def suspicion_of(page: Page, document: Document, signs: ContentSignals, policy: Policy) -> Suspicion | None:
    """Return why new content is suspicious and what to do about it; None for plausible content."""
    if not policy.doubts or page.content_hash == document.content_hash:
        return None
    doubt = None
    if page.content_hash is None:
        if signs.like_missing:
            doubt = _hold("the site answers the same for URLs that do not exist (soft 404)")
        elif _says(_CHALLENGE, document, SHORT):
            doubt = _hold("it is a browser check, not the page")
        elif document.is_error and len(document.markdown) <= CURT:
            doubt = _hold(ERROR_MESSAGE)
        elif not document.markdown.strip() and not document.leads_on:
            doubt = _flag(f"{NO_TEXT}, only a login form" if document.login else NO_TEXT)
    elif not policy.holds and not document.markdown.strip():
        doubt = _lost_all(signs)
    else:
        doubt = _no_content(page, document, signs) or _not_its_own(document, signs) or _shrunk(document, signs)
    if doubt is not None and doubt.action is SuspicionAction.HOLD and not policy.holds:
        return replace(doubt, action=SuspicionAction.FLAG)
    return doubt


def flag_that_stays(page: Page, policy: Policy) -> str | None:
    if not policy.doubts or page.doubt is None:
        return None
    if page.doubt_hash is None:
        return page.doubt
    return NO_TEXT if page.content_hash == EMPTY_HASH else None


def keeps_former_text(page: Page, document: Document, signs: ContentSignals, policy: Policy, flag: str | None) -> bool:
    """Return whether to store the replaced text as former text; `flag`: why the new text is suspicious, else None."""
    was_flagged = page.doubt not in (None, RESTORED) and page.doubt_hash is None
    return not was_flagged and (flag is not None or (not policy.doubts and _is_other(document, signs)))


def is_strange(likeness: float | None) -> bool:
    return likeness is not None and likeness < STRANGE


def _no_content(page: Page, document: Document, signs: ContentSignals) -> Suspicion | None:
    """Return why a document cannot be the content of a page that had content before; None if it can."""
    from afresh.text.error_messages import is_error_message

    other = signs.likeness is None or signs.likeness < 0.5
    if signs.like_missing and other:
        return _hold("the site now answers the same for URLs that do not exist (soft 404 or login)")
    if other and _says(_CHALLENGE, document, SHORT):
        return _hold("it is a browser check, not the page")
    if other and document.is_error and len(document.markdown) <= SHORT and not is_error_message(page.title or ""):
        return _hold(ERROR_MESSAGE)
    if _is_other(document, signs) and is_wall(document):
        return _hold("it looks like a login or consent page")
    size = len(document.markdown.strip())
    bare = size == 0 or (size < BARE and size < (signs.length or 0) * SHRUNK)
    if page.content_type == RENDERED and bare:
        return _hold("a browser shows almost nothing now: its scripts may not reach their server")
    return _emptied(page, document, signs) if size == 0 else None


def _emptied(page: Page, document: Document, signs: ContentSignals) -> Suspicion | None:
    """Return what to do about a page that is empty now.

    Hold it in the first run that finds it empty. In a later run, decide after the other pages: flag it, or hold it
    again if two of them became empty, too.
    """
    if page.doubt_hash != document.content_hash or page.doubt_run == signs.run:
        return _hold("the page is empty now; it is accepted if a later run finds it empty again")
    if signs.lookalikes >= MIN_LOOKALIKES:
        return _hold(f"the page is empty now, and so are {signs.lookalikes} others")
    if not signs.others_checked:
        return WAIT
    return _lost_all(signs)


def _lost_all(signs: ContentSignals) -> Suspicion:
    lost = f"it lost all its text: {signs.length:,} characters" if signs.length else NO_TEXT
    return _flag(lost)


def _not_its_own(document: Document, signs: ContentSignals) -> Suspicion | None:
    """Return what to do about a page with a very different text; WAIT if other pages have to be checked first."""
    if not is_strange(signs.likeness) or not document.markdown.strip():
        return None
    if signs.lookalikes >= MIN_LOOKALIKES:
        return _hold(f"{signs.lookalikes} other URLs show the same content now: probably a login or error page")
    if not signs.others_checked:
        return WAIT
    return _flag(ANOTHER_WITH_LOGIN) if document.asks_password else None


def _shrunk(document: Document, signs: ContentSignals) -> Suspicion | None:
    size = len(document.markdown)
    if signs.length and size < signs.length * SHRUNK:
        return _flag(f"it shrank from {signs.length:,} to {size:,} characters")
    return None


def _is_other(document: Document, signs: ContentSignals) -> bool:
    return is_strange(signs.likeness) or not document.markdown.strip() or _shrunk(document, signs) is not None


def is_wall(document: Document) -> bool:
    """Return whether a page only asks for a password or for consent."""
    if document.login or (document.asks_password and _says(_LOGIN, document, CURT)):
        return True
    login = _says(_LOGIN, document, CURT) and _says(_PASSWORD, document, CURT)
    return login or _says(_CONSENT, document, CURT)


def _says(pattern: re.Pattern[str], document: Document, max_chars: int) -> bool:
    return len(document.markdown) <= max_chars and bool(pattern.search(f"{document.title}\n{document.markdown}"))
