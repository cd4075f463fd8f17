"""One run under way, with what it learns about itself."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from afresh.crawl.tools import Kit
from afresh.model.records import Limits, Listed, Run, Source
from afresh.urls.scope import Rules

_OF_ROOT = ("aside", "former", "may_move")


@dataclass(slots=True)
class Course:
    """One run under way, with what it learns about itself."""

    kit: Kit
    source: Source
    rules: Rules
    run: Run
    stopping: asyncio.Event
    resumed: bool = False  # it was begun before, by us or by another process
    notes: list[str] = field(default_factory=list)
    unlisted: str | None = None  # why the source could not be read at all
    listed: Sequence[Listed] = ()  # by a listing that tells all, unless it was the same as before
    held_back: Sequence[Listed] = ()  # listed, and read in their turn where the best links come first
    moved_root: str | None = None  # where the root is for good, if not where it was
    lost_root: bool = False  # the root leads to what cannot be the source: nothing else is asked
    unfilled: bool = False  # told to stop before it was known what there is to look at
    filled: int = 0  # chunks of earlier runs that got the vectors they lacked
    began: float = field(default_factory=time.monotonic)

    @property
    def worked_ms(self) -> int:
        """How long this process has worked on the run."""
        return round((time.monotonic() - self.began) * 1000)

    @property
    def limits(self) -> Limits:
        """How far the run may go."""
        rules, budget = self.rules, self.kit.budget(self.run.mode)
        return Limits(max_pages=rules.max_pages, max_depth=rules.max_depth, budget=budget)

    @property
    def starts_at_root(self) -> bool:
        """Whether the root is a page itself, from which the others are found."""
        return self.kit.lister.walks(self.rules.root)

    def admits(self, url: str, found_on: str | None) -> bool:
        """Whether a link on record belongs to the source by its present rules."""
        lister = self.kit.lister
        if not lister.walks(url) or lister.refusal(url, 0) is not None:
            return False
        return self.kit.patterns.admits(url, found_on, follow=found_on is not None)

    @property
    def fingerprint(self) -> str:
        """The rules as text, to notice when they change."""
        rules = {name: value for name, value in asdict(self.rules).items() if name not in _OF_ROOT}
        return json.dumps(rules | ({"aside": self.rules.aside} if self.rules.aside else {}), sort_keys=True)
