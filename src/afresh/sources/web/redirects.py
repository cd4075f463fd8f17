"""What a redirect means: where it leads, and when a walk ends at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from afresh.model.fetch import Failed, Moved, Outcome, Refused
from afresh.sources.web.answers import PERMANENT, Headers, as_text, status_words, wait_of
from afresh.urls.canonical import canonical, host_of

_OUTSIDE = "which is outside this source; crawl that address instead or widen the scope"


@dataclass(frozen=True, slots=True)
class Hop:
    """A redirect that a look met."""

    status: int
    to: str | None  # None for what is not an http address
    raw: str
    wait: float | None = None  # seconds to let pass before it is followed

    def refused(self, reason: str) -> Refused:
        """The end of a walk that the next try within minutes would find again."""
        return Refused(outcome=Outcome.FAILED, reason=reason, status_code=self.status)


def hop_of(status: int, headers: Headers, base: str, now: datetime) -> Hop:
    """The redirect that an answer is."""
    raw = as_text(headers.get("Location", ""))
    return Hop(status, canonical(raw, base) if raw else None, raw, wait_of(headers, now))


def end_at(hop: Hop, chain: Sequence[str], *, page: bool, most: int) -> Moved | Refused | None:
    """What ends a walk at a redirect; None if it may be followed as far as the redirect itself tells."""
    if hop.to is None:
        if not hop.raw:
            return hop.refused(f"{status_words(hop.status)} without a target")
        return hop.refused(f"redirected to {hop.raw[:200]!r}, which is not an http address")
    way = " → ".join((*chain, hop.to))
    if hop.to in chain:
        return hop.refused(f"redirect loop: {way}")
    if page and len(chain) == 1 and hop.status in PERMANENT:
        return Moved(to=hop.to, status_code=hop.status, retry_after=hop.wait)
    if len(chain) > most:
        return hop.refused(f"more than {most} redirects: {way}")
    return None


def barred(hop: Hop, why: Refused | Failed) -> Refused | Failed:
    """The end of a walk whose next address may not be asked."""
    reason = f"redirected to {hop.to}: {why.reason}"
    if isinstance(why, Failed):
        return Failed(outcome=why.outcome, reason=reason, status_code=hop.status, retry_after=why.retry_after)
    return Refused(outcome=why.outcome, reason=reason, status_code=hop.status)


def outside(hop: Hop) -> Refused:
    """The end of a walk that would leave the source."""
    return hop.refused(f"redirected to {hop.to}, {_OUTSIDE}")


def postponed(hop: Hop) -> Failed:
    """The end of a walk that is to go on later than anybody waits."""
    reason = f"{status_words(hop.status)}, to be followed after {hop.wait or 0.0:g} s"
    return Failed(outcome=Outcome.FAILED, reason=reason, status_code=hop.status, retry_after=hop.wait)


def same_site(one: str, other: str) -> bool:
    """Whether two addresses are of one host, with or without `www.`."""
    return host_of(one).removeprefix("www.") == host_of(other).removeprefix("www.")
