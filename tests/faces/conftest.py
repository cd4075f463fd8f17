"""A command line that talks to a scripted knowledge base."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faces.fake_knowledge import NOW, FakeKnowledge

from afresh.faces.cli import main, opening
from afresh.faces.cli.session import Session


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Afresh = Callable[..., Ended]


@pytest.fixture
def kb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeKnowledge:
    """The knowledge base every command of this test opens; the folder is empty, the time stands still."""
    fake = FakeKnowledge()
    monkeypatch.setattr(opening, "open_kb", fake.opened_with)
    monkeypatch.setattr(Session, "now", NOW)
    monkeypatch.chdir(tmp_path)
    return fake


@pytest.fixture
def afresh(kb: FakeKnowledge, capsys: pytest.CaptureFixture[str]) -> Afresh:
    """Calls the command line as a user would."""

    def call(*arguments: str) -> Ended:
        code = main(arguments)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call
