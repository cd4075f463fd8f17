"""Very deep markup is made flat before it is parsed: the parser's time grows with the square of the depth."""

import re
from collections import Counter

SHALLOW_TAGS = 10_000  # with fewer tags no nesting is deep enough to matter
DEEPEST = 400  # of one element within itself
PLACES = 256

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NEVER_NEST = frozenset(
    "area base br col embed hr img input link meta source track wbr p li dt dd option tr td th a".split()
)


def flatten(html: str, tag_count: int) -> str:
    """The markup without the tags of elements that nest deeper than `DEEPEST`; their content stays."""
    if tag_count < SHALLOW_TAGS or not _may_be_deep(html):
        return html
    deep = _deep_names(html)
    if not deep:
        return html
    return re.sub(rf"</?(?:{'|'.join(deep)})(?![a-zA-Z0-9])[^>]*>", "\n", html, flags=re.IGNORECASE)


def _may_be_deep(html: str) -> bool:
    """Whether, at some of the places looked at, far more tags were opened than closed: cheap, and never misses."""
    surplus = 0
    step = max(1, len(html) // PLACES)
    for start in range(0, len(html), step):
        part = html[start : start + step + 1]
        surplus += part.count("<") - 2 * part.count("</") - (start + step < len(html) and part.endswith("<"))
        if surplus > DEEPEST:
            return True
    return False


def _deep_names(html: str) -> list[str]:
    depth: Counter[str] = Counter()
    deepest: Counter[str] = Counter()
    for closing, raw_name in _TAG.findall(html):
        name = raw_name.lower()
        if name in _NEVER_NEST:
            continue
        if closing:
            depth[name] = max(0, depth[name] - 1)
        else:
            depth[name] += 1
            deepest[name] = max(deepest[name], depth[name])
    return [name for name, most in deepest.items() if most > DEEPEST]
