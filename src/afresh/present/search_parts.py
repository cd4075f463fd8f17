"""The hits of a question in parts: each hit comes once, whatever moves in the index meanwhile.

The order of hits depends on how many are asked for and changes with the index, so a place in it says little.
A cursor names the hits that were shown, and those are left out of what comes next.
"""

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

from afresh.errors import UsageError
from afresh.model.reports import Hit

MOST_HITS = 200  # of one question, over all its parts
KEY = 5  # bytes that tell hits of one question apart
QUESTION = 6
LONGEST_CURSOR = 1_600  # characters
WRONG = (
    "cursor: it is not the one that this question was answered with; "
    "ask with the same arguments, or leave the cursor out to begin again"
)


class Parts:
    """One question, as far as it was answered."""

    def __init__(self, cursor: str | None, *question: object, passages: bool = False) -> None:
        """The question with what was shown of it; UsageError if the cursor belongs to another."""
        self._question = _digest(json.dumps(question, default=str), QUESTION)
        self._passages = passages  # a page may be shown more than once, with other passages
        self._shown = self._read(cursor) if cursor else []

    @property
    def begun(self) -> bool:
        """Whether something was shown before."""
        return bool(self._shown)

    def wanted(self, limit: int) -> int:
        """How many hits to ask for, so that so many are new and one more tells whether it goes on."""
        return min(MOST_HITS, len(self._shown) + limit + 1)

    def new(self, hits: Sequence[Hit]) -> list[Hit]:
        """Those that were not shown yet."""
        shown = set(self._shown)
        return [hit for hit in hits if self._key(hit) not in shown]

    def cursor(self, shown: Sequence[Hit], new: Sequence[Hit]) -> str | None:
        """Where it goes on when some of the new hits are shown; None when nothing is left."""
        keys = [*self._shown, *map(self._key, shown)]
        if not shown or len(shown) >= len(new) or len(keys) >= MOST_HITS:
            return None
        return urlsafe_b64encode(b"".join((self._question, *keys))).decode().rstrip("=")

    def _key(self, hit: Hit) -> bytes:
        told = [hit.source, hit.version, hit.url, *((hit.path, hit.text) if self._passages else ())]
        return _digest(json.dumps(told), KEY)

    def _read(self, cursor: str) -> list[bytes]:
        try:
            raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise UsageError(WRONG) from None
        keys = raw[QUESTION:]
        if raw[:QUESTION] != self._question or len(keys) % KEY or len(keys) >= KEY * MOST_HITS:
            raise UsageError(WRONG)
        return [keys[at : at + KEY] for at in range(0, len(keys), KEY)]


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()
