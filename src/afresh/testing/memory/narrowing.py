"""Which pages a search may answer from."""

from afresh.core.asking import Narrowed
from afresh.core.model import Page, PageId
from afresh.core.scope import address_filter
from afresh.testing.memory.tables import Tables


def pages_within(tables: Tables, within: Narrowed) -> set[PageId]:
    """The pages that a search may answer from."""
    return {number for number in tables.pieces if _is_wanted(tables.pages[number].page, within)}


def _is_wanted(page: Page, within: Narrowed) -> bool:
    spoken, language = (page.language or "").lower(), (within.language or "").lower()
    return (
        (within.sources is None or page.source_id in within.sources)
        and (not language or spoken == language or spoken.startswith(f"{language}-"))
        and (within.path is None or address_filter(within.path)(page.url))
        and (
            within.changed_after is None
            or (page.changed_at is not None and page.changed_at >= within.changed_after)
        )
        and (
            within.checked_after is None
            or (page.checked_at is not None and page.checked_at >= within.checked_after)
        )
    )
