"""Score the links of a generated city with a model server on loopback; only new links may be sent to it."""

import argparse
import asyncio
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.chat_server import ChatServer
from tests.fakes.city import CitySite

from afresh.app import build
from afresh.config import load
from afresh.model.reports import RunReport

BATCH = 50
KEYWORDS = {"budget": 1.0, "minutes": 1.0, "contact": 0.5, "fee": 1.0}


def main(arguments: Sequence[str]) -> int:
    """Crawl a city, crawl it again, and crawl it a third time with one more link in its navigation."""
    parser = argparse.ArgumentParser(prog="python -m soak city", description=__doc__)
    parser.add_argument("--pages", type=int, default=500)
    given = parser.parse_args(arguments)
    breaches: list[str] = []
    with tempfile.TemporaryDirectory() as folder, CitySite(given.pages) as city, ChatServer() as model:
        store = Path(folder) / "soak.db"
        steps = (("first crawl", None), ("again", 0), ("one link more in the navigation", 1))
        for title, expected in steps:
            if expected:
                city.add_to_nav("/elections/", "Elections")
            began = time.process_time()
            report = asyncio.run(_crawl(store, city.url, model.base_url))
            breaches += _judged(title, expected, report, model, time.process_time() - began)
            model.asked.clear()
    print("\n".join(f"breach: {breach}" for breach in breaches) or "asked for new links alone")
    return 1 if breaches else 0


def _judged(title: str, expected: int | None, report: RunReport, model: ChatServer, seconds: float) -> list[str]:
    """Print a run, and return what is wrong with it."""
    sizes = model.links_per_call
    print(
        f"{title}: {report.new} new, {report.unchanged} same hash, {report.not_modified} not modified;"
        f" {model.calls} call(s) for {sum(sizes)} link(s), at most {max(sizes, default=0)} a call,"
        f" {report.links_saved} known; {seconds:.1f} s of CPU with site and model"
    )
    breaches = []
    if model.calls > math.ceil(sum(sizes) / BATCH) or max(sizes, default=0) > BATCH:
        breaches.append(f"{title}: {model.calls} calls for {sum(sizes)} links")
    if expected is not None and sum(sizes) != expected:
        breaches.append(f"{title}: {sum(sizes)} links asked instead of {expected}")
    if report.links_unscored:
        breaches.append(f"{title}: {report.links_unscored} links are unscored")
    return breaches


async def _crawl(store: Path, url: str, model: str) -> RunReport:
    flags = {
        "store.url": f"sqlite:///{store}",
        "network.allow": ["127.0.0.1/32"],
        "embedding.provider": "none",
        "ai.provider": "openai",
        "ai.model": "small",
        "ai.base_url": model,
    }
    kb = await build(load(None, {}, flags, store.parent))
    try:
        return await kb.runs.crawl(url, name="city", policy={"keywords": KEYWORDS})
    finally:
        await kb.close()
