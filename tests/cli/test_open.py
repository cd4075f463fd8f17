"""One page as text, one version among others."""

import pytest
from tests.cli.conftest import RETRIES, Afresh, Opened
from tests.fakes.records import URL, opened


def test_in_a_pipe_a_page_is_its_markdown_and_nothing_else(afresh: Afresh, kb: Opened) -> None:
    ended = afresh("open", URL, "--in", "harbor@2")
    assert ended.out == f"{RETRIES}\n\nafter 5 s\n"
    assert ended.err == ""
    assert kb.calls == [("pages.open", {"url": URL, "within": "harbor@2"})]
    kb.answers["pages.open"] = opened(markdown="tail\n")
    assert afresh("open", URL, "--former").out == "tail\n"
    assert kb.calls[-1] == ("pages.open", {"url": URL, "former": True})


def test_on_a_terminal_a_short_heading_stands_above(
    afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    kb.answers["pages.open"] = opened(
        moved_from=("https://docs.example.org/old",), also_in=("harbor@1",), doubt="it shrank"
    )
    lines = afresh("open", URL).out.splitlines()
    plain = [line.replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\x1b[2m", "") for line in lines]
    assert plain[:7] == [
        "Retries  harbor@2",
        URL,
        "moved from https://docs.example.org/old",
        "checked 2 minutes ago, changed 3 days ago, en",
        "also in harbor@1",
        "doubtful: it shrank",
        "",
    ]
    assert plain[7] == "# Retries"
    assert afresh("open", URL, "-q").out.startswith("# Retries")


def test_a_hostile_text_moves_no_cursor_and_keeps_its_tabs(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.open"] = opened(markdown="a\x1b[2Jb\r\n\tc\u200bd \x9b \ud800")
    assert afresh("open", URL).out == "a␛[2Jb\n\tc\u200bd � �\n"


def test_S8_F111_no_text_is_reordered_and_on_a_terminal_none_is_unseen(
    afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.answers["pages.open"] = opened(markdown="a\u202egnp.exe\u2066b\u200fc\u061cd\n\u200be\n")
    assert afresh("open", URL).out == "a\ufffdgnp.exe\ufffdb\u200fc\u061cd\n\u200be\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert afresh("open", URL, "-q").out == "a\ufffdgnp.exe\ufffdb\ufffdc\ufffdd\n\ufffde\n"


def test_a_page_that_is_not_there_is_a_sentence(afresh: Afresh) -> None:
    ended = afresh("open", URL.replace("retries", "retrys"))
    assert (ended.code, ended.out) == (2, "")
    assert URL in ended.err


def test_a_version_is_reported_with_the_others(afresh: Afresh, kb: Opened) -> None:
    ended = afresh("find-version", "react@18.2.9")
    assert [line.split() for line in ended.out.splitlines()] == [
        ["react@18.2.0", "closest", "lower", "version;", "none", "matches"],
        ["URL", "https://docs.example.org/"],
        ["versions", "19.0.0,", "18.2.0,", "17.0.2,", "one", "without", "a", "version"],
    ]
    assert kb.calls == [("sources.find_version", {"label": "react@18.2.9"})]
    document = afresh("find-version", "react@18.2.9", "--json").document
    assert (document["match"], document["versions"][0]) == ("nearest_lower", "19.0.0")


def test_U1_restore_puts_a_former_text_back(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.restore"] = opened()
    assert "Restored the former text of" in afresh("restore", URL).out
    assert kb.calls == [("pages.restore", {"url": URL})]
