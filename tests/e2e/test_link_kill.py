"""A crawl that is killed while it scores links: what was answered is kept, the next run asks the rest."""

from pathlib import Path

import pytest
from tests.e2e.library import assert_sound, rows
from tests.e2e.mortal import live
from tests.e2e.sites import lay

from afresh.testing import TinySite

KILLED = -9
SCORING = ["links.answered", "links.kept"]
FLAGS = {"links.keywords": {"budget": 1.0, "contact": 0.5}, "links.scorer": "offline"}
CITY = {"/": ["/budget", "/contact", "/parks"], "/budget": ["/"], "/contact": [], "/parks": []}
SCORES = "select url, score, comment from links where score is not null order by url"


@pytest.mark.parametrize("point", SCORING)
def test_F01_F09_killed_while_links_are_scored_a_crawl_goes_on_as_if_undisturbed(
    point: str, store: Path, tmp_path: Path, tiny: TinySite
) -> None:
    lay(tiny, CITY)
    assert live(tmp_path / "whole.db", tiny.url, "crawl", flags=FLAGS) == 0
    assert live(store, tiny.url, "crawl", f"{point}=kill", flags=FLAGS) == KILLED
    assert_sound(store, stable=False)
    kept = len(rows(store, "select 1 from link_asked"))
    assert kept == (4 if point == "links.kept" else 0)
    assert live(store, tiny.url, "refresh", flags=FLAGS) == 0
    assert_sound(store)
    assert rows(store, SCORES) == rows(tmp_path / "whole.db", SCORES)
    assert len(rows(store, SCORES)) == 2
    assert rows(store, "select links_scored from sources") == rows(
        tmp_path / "whole.db", "select links_scored from sources"
    )
