"""Stored tokens, and the permissions of a request."""

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.errors import Forbidden

PREFIX = "afresh_"  # lets secret scanners recognise tokens
MAX_TOKEN_CHARS = 200
MAX_LOGINS = 1_000  # per token; one more ends the oldest
READ_ONLY = "this token may only read: use one that was made with --scope write"
BOUND = "this token is bound to some sources, and this concerns all of them"


class TokenScope(StrEnum):
    """How much a token allows."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A stored token, without its text."""

    id: int
    name: str
    scope: TokenScope
    sources: tuple[str, ...]  # labels; empty: all sources
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> str:
        """Return `good`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedToken:
    """A new token with its text, which is shown once and not stored."""

    token: str
    id: int
    name: str
    scope: TokenScope
    sources: tuple[str, ...]
    expires_at: datetime | None


def digest_of(text: str) -> str:
    """Return the stored hash of a token.

    A plain SHA-256 is enough: the text is 32 random bytes, so no list of likely ones can be tried, which is
    all that a slow hash would prevent.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str | bytes, other: str | bytes) -> bool:
    """Return whether two secrets are equal, in constant time."""
    pair = [each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in (one, other)]
    return hmac.compare_digest(*pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What a request may do; every route and tool checks it."""

    caller: str  # for logs and limits: a token id or the peer
    scope: TokenScope = TokenScope.READ
    sources: frozenset[str] | None = None  # labels; None: all sources

    @property
    def may_write(self) -> bool:
        return self.scope is TokenScope.WRITE

    @property
    def everywhere(self) -> bool:
        return self.sources is None

    def sees(self, label: str) -> bool:
        """Return whether a source is allowed, by its own label or that of its library.

        `react` allows every version of `react` and of `react/site`; `react@18` only that version of both.
        """
        name, _, version = label.partition("@")
        parts = name.split("/")
        names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return self.sources is None or any(
            each in self.sources or (version and f"{each}@{version}" in self.sources) for each in names
        )

    def check_write(self) -> None:
        """Raise Forbidden without write permission."""
        if not self.may_write:
            raise Forbidden(READ_ONLY)

    def check_everywhere(self) -> None:
        """Raise Forbidden if only some sources are allowed."""
        if not self.everywhere:
            raise Forbidden(BOUND)


EVERYTHING = Permissions(caller="loopback", scope=TokenScope.WRITE)
