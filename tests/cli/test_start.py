"""Services start together with their database; other commands say at once that it is away."""

import subprocess
import sys

import pytest
from tests.cli.conftest import Afresh, Opened

from afresh.errors import StoreError, StoreUnreachable

AWAY = "the store postgresql://host/kb does not answer"


def test_F19_P10_a_service_waits_for_a_store_that_is_away_when_it_starts(
    afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.cli.progress.STORE_POLL_SECONDS", 0.0)
    kb.away = [StoreUnreachable(AWAY)] * 3
    ended = afresh("watch", "python-docs")
    assert (ended.code, kb.away) == (0, [])
    assert ended.err.splitlines() == [f"afresh: {AWAY} (waiting)", "Watching python-docs"]

    monkeypatch.setattr("afresh.cli.progress.STORE_WAIT_SECONDS", 0.0)
    kb.away = [StoreUnreachable(AWAY)] * 2
    assert (afresh("watch").code, len(kb.away)) == (2, 1), "not for ever"


@pytest.mark.parametrize(
    ("command", "wrong"),
    [("watch", StoreError("the store names a database that does not exist")), ("sources", StoreUnreachable(AWAY))],
)
def test_what_waiting_cannot_mend_and_what_only_asks_is_reported_at_once(
    afresh: Afresh, kb: Opened, command: str, wrong: Exception
) -> None:
    kb.away = [wrong]
    ended = afresh(command)
    assert (ended.code, ended.err) == (2, f"afresh: {wrong}\n")


def test_U4_a_command_ends_without_a_last_look_through_all_objects() -> None:
    code = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
        "from afresh.cli import main; main(['--version'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "True"
