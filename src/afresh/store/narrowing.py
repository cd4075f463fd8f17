"""Which pages a search may answer from."""

from collections.abc import Sequence

from afresh.aio import in_turns
from afresh.search.request import Narrowed
from afresh.store.dialect import Row, Session
from afresh.urls.scope import address_filter


async def pages_within(tx: Session, within: Narrowed) -> Sequence[Row]:
    """The pages that a search may answer from."""
    if within.sources is not None and not within.by_page:  # answered by an index alone
        return await tx.all("pages_of", sources=list(within.sources))
    rows = await tx.all(
        "pages_within",
        sources=None if within.sources is None else list(within.sources),
        language=within.language,
        changed_after=within.changed_after,
        checked_after=within.checked_after,
    )
    if within.path is None:
        return rows
    matches = address_filter(within.path)
    return [row async for row in in_turns(rows, lambda row: str(row["url"])) if matches(row["url"])]
