"""`afresh watch` on the command line: one line a batch, trouble once, and its times."""

import json

import pytest
from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import report

from afresh.ports import StoreAccess
from afresh.watch.watcher import DEFAULT_TIMES, WatchTimes

NOTHING = {"new": 0, "changed": 0, "unchanged": 0}


def test_a_batch_is_a_line_and_one_without_news_is_none(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(
        report(mode="check", new=1, changed=3, deleted=1, seconds=0.2),
        report(**NOTHING),
        report(mode="check", **{**NOTHING, "new": 1}, version="3.13", seconds=1.0),
    )
    ended = afresh("watch", "python-docs", "python-docs")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "python-docs: 3 changed, 1 new, 1 deleted in 0.2 s",
        "python-docs@3.13: 1 new in 1.0 s",
    ]
    assert ended.err.splitlines() == ["Watching python-docs"]
    [(name, given)] = kb.calls
    assert (name, given["labels"]) == ("runs.watch", ("python-docs",))
    assert (DEFAULT_TIMES.debounce, DEFAULT_TIMES.rescan) == (0.5, 3600.0)
    assert given.get("times", DEFAULT_TIMES) == DEFAULT_TIMES
    assert kb.access is StoreAccess.CHANGE


def test_problems_is_reported_once_until_it_is_another(afresh: Afresh, kb: Opened) -> None:
    failed = report(**NOTHING, state="partial", failed=2, error="2 pages could not be read", seconds=0.1)
    held = report(**NOTHING, state="needs_confirmation", held=12, seconds=0.1)
    kb.let_runs_end_with(failed, failed, held, report(**NOTHING), failed)
    reported = "python-docs: 2 failed in 0.1 s (2 pages could not be read)"
    assert afresh("watch").out.splitlines() == [
        reported,
        "python-docs: 12 awaiting confirmation in 0.1 s (confirm with `afresh confirm 7`)",
        reported,
    ]


def test_with_json_each_line_is_an_object(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(mode="check"), report(**NOTHING), report(notes=("a\u2028b",)))
    notice, first, second = (json.loads(line) for line in afresh("watch", "--json").out.split("\n")[:-1])
    assert notice == {"notice": "Watching python-docs"}
    assert (first["mode"], first["changed"], second["notes"]) == ("check", 70, ["a\u2028b"])


@pytest.mark.parametrize(
    ("typed", "seconds"), [("0.5s", 0.5), ("200ms", 0.2), ("2s", 2.0), ("60s", 60.0), (" 1.25S", 1.25)]
)
def test_a_debounce_is_read(afresh: Afresh, kb: Opened, typed: str, seconds: float) -> None:
    assert afresh("watch", "--debounce", typed, "--rescan", "10m").code == 0
    [(name, given)] = kb.calls
    assert (name, given["times"]) == ("runs.watch", WatchTimes(debounce=seconds, rescan=600.0))


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--debounce", "1h"), "--debounce: expected a time from 50ms to 60s such as 0.5s, got '1h'"),
        (("--debounce", "0s"), "--debounce: expected a time from 50ms to 60s"),
        (("--debounce", "0.5"), "--debounce: expected a time from 50ms to 60s"),
        (("--rescan", "soon"), "--rescan: expected a duration such as 90s"),
        (("--rescan", "0s"), "--rescan: expected at least a second"),
    ],
)
def test_a_wrong_time_is_refused_before_anything_is_opened(
    afresh: Afresh, kb: Opened, words: tuple[str, ...], reported: str
) -> None:
    ended = afresh("watch", *words)
    assert ended.code == 2
    assert reported in ended.err
    assert kb.calls == []
