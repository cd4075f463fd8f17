"""Recognise a language by short byte sequences; scripts/distil_languages.py writes the table.

It takes five megabytes and ten milliseconds to load, and no numpy, because every parser process may need it.
"""

import json
import math
import struct
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

FILE = "language_table.bin"
SHARPNESS = 3.0  # of the probabilities, so that as many texts are clear as with the whole model
_FRACTION = 64  # weights are whole numbers of this fraction
_LANE = 4  # bytes in which one language is summed


class LanguageTable(NamedTuple):
    """The languages, and for each byte sequence how typical it is of each of them."""

    languages: list[str]  # one may occur twice, in two scripts
    priors: list[float]
    floors: list[float]  # log probability of a sequence that a language does not have
    step: float  # log probability of one unit above the floor
    rows: dict[bytes, bytes]  # units above the floor, one byte per language
    max_sequence_bytes: int

    def classify(self, text: str) -> tuple[str, float]:
        """Return the most likely language of a text and its probability."""
        data = unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
        counts = Counter(self._sequences_in(data))
        weights = [(self.rows[each], round(_FRACTION * math.log1p(times))) for each, times in counts.items()]
        whole = sum(weight for _, weight in weights) / _FRACTION
        sharpness = SHARPNESS / math.sqrt(len(data) or 1)
        scores = [
            (prior + floor * whole + self.step * units / _FRACTION) * sharpness
            for prior, floor, units in zip(self.priors, self.floors, self._summed(weights), strict=True)
        ]
        best = max(scores)
        shares: defaultdict[str, float] = defaultdict(float)
        for language, score in zip(self.languages, scores, strict=True):
            shares[language] += math.exp(score - best)
        language = max(shares, key=shares.__getitem__)
        return language, shares[language] / sum(shares.values())

    def _sequences_in(self, data: bytes) -> Iterator[bytes]:
        """Yield the longest known sequence that ends at each byte."""
        for end in range(1, len(data) + 1):
            for start in range(max(0, end - self.max_sequence_bytes), end):
                sequence = data[start:end]
                if sequence in self.rows:
                    yield sequence
                    break

    def _summed(self, weights: list[tuple[bytes, int]]) -> tuple[int, ...]:
        """Return the weighted sum of table rows for each language; one large integer sums all languages at once."""
        size = _LANE * len(self.languages)
        lanes, whole = bytearray(size), 0
        for row, weight in weights:
            lanes[::_LANE] = row
            whole += weight * int.from_bytes(lanes, "little")
        return struct.unpack(f"<{len(self.languages)}I", whole.to_bytes(size, "little"))


@cache
def language_table() -> LanguageTable:
    head, _, packed = files("afresh.extract").joinpath(FILE).read_bytes().partition(b"\n")
    facts, data = json.loads(head), zlib.decompress(packed)
    sequences, at = list[bytes](), 0
    for length, number in facts["sequences"]:
        end = at + length * number
        sequences += [data[start : start + length] for start in range(at, end, length)]
        at = end
    width = len(facts["languages"])
    rows = (data[start : start + width] for start in range(at, len(data), width))
    return LanguageTable(
        facts["languages"],
        facts["priors"],
        facts["floors"],
        facts["step"],
        dict(zip(sequences, rows, strict=True)),
        max(length for length, _ in facts["sequences"]),
    )
