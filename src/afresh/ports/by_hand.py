"""What a person changes in a store by hand, and answers that are given again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from afresh.core.answers import KeptAnswer
from afresh.core.model import PageId, Source, SourceId


class Handled(Protocol):
    """Single records, changed from outside a run."""

    async def replace_rules(
        self, source: SourceId, rules: Mapping[str, object], policy: Mapping[str, object], now: datetime
    ) -> Source | None: ...
    async def change_source(
        self,
        source: SourceId,
        *,
        name: str,
        version: str | None,
        url: str,
        operator_url: str | None,
        now: datetime,
    ) -> Source | None: ...
    async def add_page(self, source: SourceId, url: str, depth: int, now: datetime) -> PageId: ...
    async def look_at(self, page: PageId, at: datetime, now: datetime) -> bool: ...
    async def drop_page(self, page: PageId, now: datetime) -> bool: ...
    async def add_link(self, page: PageId, url: str, text: str) -> int | None: ...
    async def set_link(
        self,
        link: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> bool: ...
    async def remove_link(self, link: int) -> bool: ...
    async def begin_answer(self, caller: str, name: str, asked: str, now: datetime) -> KeptAnswer | None: ...
    async def renew_answer(self, caller: str, name: str, began: datetime, now: datetime) -> bool: ...
    async def keep_answer(self, caller: str, name: str, began: datetime, answer: KeptAnswer) -> None: ...
    async def forget_answer(self, caller: str, name: str, began: datetime) -> None: ...
