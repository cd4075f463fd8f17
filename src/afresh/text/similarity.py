"""How alike two texts are, told from a few numbers each instead of from the texts."""

import re
from itertools import pairwise
from zlib import crc32

SIZE = 48  # numbers in a sketch: likeness is right within about 0.07
WIDTH = 8  # hex digits of one number
MOST = 400_000  # characters that are looked at
_WORD = re.compile(r"\b[^\W\d]+\b")  # what holds a digit is a number, a date or an id: left out


def sketch_of(text: str, url: str = "") -> str:
    """The smallest hashes of the word pairs of a text, in order, as hex; "" for a text without words.

    The address of the page is left out: an error page that names it is the same error page everywhere.
    """
    text = text[:MOST]
    path = "/" + url.partition("://")[2].partition("/")[2]
    for name in (url, path):
        text = text.replace(name, " ") if len(name) > 1 else text
    words = _WORD.findall(text.casefold())
    pairs = {f"{first} {second}" for first, second in pairwise(words)} or set(words)
    hashes = {crc32(pair.encode("utf-8", "surrogatepass")) for pair in pairs}
    return "".join(f"{number:0{WIDTH}x}" for number in sorted(hashes)[:SIZE])


def likeness(one: str, other: str) -> float:
    """The share of word pairs that two texts have in common, from 0 to 1, estimated from their sketches."""
    first, second = _numbers(one), _numbers(other)
    smallest = sorted(first | second)[:SIZE]
    if not smallest:
        return 1.0
    both = first & second
    return sum(1 for number in smallest if number in both) / len(smallest)


def _numbers(sketch: str) -> set[str]:
    return {sketch[at : at + WIDTH] for at in range(0, len(sketch), WIDTH)}
