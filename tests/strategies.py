"""Hypothesis strategies for the nouns that the decision core reads.

Pools are small on purpose: equal hashes, recipes and validators must meet often, or the laws about
"the same" are idle.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from afresh.model.fetch import (
    Document,
    Failed,
    Gone,
    Moved,
    NotModified,
    Outcome,
    ReadDocument,
    Refused,
    Seen,
    Validators,
)
from afresh.model.records import Page, PageId, PageStatus, Policy, RunId, SourceId

law = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def examples(number: int) -> settings:
    """Return settings for so many examples by default, and fewer in the profile `quick`."""
    return settings(law, max_examples=max(10, number * law.max_examples // 100))


NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

HASHES = ("a" * 64, "b" * 64, "c" * 64)
RECIPES = ("recipe-1", "recipe-2")
EMPTY_STATUSES = (PageStatus.PENDING, PageStatus.ERROR, PageStatus.DELETED, PageStatus.REDIRECT)
FAILING_OUTCOMES = frozenset(
    {Outcome.FAILED, Outcome.TIMEOUT, Outcome.BLOCKED_ROBOTS, Outcome.BLOCKED_4XX, Outcome.BLOCKED_5XX}
)

times = st.integers(0, 10**6).map(lambda minutes: NOON + timedelta(minutes=minutes))
hashes = st.sampled_from(HASHES)
recipes = st.sampled_from(RECIPES)
languages = st.sampled_from((None, "en", "de", "pt-BR"))
titles = st.sampled_from(("Install", "Guide", ""))
urls = st.sampled_from(("https://docs.test/b", "https://docs.test/c"))
reasons = st.sampled_from(("connection refused", "read timed out", "503 Service Unavailable"))

validators = st.builds(
    Validators,
    etag=st.sampled_from((None, '"v1"', 'W/"v2"')),
    last_modified=st.sampled_from((None, "Sat, 29 Oct 1994 19:43:31 GMT", "Sun, 06 Nov 1994 08:49:37 GMT")),
    size=st.sampled_from((None, 0, 512)),
    mtime_ns=st.sampled_from((None, 0, 1_700_000_000_000_000_000)),
)

policies = st.builds(
    Policy,
    recipe=recipes,
    recheck_seconds=st.floats(1.0, 1e7),
    backoff_base_seconds=st.floats(0.1, 600.0),
    backoff_max_seconds=st.floats(0.1, 1e6),
    retries=st.integers(0, 4),
    gone_after=st.integers(1, 4),
    respect_noindex=st.sampled_from((True, True, False)),
    respect_nofollow=st.sampled_from((True, True, False)),
    reread_seconds=st.sampled_from((0.0, 0.0, 2_592_000.0)),
)
brakes = st.builds(Policy, brake_percent=st.integers(0, 100).map(float), brake_pages=st.integers(0, 30))

# ---- pages: content is held exactly while the page is active ------------------------------------

_LONG_AGO = NOON - timedelta(days=400)
_KNOWN = Page(
    id=PageId(7),
    source_id=SourceId(3),
    url="https://docs.test/a",
    status=PageStatus.ACTIVE,
    title="Old title",
    depth=3,
    content_type="text/plain",
    crawl_time=_LONG_AGO,
    last_seen=_LONG_AGO,
    last_scraped=_LONG_AGO,
    checked_at=_LONG_AGO,
    changed_at=_LONG_AGO,
)
held_pages = st.builds(
    partial(replace, _KNOWN),
    language=languages,
    validators=validators,
    content_hash=hashes,
    links_hash=hashes,
    recipe=recipes,
    failures=st.integers(0, 6),
    gone_count=st.integers(0, 4),
    missing_count=st.integers(0, 3),
    doomed_by=st.sampled_from((None, RunId(4))),
    moved_to=st.sampled_from((None, "https://docs.test/b")),
    last_scraped=st.sampled_from((_LONG_AGO, NOON - timedelta(days=10), NOON)),
)


@st.composite
def _empty(draw: st.DrawFn) -> Page:
    """A page without content; what its earlier content left behind may still be written there."""
    page = draw(held_pages)
    status = draw(st.sampled_from(EMPTY_STATUSES))
    moved_to = draw(urls) if status == PageStatus.REDIRECT else None
    return replace(page, status=status, content_hash=None, moved_to=moved_to)


empty_pages = _empty()
pages = held_pages | empty_pages

# ---- what a look may show -----------------------------------------------------------------------

documents = st.builds(
    Document,
    title=titles,
    markdown=st.just("text"),
    language=languages,
    content_hash=hashes,
    links_hash=hashes,
    index=st.sampled_from((True, True, False)),
    follow=st.sampled_from((True, True, False)),
)
reads = st.builds(ReadDocument, document=documents, validators=validators, media_type=st.just("text/html"))
not_modified = st.builds(NotModified, validators=validators, status_code=st.sampled_from((304, None)))
gone = st.builds(Gone, status_code=st.sampled_from((404, 410, None)))
moved = st.builds(Moved, to=urls, status_code=st.sampled_from((301, 308)))
refused = st.builds(
    Refused,
    outcome=st.sampled_from((Outcome.BLOCKED_ROBOTS, Outcome.BLOCKED_4XX, Outcome.FAILED)),
    reason=reasons,
    status_code=st.sampled_from((None, 401, 403)),
)
failed = st.builds(
    Failed,
    outcome=st.sampled_from((Outcome.TIMEOUT, Outcome.FAILED, Outcome.BLOCKED_4XX, Outcome.BLOCKED_5XX)),
    reason=reasons,
    status_code=st.sampled_from((None, 429, 503)),
    retry_after=st.none() | st.floats(0.0, 1e6),
)
troubles: st.SearchStrategy[Refused | Failed] = refused | failed
looks: st.SearchStrategy[Seen] = reads | not_modified | gone | moved | refused | failed


def wanted(read: ReadDocument, policy: Policy) -> bool:
    """Whether the document may be indexed at all."""
    return read.document.index or not policy.respect_noindex
