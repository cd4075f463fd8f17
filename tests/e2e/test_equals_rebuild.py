"""P6: whatever happened on the way, three healthy refreshes give the index that a fresh crawl gives."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.wild import wild_life

from afresh.testing import TinySite


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 121, 123])
async def test_P6_refreshes_through_a_wild_life_equal_a_fresh_crawl(
    tmp_path: Path, tiny: TinySite, work: type[InProcess], seed: int
) -> None:
    await wild_life(tmp_path, tiny, seed)


@pytest.mark.parametrize("seed", [7, 8])
async def test_P6_F09_a_wild_life_with_kills_in_it_ends_like_a_fresh_crawl(
    tmp_path: Path, tiny: TinySite, work: type[InProcess], seed: int
) -> None:
    await wild_life(tmp_path, tiny, seed, kills=True)
