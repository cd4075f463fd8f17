"""The fast built-in model: a vector for each token, in files of this package (scripts/distil_model.py makes them)."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize
from zlib import crc32

from afresh.errors import EmbedderUnavailable
from afresh.model.fetch import embedded_text
from afresh.models.local import MAX_TEXT_CHARS, unit_rows

if TYPE_CHECKING:
    from afresh.ports import Matrix

DIMENSION = 256
VERSION = 1  # of the files and of the conversion from text to vector: raise it when a vector would change
FOLDER = Path(__file__).parent / "fast"
TOKENS = "tokens.txt"
VECTORS = "vectors.npy"
CHECKSUM = "97c9736c"  # of the files: scripts/distil_model.py prints it
_FIX = "install afresh again, or set embedding.provider: none for keyword search only"
_MAX_TOKENS = 4_096
_TOGETHER = 32  # texts in one product of matrices: more have more zeros
# A text begins with its subject: the first token counts three times, later ones less.
_FIRST, _FADING = 2.0, 48.0
_TARGETS = re.compile(
    r"\{[ *#][^{}]{0,200}\}"  # { #anchor }
    r"|\]\([^()\s]{0,2000}(?:\s[^()]{0,200})?\)"  # the target of a link
    r"|https?://\S+"
)

# A text is split into tokens: greedily the longest known pieces of each word.
MAX_WORD_CHARS = 48  # of a word; the rest is left out
INSIDE = "##"  # before a piece that does not begin a word
UNKNOWN_ROWS = 1_024  # shared by the characters without a token
_MAX_PIECE_CHARS = 20
_BLANKS = bytes(code if code > 127 or chr(code).isalnum() else ord(" ") for code in range(256))  # for UTF-8
_MAX_CACHED = 50_000
# Scripts without blanks between words are read by character.
_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿\U00020000-\U0003134f]|[^\W_぀-ヿ㐀-䶿一-鿿豈-﫿\U00020000-\U0003134f]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class FastModel:
    """Computes a vector as the weighted sum of the vectors of the tokens in a text."""

    def __init__(self) -> None:
        import numpy as np

        tokens, self._rows = load_files()
        self._pieces = WordPieces(tokens)
        self._places = 1.0 + _FIRST * np.exp(-np.arange(_MAX_TOKENS) / _FADING)

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        import numpy as np

        sums = np.zeros((len(texts), DIMENSION), np.float32)
        for at in range(0, len(texts), _TOGETHER):
            sums[at : at + _TOGETHER] = self._sums([self.tokens(text) for text in texts[at : at + _TOGETHER]])
        return unit_rows(sums)

    def tokens(self, text: str) -> list[int]:
        """Return the token numbers of a text without URLs and anchors."""
        return self._pieces.numbers(_TARGETS.sub(" ", text[:MAX_TEXT_CHARS]))[:_MAX_TOKENS]

    def _sums(self, texts: Sequence[Sequence[int]]) -> "Matrix":
        """Return the weighted sum of the token vectors of each text, by one matrix product."""
        import numpy as np

        sizes = [len(tokens) for tokens in texts]
        flat = np.fromiter(chain.from_iterable(texts), np.intp, sum(sizes))
        is_used = np.zeros(len(self._rows), bool)
        is_used[flat] = True
        used = np.flatnonzero(is_used)
        if not len(used):
            return np.zeros((len(texts), DIMENSION), np.float32)
        cells = np.repeat(np.arange(len(texts)) * len(used), sizes) + (np.cumsum(is_used) - 1)[flat]
        places = np.concatenate([self._places[:size] for size in sizes])
        weights = np.bincount(cells, places, len(texts) * len(used)).reshape(len(texts), len(used))
        # Repeated tokens count more, but less than proportionally: the power of 0.75, by two roots.
        roots = np.sqrt(weights.astype(np.float32))
        rows = self._rows[used]
        vectors = rows["vector"] * rows["scale"].astype(np.float32)[:, None]
        sums: Matrix = (roots * np.sqrt(roots)) @ vectors
        return sums


_loaded = cache(FastModel)


def embed_chunks(chunks: Sequence[tuple[tuple[str, ...], str]]) -> bytes:
    """Return the vectors of chunks (path and content) as 32-bit floats."""
    return _loaded().rows([embedded_text(path, content) for path, content in chunks]).tobytes()


def check_installed() -> None:
    if not all((FOLDER / name).is_file() for name in (TOKENS, VECTORS)):
        raise EmbedderUnavailable(f"the built-in model is not installed: {_FIX}")


def load_files() -> tuple[list[str], Any]:
    """Return the tokens and their vectors, which are mapped into memory."""
    import numpy as np

    try:
        names = (FOLDER / TOKENS).read_text("utf-8")
        rows = np.load(FOLDER / VECTORS, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise EmbedderUnavailable(f"the built-in model cannot be read: {_FIX}") from error
    tokens = names.split("\n")
    wanted = (len(tokens) + UNKNOWN_ROWS,), np.dtype([("scale", "<f2"), ("vector", "i1", (DIMENSION,))])
    if (rows.shape, rows.dtype) != wanted or checksum(names, rows) != CHECKSUM:
        raise EmbedderUnavailable(f"the built-in model differs from the tested version: {_FIX}")
    return tokens, rows


def checksum(names: str, rows: Any) -> str:
    """Return a CRC-32 of tokens and vectors; a SHA-256 takes five times as long."""
    return f"{crc32(rows.data, crc32(names.encode())):08x}"


class WordPieces:
    """Converts text to token numbers; caches them by word."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._numbers = {token: number for number, token in enumerate(tokens) if token}
        self._unknown = len(tokens)
        self._cached: dict[str, tuple[int, ...]] = {}

    def numbers(self, text: str) -> list[int]:
        cached, found = self._cached, list[int]()
        for part in text.encode("utf-8", "surrogatepass").translate(_BLANKS).decode("utf-8", "surrogatepass").split():
            numbers = cached.get(part)
            found += self._read(part) if numbers is None else numbers
        return found

    def _read(self, part: str) -> tuple[int, ...]:
        """Return the token numbers of a part of a text without blanks, and cache them."""
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
