"""What a look adds to the record of a page of the knowledge base; a summary only where its text changed."""

import asyncio

from afresh.digest.records import Told, status_of
from afresh.model.fetch import Body, Gone, Moved, Outcome, Read, Seen
from afresh.model.records import Claim, Decision
from afresh.ports import Summarizer
from afresh.store.store import Store
from afresh.text.normalize import content_hash

AT_A_TIME = 4  # summaries that are asked for side by side
OFFLINE = "offline"


class Telling:
    """Keeps the records of a run; a summary is made only where the text is another than on record."""

    def __init__(self, store: Store, summarizer: Summarizer) -> None:
        self._store = store
        self._summarizer = summarizer
        self._turns = asyncio.Semaphore(AT_A_TIME)

    async def of(self, claim: Claim, decision: Decision, seen: Seen, text_hash: str | None) -> Told:
        """What to write down; a SummaryError where the text is new and no summary can be had."""
        if isinstance(seen, Gone | Moved):
            return Told()
        status, at = status_of(decision.outcome, refused=decision.refused), decision.page.checked_at
        if decision.outcome is Outcome.NOT_MODIFIED:
            return Told(status=status, fetched_at=at)
        if not isinstance(seen, Read) or decision.outcome is not Outcome.SUCCESS:
            return Told(status=status)
        known = await self._store.digest.records(claim.page.id)
        if known is not None and known.text_hash is not None and _is_same_file(claim, seen):
            return Told(status=status)  # read for another reason than a change: its record stands
        told = Told(status=status, fetched_at=at, indexed_at=at)
        title, text, found = seen.document.title, seen.document.markdown, text_hash
        if decision.page.refused_hash is not None:  # its owner restored the former text
            held = await self._store.pages.content(claim.page.id)
            title, text, found = decision.page.title or "", held.markdown or "", decision.page.content_hash
        found = found or seen.document.content_hash
        if known is not None and known.text_hash == found:
            return told
        async with self._turns:
            summary = await self._summarizer.summarise(title, text)
        return Told(
            status=status,
            fetched_at=at,
            indexed_at=at,
            text_hash=found,
            summary=summary,
            asked_model=not self._summarizer.recipe.startswith(OFFLINE),
        )


def file_hash(body: Body) -> str | None:
    """The hash of a file as the cache knows it: of its text, if it is UTF-8; None for any other body."""
    if not body.proven:
        return None
    try:
        return content_hash(body.data.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _is_same_file(claim: Claim, seen: Read) -> bool:
    """Whether size and time say that a file is the one on record, whatever else it was read for."""
    return seen.validators.mtime_ns is not None and seen.validators == claim.page.validators
