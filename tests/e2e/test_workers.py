"""Many workers on one run; `python -m soak workers` does it with 16 workers, 50 hosts and 10,000 pages."""

import sys

import pytest
from soak.hosts import Hosts
from soak.workers import compare

WORKER = (sys.executable, "-m", "tests.e2e.mortal")  # spares them the processes that read pages


@pytest.mark.slow
@pytest.mark.usefixtures("work")
def test_P2_P3_F19_F24_workers_killed_or_asleep_and_a_restarted_server_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B21: no page twice, each host asked as slowly as it wants, the index as one worker makes it."""
    monkeypatch.setenv("IN_PROCESS", "1")
    hosts = Hosts(number=6, pages=60)
    assert compare(4, hosts, delay=0.1, blows=("kill", "restart", "sleep"), seed=8, command=WORKER) == []
