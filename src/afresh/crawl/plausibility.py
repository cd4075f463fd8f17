"""Whether content is to be believed: error pages, walls and emptied pages come with a 200, too.

| what came with a 200                                   | of a known page         | of a new one |
|--------------------------------------------------------|-------------------------|--------------|
| what the site answers for an address that cannot exist | held                    | held         |
| a challenge ("verify you are human")                   | held                    | held         |
| a login or consent page, unlike the content on record  | held                    | believed     |
| no text, and a login is all that the page offers       | held                    | flagged      |
| nothing but blanks                                     | held, flagged if seen again | flagged   |
| next to nothing, where a browser showed more           | held                    |              |
| something quite different, the same at three addresses | held                    | believed     |
| something quite different, at this address alone       | believed at the end of the run | believed |
| the same, with a field for a password                  | flagged at the end of the run  | believed |
| less than a twentieth of the content on record         | flagged                 |              |

Held: the content on record stays, the page is flagged, and nothing is deleted because of it.
Flagged: it is believed, and the flag stays until the content changes or is trusted (`--trust`); the store
keeps the former text, and so it does where the new one is trusted. Links of the knowledge base are flagged
where other pages are held (`Policy.holds`).
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from afresh.model.fetch import Document, Read, Signs
from afresh.model.records import Page, Policy
from afresh.sources.web.render_check import BARE, RENDERED
from afresh.text.normalize import EMPTY_HASH

STRANGE = 0.2  # a page that keeps less of its words than this has become another page
SAME = 0.8  # two pages that share more of their words than this are one
TWINS = 2  # other addresses that turned into the same page: from here on it is a wall
SHRUNK = 0.05  # of its old length
SHORT = 2_000  # characters: a challenge says little
CURT = 600  # characters: a login form says even less
TERSE = 120  # characters: beside a login form that is no content, whatever it says
PROBE = "afresh-probe-"  # how the name of an address that cannot exist begins
CRASHES = 3  # of the parser on one page, then it is not given to it again

_CHALLENGE = re.compile(
    r"just a moment\.\.\.|checking your browser before|enable javascript and cookies to continue"
    r"|verif(?:y|ying) (?:that )?you are (?:a )?human|attention required! \| cloudflare"
    r"|complete the security check|unusual traffic from your|are you a robot\?|ddos protection by"
    r"|request unsuccessful\. incapsula|pardon our interruption",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"\b(?:log|sign) ?in\b|\banmelden\b|\bse connecter\b|\biniciar sesión\b", re.IGNORECASE)
_PASSWORD = re.compile(r"\bpassword\b|\bpasswort\b|\bmot de passe\b|\bcontraseña\b", re.IGNORECASE)
_CONSENT = re.compile(
    r"\baccept (?:all )?cookies\b|\bbefore you continue\b|\bwe value your privacy\b", re.IGNORECASE
)


class Trust(StrEnum):
    """How far content is believed."""

    HOLD = "hold"  # not at all: what is on record stays
    WAIT = "wait"  # that shows when the run has seen the rest
    FLAG = "flag"  # it is taken, and a person may want to know


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why content is not simply believed."""

    trust: Trust
    text: str


NO_TEXT = "it has no text"
ANOTHER_WITH_LOGIN = "it has become another page, with a login form"
RESTORED = "its former text was restored, the page itself still shows what was there before that"
WAIT = Doubt(Trust.WAIT, "it has become another page: that shows when the others were seen")


def doubt_of(page: Page, document: Document, signs: Signs, policy: Policy) -> Doubt | None:
    """What speaks against the content that came; None if nothing does, or if nobody wants to know."""
    if not policy.doubts or page.content_hash == document.content_hash:
        return None
    is_known = page.content_hash is not None
    doubt = _of_known_page(page, document, signs, policy) if is_known else _of_new_page(document, signs)
    if doubt is not None and doubt.trust is Trust.HOLD and not policy.holds:
        return replace(doubt, trust=Trust.FLAG)
    return doubt


def _of_known_page(page: Page, document: Document, signs: Signs, policy: Policy) -> Doubt | None:
    if not policy.holds and not document.markdown.strip():
        return _lost_all(signs)
    return (
        _no_content(page, document, signs) or _not_its_own(page, document, signs) or _shrunk(document, signs)
    )


def must_wait(page: Page, seen: Read, policy: Policy) -> bool:
    """Whether content is judged only when the run has seen the rest."""
    doubt = None if seen.proven else doubt_of(page, seen.document, seen.signs, policy)
    return doubt is not None and doubt.trust is Trust.WAIT


def flag_that_stays(page: Page, policy: Policy) -> str | None:
    """The flag of a page whose content is as it was when it was flagged."""
    if not policy.doubts or page.doubt is None:
        return None
    if page.doubt_hash is None:
        return page.doubt
    return NO_TEXT if page.content_hash == EMPTY_HASH else None


