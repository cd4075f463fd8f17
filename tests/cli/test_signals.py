"""Ctrl-C and SIGTERM while a run is under way."""

import os
import signal

import pytest
from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import report

from afresh.cli import progress
from afresh.cli.progress import ProgressDisplay
from afresh.model.reports import RunReport


class Received(ProgressDisplay):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.message: list[str] = []
        self.closed = False

    def say(self, text: str) -> None:
        """Notes it."""
        self.message.append(text)

    def close(self) -> None:
        """Notes it."""
        self.closed = True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_the_run_in_order(afresh: Afresh, kb: Opened, number: signal.Signals) -> None:
    async def refresh(**_: object) -> list[RunReport]:
        os.kill(os.getpid(), number)
        await kb.stopped.wait()
        return [report(state="cancelled")]

    kb.answers["runs.refresh"] = refresh
    before = signal.getsignal(signal.SIGINT)
    ended = afresh("refresh", "python-docs")
    assert ended.code == 1
    assert "stopping …" in ended.err
    assert ("press Ctrl-C again" in ended.err) == (number == signal.SIGINT)
    assert "To continue, run afresh refresh python-docs" in ended.out
    assert kb.calls == [("runs.refresh", {"labels": ("python-docs",)}), ("stop", {})]
    assert kb.closed
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_quits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quits: list[int] = []
    monkeypatch.setattr(os, "_exit", quits.append)
    stops: list[int] = []
    received = Received()
    brake = progress.StopSignals(lambda: stops.append(1), received)
    brake.interrupt()
    assert (stops, quits, received.closed) == ([1], [], False)
    brake.interrupt()
    assert quits == [130]
    assert received.closed


def test_sigterm_never_quits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quits: list[int] = []
    monkeypatch.setattr(os, "_exit", quits.append)
    received = Received()
    brake = progress.StopSignals(lambda: None, received)
    brake.terminate()
    brake.terminate()
    assert (quits, received.message) == ([], ["stopping …"])


def test_ctrl_c_in_a_read_command_is_quiet(afresh: Afresh, kb: Opened) -> None:
    kb.answers["sources.views"] = KeyboardInterrupt()
    ended = afresh("sources")
    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "")
