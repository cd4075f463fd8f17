"""Failpoints: named in one place, free of charge, and silent unless the environment names them."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.program import Program
from tests.e2e.test_copy import COPYING
from tests.e2e.test_embedding_kill import REMAKING
from tests.e2e.test_kb_faults import UPDATING
from tests.e2e.test_kill import AT_ANY_POINT, CONFIRMING
from tests.e2e.test_link_kill import SCORING
from tests.sync.test_sync_law import POINTS as SYNCING

from afresh.errors import ConfigError
from afresh.ops.failpoints import POINTS, VARIABLE, FailpointRaised, arm, failpoint

SOURCE = Path(__file__).resolve().parents[2] / "src" / "afresh"


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    arm({})


def test_F01_F05_the_registry_names_the_points_of_the_source_and_each_has_a_kill_test() -> None:
    calls = re.compile(r'(?:failpoint|\bat|_at|pass_point)\("([a-z.]+)"\)')
    files = [file for file in SOURCE.rglob("*.py") if file.name != "ops/failpoints.py"]
    used = [name for file in files for name in calls.findall(file.read_text("utf-8"))]
    assert set(used) == set(POINTS)
    copying = [point.partition("=")[0] for points in COPYING.values() for point in points]
    syncing = [f"sync.{point}" for point in SYNCING]  # as crashes in process, and one as a real kill
    assert {*AT_ANY_POINT, *CONFIRMING, *REMAKING, *UPDATING, *SCORING, *copying, *syncing} == set(POINTS)


def test_a_point_that_is_named_acts_at_its_hit_and_only_there() -> None:
    arm({VARIABLE: "page.decided=raise@3, page.claimed=raise"})
    failpoint("page.decided")
    failpoint("commit.pages")
    failpoint("page.decided")
    with pytest.raises(FailpointRaised, match=r"page\.decided"):
        failpoint("page.decided")
    failpoint("page.decided")
    with pytest.raises(FailpointRaised):
        failpoint("page.claimed")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("page.declined=kill", "there is no failpoint 'page.declined'; there are run.started,"),
        ("page.decided", "should look like page.decided=kill"),
        ("page.decided=explode", "should look like"),
        ("page.decided=kill@0", "should look like"),
        ("page.decided=kill@x", "should look like"),
    ],
)
def test_a_wrong_name_or_action_is_refused_with_what_is_right(given: str, reported: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reported)):
        arm({VARIABLE: given})


def test_a_wrong_name_stops_the_program_before_it_touches_the_store(tmp_path: Path) -> None:
    ended = Program(tmp_path / "kb.db").run("sources", failpoints="nowhere=kill")
    assert ended.code == 2
    assert "there is no failpoint 'nowhere'" in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "kb.db").exists()


def test_a_point_costs_next_to_nothing_when_nobody_names_it() -> None:
    arm({})
    began = time.process_time()
    for _ in range(100_000):
        failpoint("page.claimed")
    assert time.process_time() - began < 0.2  # 2 µs each; about 50 ns on an idle machine
