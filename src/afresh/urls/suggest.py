"""Suggest stored URLs that are similar to an unknown one."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from afresh.urls.canonical import directory_of, domain_of

_SUFFIX = re.compile(r"\.(?:html?|xhtml|php|aspx?|md|mdx|rst|txt)$", re.IGNORECASE)
_INDEX = re.compile(r"(?:index|default)(?:\.[a-z]+)?", re.IGNORECASE)
_MAX_COMPARED_CHARS = 300  # longer URLs are not useful as suggestions
_ALIKE = 0.75


def stem_of(url: str) -> str:
    """Return the last meaningful part of a URL's path, such as `retries` for `/guide/retries/index.html`."""
    parts = [part for part in url.partition("?")[0].split("/")[3:] if part]
    while parts and _INDEX.fullmatch(parts[-1]):
        parts.pop()
    return _SUFFIX.sub("", parts[-1]).lower() if parts else ""


def clues(url: str) -> tuple[str, ...]:
    """Return parts of a URL by which to search for similar URLs, most significant first: last part, folder, host."""
    stem, site = stem_of(url), f"//{domain_of(url)}/"
    folder = directory_of(url).partition("?")[0].partition("://")[2]
    near = (f"/{stem}" if stem else "", f"//{folder}" if f"//{folder}" != site else "", site)
    return tuple(dict.fromkeys(clue for clue in near if clue))


def nearest(url: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    judged = sorted(((_likeness(url, other), other) for other in candidates if other != url), reverse=True)
    return tuple(other for likeness, other in judged if likeness >= _ALIKE)[:limit]


def _likeness(url: str, other: str) -> float:
    """Return the similarity of two URLs; an equal last part outweighs everything else."""
    alike = SequenceMatcher(None, _spoken(url), _spoken(other), autojunk=False).ratio()
    return 1.0 + alike if stem_of(url) == stem_of(other) else alike


def _spoken(url: str) -> str:
    rest = url.partition("://")[2].lower().removeprefix("www.")
    return _SUFFIX.sub("", rest.partition("?")[0].rstrip("/"))[:_MAX_COMPARED_CHARS]
