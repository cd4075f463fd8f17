"""How a command gets its knowledge base."""

from typing import TYPE_CHECKING

from afresh.config import Config
from afresh.ports import Access

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase


async def open_kb(config: Config, access: Access) -> "KnowledgeBase":
    """The knowledge base of these settings; the engine is imported only now."""
    from afresh.app import build

    return await build(config, access=access)
