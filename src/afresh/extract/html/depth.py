"""Very deep markup is made flat before it is parsed: the parser's time grows with the square of the depth."""

import re
from collections import Counter

DEEPEST = 400  # of one element within itself; the converter stops at 1,024 levels in all
SHALLOW_TAGS = 2 * DEEPEST  # with fewer tags no nesting is deep enough to matter
PIECE_CHARS = 4_096

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NEVER_NEST = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
        "p",
        "li",
        "dt",
        "dd",
        "option",
        "tr",
        "td",
        "th",
        "a",
    ]
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
    """Whether far more tags were opened than closed somewhere: counted on short pieces, which is cheap.

    What can hide inside one piece is some 500 levels, which neither parser nor converter minds.
    """
    surplus = 0
    for start in range(0, len(html), PIECE_CHARS):
        piece = html[start : start + PIECE_CHARS + 1]  # one more, for a "</" across the border
        surplus += piece.count("<", 0, PIECE_CHARS) - 2 * piece.count("</")
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
