"""Split text into the tokens of the built-in models: greedily the longest known pieces of each word."""

import re
from collections.abc import Sequence
from unicodedata import category, normalize

MAX_WORD_CHARS = 48  # of a word; the rest is left out
INSIDE = "##"  # before a piece that does not begin a word
UNKNOWN_ROWS = 1_024  # shared by the characters without a token
_MAX_PIECE_CHARS = 20
_BLANKS = {code: " " for code in range(128) if not chr(code).isalnum()}
_MAX_CACHED = 50_000
# Scripts without blanks between words are read by character.
_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿\U00020000-\U0003134f]|[^\W_぀-ヿ㐀-䶿一-鿿豈-﫿\U00020000-\U0003134f]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class WordPieces:
    """Splits text into tokens and returns their numbers; caches those of words, because most words are frequent."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._numbers = {token: number for number, token in enumerate(tokens) if token}
        self._unknown = len(tokens)
        self._cached: dict[str, tuple[int, ...]] = {}

    def numbers(self, text: str) -> list[int]:
        cached, found = self._cached, list[int]()
        # Only ASCII is translated quickly; elsewhere punctuation is dropped when a part is read.
        for part in (text.translate(_BLANKS) if text.isascii() else text).split():
            numbers = cached.get(part)
            found += self._read(part) if numbers is None else numbers
        return found

    def _read(self, part: str) -> tuple[int, ...]:
        """Return the token numbers of a part of a text that contains no blanks, and cache them."""
        plain = part if part.isascii() else _without_accents(part)
        words = (word for run in _WORD.findall(plain) for word in _CAMEL.split(run[:MAX_WORD_CHARS]))
        found = tuple(number for word in words for number in self._pieces(word.lower()))
        if len(part) <= MAX_WORD_CHARS:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            self._cached[part] = found
        return found

    def _pieces(self, word: str) -> list[int]:
        found, start, inside = [], 0, ""
        while start < len(word):
            for end in range(min(len(word), start + _MAX_PIECE_CHARS), start, -1):
                number = self._numbers.get(inside + word[start:end])
                if number is not None:
                    break
            else:
                number, end = self._unknown + ord(word[start]) % UNKNOWN_ROWS, start + 1
            found.append(number)
            start, inside = end, INSIDE
        return found


def _without_accents(text: str) -> str:
    return "".join(char for char in normalize("NFKD", text) if category(char) != "Mn")
