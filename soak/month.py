"""Simulate a month of two sites for screenshots: pages are edited, added and deleted, and refreshed every day."""

import random
from datetime import UTC, datetime, timedelta

from tests.server.web.showroom import Stand, everything

from afresh.kb import KnowledgeBase

DAYS = 30
SEED = 7


class Month:
    """Fills a store day by day, with a clock that ends at the current time."""

    def __init__(self) -> None:
        self._ago = timedelta(days=DAYS)

    def clock(self) -> datetime:
        """Return the simulated time."""
        return datetime.now(UTC) - self._ago

    async def pass_by(self, kb: KnowledgeBase, stand: Stand) -> None:
        """Run the month, and then create the states that the screenshots show."""
        rng, site = random.Random(SEED), stand.site
        await kb.runs.crawl(site.url, name="harbor")
        paths = [path for path in site.paths if path != "/"]
        for day in range(1, DAYS):
            self._ago = timedelta(days=DAYS - day)
            for path in rng.sample(paths, rng.choice((0, 0, 1, 1, 2, 3, 5, 9))):
                site.edit(path, add_paragraph=f"Revised on day {day}.")
            if rng.random() < 0.2:
                name = f"/guide/tip-{day}/"
                site.put(name, f"<title>Tip {day}</title><main><h1>Tip {day}</h1><p>Word {day}.</p></main>")
            await kb.runs.refresh(["harbor"])
        self._ago = timedelta(0)
        await everything(kb, stand)
