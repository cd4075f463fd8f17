"""Who may ask for what: tokens as they are on record, and what one request is allowed."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from afresh.errors import Forbidden

PREFIX = "afresh_"  # so that scanners for leaked secrets can know one
LONGEST = 200  # characters of what may be a token
MOST_LOGINS = 1_000  # with one token; the oldest ends when there is one more
BOUND = "this token is bound to some sources, and this concerns all of them"


class Scope(StrEnum):
    """How much a token allows."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is on record: never its text."""

    id: int
    name: str
    scope: Scope
    sources: tuple[str, ...]  # labels; none: all of them
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> str:
        """`good`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeToken:
    """A new token with its text, which is shown once and kept nowhere."""

    token: str
    id: int
    name: str
    scope: Scope
    sources: tuple[str, ...]
    expires_at: datetime | None


def digest_of(text: str) -> str:
    """What is kept of a token.

    A plain SHA-256 is enough: the text is 32 random bytes, so there is no list of likely ones to try, which
    is all that a slow hash would hinder.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str | bytes, other: str | bytes) -> bool:
    """Whether two secrets are equal, in a time that does not tell how far they are."""
    pair = [each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in (one, other)]
    return hmac.compare_digest(*pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What one request may do; every route and tool asks it."""

    who: str  # for logs and limits: a token's number or the peer
    scope: Scope = Scope.READ
    sources: frozenset[str] | None = None  # labels; None: all of them

    @property
    def may_write(self) -> bool:
        """Whether anything may be changed."""
        return self.scope is Scope.WRITE

    @property
    def everywhere(self) -> bool:
        """Whether it is bound to no source."""
        return self.sources is None

    def sees(self, label: str) -> bool:
        """Whether a source is open to it, by the label of its library or its own.

        `react` opens every version of `react` and of `react/site`, `react@18` just that one of both.
        """
        name, _, version = label.partition("@")
        parts = name.split("/")
        names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return self.sources is None or any(
            each in self.sources or (version and f"{each}@{version}" in self.sources) for each in names
        )

    def check_write(self) -> None:
        """Forbidden, unless it may write."""
        if not self.may_write:
            raise Forbidden("this token may only read: use one that was made with --scope write")

    def check_everywhere(self) -> None:
        """Forbidden, unless it is bound to no source."""
        if not self.everywhere:
            raise Forbidden(BOUND)


EVERYTHING = Allowed(who="loopback", scope=Scope.WRITE)
