"""Split the hits of a query into parts without repeats, even if the index changes between two requests.

A position in the list would not be enough, since the order of hits changes with the limit and with the index.
Therefore a cursor identifies all hits that were shown, and the next part leaves them out.
"""

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

from afresh.errors import UsageError
from afresh.model.reports import SearchHit

MAX_HITS = 200  # of one query, all parts together
KEY_BYTES = 5  # of a hit
QUERY_BYTES = 6
MAX_CURSOR_CHARS = 1_600
OTHER_QUERY = "cursor: this cursor belongs to another query; repeat the same arguments, or start again without a cursor"


class AnswerParts:
    def __init__(self, cursor: str | None, *query: object, passages: bool = False) -> None:
        """Read the cursor; raise UsageError if it belongs to another query.

        With `passages`, a page of an earlier part may appear again in a later part, with another passage.
        """
        self._query = _digest(json.dumps(query, default=str), QUERY_BYTES)
        self._passages = passages
        self._earlier = self._read(cursor) if cursor else []

    @property
    def has_begun(self) -> bool:
        return bool(self._earlier)

    def wanted(self, limit: int) -> int:
        """Return how many hits to request: those already shown, `limit` new ones, and one to see if there are more."""
        return min(MAX_HITS, len(self._earlier) + limit + 1)

    def new(self, hits: Sequence[SearchHit]) -> list[SearchHit]:
        earlier = set(self._earlier)
        return [hit for hit in hits if self._key(hit) not in earlier]

    def cursor(self, returned: Sequence[SearchHit], new: Sequence[SearchHit]) -> str | None:
        """Return the cursor after some of the new hits are returned; None if nothing is left."""
        keys = [*self._earlier, *map(self._key, returned)]
        if not returned or len(returned) >= len(new) or len(keys) >= MAX_HITS:
            return None
        return urlsafe_b64encode(b"".join((self._query, *keys))).decode().rstrip("=")

    def _key(self, hit: SearchHit) -> bytes:
        identity = [hit.source, hit.version, hit.url, *((hit.path, hit.text) if self._passages else ())]
        return _digest(json.dumps(identity), KEY_BYTES)

    def _read(self, cursor: str) -> list[bytes]:
        try:
            raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise UsageError(OTHER_QUERY) from None
        keys = raw[QUERY_BYTES:]
        if raw[:QUERY_BYTES] != self._query or len(keys) % KEY_BYTES or len(keys) >= KEY_BYTES * MAX_HITS:
            raise UsageError(OTHER_QUERY)
        return [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()
