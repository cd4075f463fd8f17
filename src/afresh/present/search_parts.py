"""Split the hits of a query into parts without repeats, even if the index changes in between.

The order of hits depends on the limit and changes with the index, so a position is not enough. A cursor
identifies all hits that were shown, and the next part leaves them out.
"""

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

from afresh.errors import UsageError
from afresh.model.reports import SearchHit

MOST_HITS = 200  # of one query, over all parts
KEY = 5  # bytes of a hit's key
QUESTION = 6
LONGEST_CURSOR = 1_600  # characters
OTHER_QUESTION = (
    "cursor: it is not the one that this question was answered with; "
    "ask with the same arguments, or leave the cursor out to begin again"
)


class AnswerParts:
    """One query, and the hits that were already shown."""

    def __init__(self, cursor: str | None, *question: object, passages: bool = False) -> None:
        """Read the cursor; raise UsageError if it belongs to another query."""
        self._question = _digest(json.dumps(question, default=str), QUESTION)
        self._passages = passages  # a page may appear again with other passages
        self._shown = self._read(cursor) if cursor else []

    @property
    def begun(self) -> bool:
        return bool(self._shown)

    def wanted(self, limit: int) -> int:
        """Return how many hits to request: shown ones, `limit` new ones, and one more as a lookahead."""
        return min(MOST_HITS, len(self._shown) + limit + 1)

    def new(self, hits: Sequence[SearchHit]) -> list[SearchHit]:
        shown = set(self._shown)
        return [hit for hit in hits if self._key(hit) not in shown]

    def cursor(self, shown: Sequence[SearchHit], new: Sequence[SearchHit]) -> str | None:
        """Return the cursor after some of the new hits are shown; None if nothing is left."""
        keys = [*self._shown, *map(self._key, shown)]
        if not shown or len(shown) >= len(new) or len(keys) >= MOST_HITS:
            return None
        return urlsafe_b64encode(b"".join((self._question, *keys))).decode().rstrip("=")

    def _key(self, hit: SearchHit) -> bytes:
        told = [hit.source, hit.version, hit.url, *((hit.path, hit.text) if self._passages else ())]
        return _digest(json.dumps(told), KEY)

    def _read(self, cursor: str) -> list[bytes]:
        try:
            raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise UsageError(OTHER_QUESTION) from None
        keys = raw[QUESTION:]
        if raw[:QUESTION] != self._question or len(keys) % KEY or len(keys) >= KEY * MOST_HITS:
            raise UsageError(OTHER_QUESTION)
        return [keys[at : at + KEY] for at in range(0, len(keys), KEY)]


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()
