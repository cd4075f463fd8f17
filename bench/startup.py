"""What afresh needs before it can begin: timed apart, because it does not grow with the site."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from afresh.store.open import open_store
from bench.subject import Afresh


@dataclass(frozen=True)
class StartUp:
    """Medians in seconds."""

    version_s: float  # afresh --version
    idle_refresh_s: float  # afresh refresh on an empty store: opens it, finds nothing to do


def measure(work: Path, times: int) -> StartUp:
    """Start afresh a few times without work to do; the first time, when no file is warm, does not count."""
    path = work / "stores" / "empty.db"
    afresh = Afresh(work, path)
    afresh.forget()
    asyncio.run(_make(path))
    afresh.version()
    afresh.refresh()
    return StartUp(
        version_s=median(afresh.version().wall_s for _ in range(times)),
        idle_refresh_s=median(afresh.refresh().cost.wall_s for _ in range(times)),
    )


async def _make(path: Path) -> None:
    """An empty store: commands that only look do not make one."""
    await (await open_store(f"sqlite:///{path}")).close()
