"""What routes are handed: the knowledge base, and numbers and texts that fit into a store."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import StringConstraints

from afresh.kb import KnowledgeBase

LARGEST = 2**63 - 1
MOST = 1_000  # of one page of a list
USUAL = 100


async def _kb(request: Request) -> KnowledgeBase:
    kb: KnowledgeBase = request.app.state.kb
    return kb


Kb = Annotated[KnowledgeBase, Depends(_kb)]
Id = Annotated[int, Path(ge=1, le=LARGEST, description="The number of it.")]
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=4_000, description="Where to go on: `next` of the answer before."),
]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Address = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=300)]
