"""The words of a link: of its visible text and of its address, in the order in which they stand."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus, urlsplit

from afresh.search.stemming import words_in

_LONGEST_TEXT = 500  # characters; nobody reads a longer one as a link
_LONGEST_PATH = 1_000
_MOST_WORDS = 60
_HUMP = re.compile(
    r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
_ENDING = re.compile(
    r"\.(?:html?|xhtml|php\d?|aspx?|jspx?|cfm|pdf|docx?|xlsx?|pptx?|csv|txt|zip|md)$", re.IGNORECASE
)
TRANSCRIBED = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "ø": "oe", "å": "aa", "œ": "oe", "ß": "ss"}
)


class LinkWords(NamedTuple):
    """What can be read off a link."""

    text: Sequence[str]
    address: Sequence[str]


def link_words(text: str, url: str) -> LinkWords:
    """The words of a link in lower case: `meetingMinutes_2026` and `meeting-minutes-2026` are the same."""
    return LinkWords(_words(text[:_LONGEST_TEXT]), _words(_address(url)))


def plain_words(text: str) -> list[str]:
    """The words of a keyword, spelt like those of a link."""
    return words_in(text)


@lru_cache(maxsize=65_536)
def spellings(word: str) -> frozenset[str]:
    """The ways in which a word is written where its accents cannot be: `anträge`, `antrage`, `antraege`."""
    if word.isascii():
        return frozenset((word,))
    bare = "".join(each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each))
    return frozenset((word, bare, word.translate(TRANSCRIBED)))


def _address(url: str) -> str:
    """Path and values of the query as text; the host is the site's and no link's own."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    path = _ENDING.sub("", unquote_plus(parts.path[:_LONGEST_PATH], errors="replace"))
    values = (pair.partition("=")[2] for pair in parts.query[:_LONGEST_PATH].split("&"))
    return " ".join((path, *(unquote_plus(value, errors="replace") for value in values)))


def _words(text: str) -> list[str]:
    return words_in(_HUMP.sub(" ", text.replace("_", " ")))[:_MOST_WORDS]
