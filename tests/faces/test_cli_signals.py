"""Ctrl-C and SIGTERM while a run is under way."""

import asyncio
import os
import signal

import pytest
from tests.faces.conftest import Afresh
from tests.faces.fake_knowledge import FakeKnowledge, Waiting, report

from afresh.faces.cli import running
from afresh.faces.cli.progress import Silence


class Heard(Silence):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.closed = False

    def say(self, text: str) -> None:
        """Notes it."""
        self.said.append(text)

    def close(self) -> None:
        """Notes it."""
        self.closed = True


def sends(kb: FakeKnowledge, number: signal.Signals) -> Waiting:
    """A wait that ends when a signal, sent from inside, has stopped the run."""

    async def wait() -> None:
        stopped = asyncio.Event()
        kb.when_stopped = stopped.set
        os.kill(os.getpid(), number)
        await stopped.wait()

    return wait


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_the_run_in_order(
    afresh: Afresh, kb: FakeKnowledge, number: signal.Signals
) -> None:
    kb.reports = [report(state="cancelled")]
    kb.waits = sends(kb, number)
    before = signal.getsignal(signal.SIGINT)
    ended = afresh("refresh", "python-docs")
    assert ended.code == 1
    assert "stopping …" in ended.err
    assert ("press Ctrl-C again" in ended.err) == (number == signal.SIGINT)
    assert "afresh refresh python-docs goes on where it was" in ended.out
    assert (kb.stopped, kb.closed) == (1, True)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_quits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quits: list[int] = []
    monkeypatch.setattr(os, "_exit", quits.append)
    stops: list[int] = []
    heard = Heard()
    brake = running.Brake(lambda: stops.append(1), heard)
    brake.interrupt()
    assert (stops, quits, heard.closed) == ([1], [], False)
    brake.interrupt()
    assert quits == [130]
    assert heard.closed


def test_sigterm_never_quits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quits: list[int] = []
    monkeypatch.setattr(os, "_exit", quits.append)
    heard = Heard()
    brake = running.Brake(lambda: None, heard)
    brake.terminate()
    brake.terminate()
    assert (quits, heard.said) == ([], ["stopping …"])


def test_ctrl_c_in_a_read_command_is_quiet(afresh: Afresh, kb: FakeKnowledge) -> None:
    kb.error = KeyboardInterrupt()  # type: ignore[assignment]
    ended = afresh("sources")
    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "")
