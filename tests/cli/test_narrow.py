"""Lists on narrow terminals: the address is always readable."""

import sys

import pytest
from rich.console import Console
from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import URL, page, source

from afresh.cli import session

LONG = "https://docs.example.org/reference/" + "/".join(f"chapter-{number}" for number in range(12)) + "/"
TITLE = "A long title about retries that never seems to end"


def narrow(*, stderr: bool) -> Console:
    """A console as a terminal has it: as wide as COLUMNS says."""
    return Console(file=sys.stderr if stderr else sys.stdout, highlight=False, markup=False, emoji=False)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Stdout is a terminal; the test sets its width."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(session, "_console", narrow)
    return monkeypatch


@pytest.mark.parametrize("width", [44, 60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("arguments", [["pages", "harbor"], ["sources"], ["links", "harbor"]])
def test_the_address_is_whole_on_any_terminal(
    afresh: Afresh, kb: Opened, terminal: pytest.MonkeyPatch, arguments: list[str], width: int
) -> None:
    kb.answers["pages.of_source"] = [page(title=TITLE), page(title=TITLE, url=URL + "more/")]
    kb.answers["sources.views"] = [source(name="a-rather-long-name-of-a-source", url=URL)]
    terminal.setenv("COLUMNS", str(width))
    lines = afresh(*arguments).out.splitlines()
    assert any(line.endswith(URL) for line in map(str.rstrip, lines))
    assert max(map(len, lines)) <= width


def test_a_very_long_address_is_folded_and_loses_nothing(
    afresh: Afresh, kb: Opened, terminal: pytest.MonkeyPatch
) -> None:
    kb.answers["pages.of_source"] = [page(title=TITLE, url=LONG)]
    terminal.setenv("COLUMNS", "60")
    out = afresh("pages", "harbor").out
    assert LONG in "".join(line.strip() for line in out.splitlines())
    assert max(map(len, out.splitlines())) <= 60


def test_less_important_columns_go_first(afresh: Afresh, kb: Opened, terminal: pytest.MonkeyPatch) -> None:
    kb.answers["pages.of_source"] = [page(url=URL)]
    heads = []
    for width in (120, 80, 66):
        terminal.setenv("COLUMNS", str(width))
        heads.append(afresh("pages", "harbor").out.splitlines()[0].split())
    assert heads == [
        ["status", "depth", "title", "checked", "changed", "URL"],
        ["status", "title", "checked", "URL"],
        ["status", "title", "URL"],
    ]


def test_settings_and_history_fit_too(afresh: Afresh, terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "60")
    history = afresh("history", URL).out
    assert '304 by ETag "v1"' in history
    settings = afresh("config", "show").out
    assert "crawl.max_path_components" in settings
    assert max(map(len, (history + settings).splitlines())) <= 60
