"""What whoever asks may reach: every tool and resource gets at the knowledge base through this alone."""

from collections.abc import Callable

from afresh.access.permissions import EVERYTHING, Allowed
from afresh.kb import KnowledgeBase

Reach = Callable[[], KnowledgeBase]  # as far as it is open to the request under way


def _everything() -> Allowed:
    return EVERYTHING


def reach_of(kb: KnowledgeBase, asking: Callable[[], Allowed] = _everything) -> Reach:
    """The knowledge base as `asking` says, anew for every call of a tool."""

    def reached() -> KnowledgeBase:
        return kb.scoped_to(asking())

    return reached