def loses_text(page: Page, document: Document, signs: Signs, policy: Policy, flag: str | None) -> bool:
    """Whether a change replaces a text that is worth keeping: the new one is flagged, or would be if it were
    not trusted, and the old one was not."""
    was_flagged = page.doubt not in (None, RESTORED) and page.doubt_hash is None
    return not was_flagged and (flag is not None or (not policy.doubts and _is_other(document, signs)))


def is_strange(likeness: float | None) -> bool:
    """Whether a page has become another one."""
    return likeness is not None and likeness < STRANGE


def is_poison(page: Page, body_hash: str | None) -> bool:
    """Whether a body has crashed the parser so often that it is not given to it again."""
    return page.crashes >= CRASHES and page.doubt_hash == body_hash


def _of_new_page(document: Document, signs: Signs) -> Doubt | None:
    if signs.like_missing:
        return Doubt(Trust.HOLD, "the site says the same for addresses that do not exist (soft 404)")
    if _says(_CHALLENGE, document, SHORT):
        return Doubt(Trust.HOLD, "it is a challenge for browsers, not the page")
    if document.markdown.strip() or document.leads_on:
        return None
    return Doubt(Trust.FLAG, f"{NO_TEXT}, only a login form" if document.login else NO_TEXT)


def _no_content(page: Page, document: Document, signs: Signs) -> Doubt | None:
    """An answer that no site means as the content of a page that had some."""
    other = signs.likeness is None or signs.likeness < 0.5
    if signs.like_missing and other:
        return Doubt(
            Trust.HOLD, "the site now says the same for addresses that do not exist (soft 404 or a wall)"
        )
    if other and _says(_CHALLENGE, document, SHORT):
        return Doubt(Trust.HOLD, "it is a challenge for browsers, not the page")
    if _is_other(document, signs) and is_wall(document):
        return Doubt(Trust.HOLD, "it looks like a login or consent page")
    if page.content_type == RENDERED and _is_bare(document, signs):
        return Doubt(
            Trust.HOLD, "a browser shows next to nothing now: what its scripts ask for may be out of reach"
        )
    return None if document.markdown.strip() else _emptied(page, document, signs)


def _is_bare(document: Document, signs: Signs) -> bool:
    """Whether a page shows next to nothing of what it showed."""
    size = len(document.markdown.strip())
    return size == 0 or (size < BARE and size < (signs.length or 0) * SHRUNK)


def _emptied(page: Page, document: Document, signs: Signs) -> Doubt | None:
    """A page without content is believed when two runs saw it so, unless others lost theirs with it."""
    if page.doubt_hash != document.content_hash or page.doubt_run == signs.run:
        return Doubt(Trust.HOLD, "the page is empty now; if a later run finds it so again, that is believed")
    if signs.twins >= TWINS:
        return Doubt(Trust.HOLD, f"the page is empty now, and {signs.twins} others too")
    if not signs.last:
        return WAIT
    return _lost_all(signs)


def _lost_all(signs: Signs) -> Doubt:
    lost = f"it lost all its text: {signs.length:,} characters" if signs.length else NO_TEXT
    return Doubt(Trust.FLAG, lost)


def _not_its_own(page: Page, document: Document, signs: Signs) -> Doubt | None:
    """A page that became another one: the same other one as its neighbours, or too early to tell."""
    if not is_strange(signs.likeness) or not document.markdown.strip():
        return None
    if signs.twins >= TWINS:
        return Doubt(Trust.HOLD, f"{signs.twins} other addresses show the same now: a wall?")
    if not signs.last:
        return WAIT
    return Doubt(Trust.FLAG, ANOTHER_WITH_LOGIN) if document.asks_password else None


def _shrunk(document: Document, signs: Signs) -> Doubt | None:
    size = len(document.markdown)
    if signs.length and size < signs.length * SHRUNK:
        return Doubt(Trust.FLAG, f"it shrank from {signs.length:,} to {size:,} characters")
    return None


def _is_other(document: Document, signs: Signs) -> bool:
    """Whether next to nothing is left of the page on record."""
    return is_strange(signs.likeness) or not document.markdown.strip() or _shrunk(document, signs) is not None


def is_wall(document: Document) -> bool:
    """Whether a page does nothing but ask for a password or for consent."""
    if document.login or (document.asks_password and _says(_LOGIN, document, CURT)):
        return True
    login = _says(_LOGIN, document, CURT) and _says(_PASSWORD, document, CURT)
    return login or _says(_CONSENT, document, CURT)


def _says(pattern: re.Pattern[str], document: Document, longest: int) -> bool:
    """Whether a short page says something."""
    return len(document.markdown) <= longest and bool(
        pattern.search(f"{document.title}\n{document.markdown}")
    )
