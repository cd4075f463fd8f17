"""The state of one run in progress."""

import asyncio
import json
import time
from collections.abc import Sequence

from afresh.crawl.tools import RunTools
from afresh.dataclass import asdict, dataclass, field
from afresh.model.records import ListedUrl, Run, RunLimits, Source
from afresh.urls.scope import Rules

_OF_ROOT = ("aside", "former", "may_move")


@dataclass(slots=True)
class RunContext:
    tools: RunTools
    source: Source
    rules: Rules
    run: Run
    stopping: asyncio.Event
    resumed: bool = False  # whether it continues an interrupted run
    notes: list[str] = field(default_factory=list)
    unlisted: str | None = None  # why the source could not be read
    listed: Sequence[ListedUrl] = ()  # from a complete listing, unless it was unchanged
    held_back: Sequence[ListedUrl] = ()  # listed URLs that become pages later, in order of their scores
    moved_root: str | None = None  # where a permanent redirect of the root leads
    lost_root: bool = False  # the root leads to another site or to no content: read nothing else
    unfilled: bool = False  # stopped before the queue was filled
    filled: int = 0  # chunks of earlier runs that got missing vectors
    began: float = field(default_factory=time.monotonic)

    @property
    def limits(self) -> RunLimits:
        rules, budget = self.rules, self.tools.budget(self.run.mode)
        return RunLimits(max_pages=rules.max_pages, max_depth=rules.max_depth, budget=budget)

    @property
    def starts_at_root(self) -> bool:
        """Return whether the pages of the source are found by links, starting at its root page."""
        return self.tools.lister.walks(self.rules.root)

    def admits(self, url: str, found_on: str | None) -> bool:
        lister = self.tools.lister
        if not lister.walks(url) or lister.refusal(url, 0) is not None:
            return False
        return self.tools.patterns.admits(url, found_on, follow=found_on is not None)

    @property
    def fingerprint(self) -> str:
        """Return a text that identifies the rules; it changes when the rules change."""
        rules = {name: value for name, value in asdict(self.rules).items() if name not in _OF_ROOT}
        return json.dumps(rules | ({"aside": self.rules.aside} if self.rules.aside else {}), sort_keys=True)
