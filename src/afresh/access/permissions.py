"""Define access tokens, and the permissions of a request."""

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.errors import Forbidden

PREFIX = "afresh_"  # start of every token, by which secret scanners recognise it
MAX_TOKEN_CHARS = 200
MAX_LOGINS = 1_000  # web logins per token; a further one ends the oldest
READ_ONLY = "this token may only read: use a token that was created with --scope write"
BOUND = "this token is limited to some sources, but the request affects all sources: use a token without --source"


class TokenScope(StrEnum):
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A stored token; its text is not stored."""

    id: int
    name: str
    scope: TokenScope
    sources: tuple[str, ...]  # labels of allowed sources; empty: all sources
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
    """A new token with its text, which is shown only once."""

    token: str
    id: int
    name: str
    scope: TokenScope
    sources: tuple[str, ...]
    expires_at: datetime | None


def digest_of(text: str) -> str:
    """Return the hash of a token; a slow hash is not needed, because a token has 32 random bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str | bytes, other: str | bytes) -> bool:
    """Compare two secrets in constant time."""
    pair = [each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in (one, other)]
    return hmac.compare_digest(*pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    caller: str  # id of the token or address of the peer, for logs and rate limits
    scope: TokenScope = TokenScope.READ
    sources: frozenset[str] | None = None  # labels of allowed sources; None: all sources

    @property
    def may_write(self) -> bool:
        return self.scope is TokenScope.WRITE

    @property
    def everywhere(self) -> bool:
        return self.sources is None

    def sees(self, label: str) -> bool:
        """Return whether the permissions include the source with this label.

        `sources` names sources or libraries, with or without a version: `react` includes every version of `react` and
        of `react/site`; `react@18` includes only that version of both.
        """
        name, _, version = label.partition("@")
        parts = name.split("/")
        names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return self.sources is None or any(
            each in self.sources or (version and f"{each}@{version}" in self.sources) for each in names
        )

    def check_write(self) -> None:
        if not self.may_write:
            raise Forbidden(READ_ONLY)

    def check_everywhere(self) -> None:
        if not self.everywhere:
            raise Forbidden(BOUND)


EVERYTHING = Permissions(caller="loopback", scope=TokenScope.WRITE)
