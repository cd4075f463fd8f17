"""Summarise the visited files and links of the digest whose text has changed."""

import asyncio

from afresh.dataclass import dataclass, field, replace
from afresh.digest.records import DigestUpdate, status_of
from afresh.model.fetch import Body, Gone, Moved, Outcome, ReadDocument, Seen
from afresh.model.records import Claim, Decision
from afresh.ports import Summarizer
from afresh.store.store import Store
from afresh.text.normalize import content_hash

AT_A_TIME = 4  # summaries that are made concurrently
OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class DigestSummaries:
    store: Store
    summarizer: Summarizer
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))

    async def of(self, claim: Claim, decision: Decision, seen: Seen, text_hash: str | None) -> DigestUpdate:
        """Return the changes by a visit; raise SummaryError if a new text cannot be summarised."""
        if isinstance(seen, Gone | Moved):
            return DigestUpdate()
        status, at = status_of(decision.outcome, refused=decision.refused), decision.page.checked_at
        if decision.outcome is Outcome.NOT_MODIFIED:
            return DigestUpdate(status=status, fetched_at=at)
        if not isinstance(seen, ReadDocument) or decision.outcome is not Outcome.SUCCESS:
            return DigestUpdate(status=status)
        known = await self.store.digest.records(claim.page.id)
        same = seen.validators.mtime_ns is not None and seen.validators == claim.page.validators
        if same and known is not None and known.text_hash is not None:
            return DigestUpdate(status=status)  # no new content, so only the status changes
        update = DigestUpdate(status=status, fetched_at=at, indexed_at=at)
        title, text, found = seen.document.title, seen.document.markdown, text_hash
        if decision.page.refused_hash is not None:  # the user restored an earlier text
            held = await self.store.pages.content(claim.page.id)
            title, text, found = decision.page.title or "", held.markdown or "", decision.page.content_hash
        found = found or seen.document.content_hash
        if known is not None and known.text_hash == found:
            return update
        async with self._turns:
            summary = await self.summarizer.summarise(title, text)
        asked_model = not self.summarizer.recipe.startswith(OFFLINE)
        return replace(update, text_hash=found, summary=summary, asked_model=asked_model)


def file_hash(body: Body) -> str | None:
    """Return the hash of the text of a file; None if it is not UTF-8."""
    if not body.proven:
        return None
    try:
        return content_hash(body.data.decode("utf-8"))
    except UnicodeDecodeError:
        return None
