"""Small pieces of the command line: cleaning, wording, passages, progress."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.records import NOW

from afresh.cli.hits import passage, readable
from afresh.cli.lists import diff
from afresh.cli.progress import LineDisplay, LiveDisplay, ProgressDisplay, show_progress
from afresh.cli.session import Session
from afresh.events import Event, Notice, PageStep, Progress
from afresh.model.records import RunId
from afresh.present.wording import ago, clean, count, due, duration, percent, size, whole_text
from afresh.text.plain import shortened


def steers(text: str) -> bool:
    """Whether a terminal would do anything but print it."""
    return any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 or 0xD800 <= ord(each) < 0xE000 for each in text)


@given(st.text(st.characters() | st.sampled_from("\x1b\x9b\r\n\t\ud800\u202e")))
def test_clean_text_is_printable_and_stays_clean(text: str) -> None:
    assert not steers(clean(text))
    assert clean(clean(text)) == clean(text)
    assert not steers(clean(text, lines=True).replace("\n", ""))
    whole_text(text).encode()


def test_controls_become_visible() -> None:
    assert clean("a\x1b[31m\x00b\x7f\u202e\ud800") == "a␛[31m␀b␡��"
    assert clean("  two\r\n\tlines ") == "two lines"
    assert clean("two\r\n\tlines\x1b", lines=True) == "two\n    lines␛"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "just now"),
        (45, "45 seconds ago"),
        (60, "1 minute ago"),
        (89, "1 minute ago"),
        (119, "2 minutes ago"),
        (3599, "1 hour ago"),
        (5160, "1 hour 26 min ago"),
        (27 * 3600, "1 day 3 hours ago"),
        (45 * 86400, "1 month 15 days ago"),
        (400 * 86400, "1 year 1 month ago"),
        (7200, "2 hours ago"),
        (3 * 86400, "3 days ago"),
        (70 * 86400, "2 months ago"),
        (800 * 86400, "2 years ago"),
        (-5, "in 5 seconds"),
        (-7200, "in 2 hours"),
        (-6 * 3600 + 1, "in 6 hours"),
        (-86400 + 1, "in 1 day"),
        (-60.4, "in 1 minute"),
    ],
)
def test_relative_times(seconds: int, expected: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == expected
    assert ago(None, NOW) == "never"


def test_a_time_that_has_come_is_due_now() -> None:
    assert due(NOW - timedelta(minutes=1), NOW) == "due now"
    assert due(NOW, NOW) == "due now"
    assert due(NOW + timedelta(hours=2), NOW) == "in 2 hours"
    assert due(None, NOW, never="not planned") == "not planned"


def test_long_texts_are_shortened() -> None:
    assert shortened("word", 60) == "word"
    assert shortened("x" * 60, 60) == "x" * 60
    assert shortened("x" * 5000, 60) == "x" * 59 + "…"


def test_numbers_are_spoken() -> None:
    assert [count(1, "page"), count(1169, "page"), count(3)] == ["1 page", "1,169 pages", "3"]
    assert [size(0), size(999), size(1234), size(123_456), size(45_000_000)] == [
        "0 bytes",
        "999 bytes",
        "1.2 kB",
        "123 kB",
        "45.0 MB",
    ]
    assert [duration(0.04), duration(0.42), duration(12.4), duration(123), duration(3900)] == [
        "0.04 s",
        "0.4 s",
        "12 s",
        "2 min 3 s",
        "1 h 5 min",
    ]
    assert [percent(1087, 1169), percent(9999, 10000), percent(5, 5), percent(0, 0)] == [93, 99, 100, 0]


def test_a_long_passage_is_cut_around_its_match() -> None:
    lines = [f"line {number} " + "x " * 200 for number in range(30)]
    lines[20] = "y " * 300 + "the \x02match\x03 " + "z " * 300
    displayed = passage("\n".join(lines)).plain
    assert "match" in displayed
    assert len(displayed.splitlines()) <= 8
    assert max(map(len, displayed.splitlines())) < 440
    assert displayed.count("…") >= 2
    assert len(passage("\n".join(lines), whole=True).plain.splitlines()) == 30


@pytest.mark.parametrize("raw", ["", "\x02", "\x03\x03", "a \x02b", "\x02a\x02b\x03", "no match\n\n\nat all"])
def test_unbalanced_marks_are_no_error(raw: str) -> None:
    assert "\x02" not in passage(raw).plain
    assert "\x03" not in passage(raw, whole=True).plain


def test_passages_lose_marks_that_get_in_the_way() -> None:
    assert readable("## See [the \x02guide\x03](https://x/y) now") == "See the \x02guide\x03 now"
    assert readable('[a](/b "title"), [c](/d_(e)), ![f](g.png)') == "a, c, f"
    assert readable("### `retry` { #retry }") == "`retry`"
    assert readable("**a \x02b\x03** and `**c**` 2 ** 3 ** 4") == "a \x02b\x03 and `**c**` 2 ** 3 ** 4"
    assert readable("| a | \x02b\x03 |") == "a | \x02b\x03"
    raw = "Text.\n\n| a | b |\n|---|:--|\n| 1 | 2 |\n\n```python\n**kwargs\n# no heading\n```\nEnd."
    assert passage(raw).plain.splitlines() == ["Text.", "a | b", "1 | 2", "  **kwargs", "  # no heading", "End."]
    assert passage("    - a\n        - b").plain.splitlines() == ["- a", "    - b"]


def test_long_diffs_are_cut_and_say_so() -> None:
    raw = "\n".join(f"+line {number}" for number in range(100))
    assert diff(raw).plain.endswith("… 70 more lines (-v shows all)")
    assert "line 99" in diff(raw, whole=True).plain


# ---- progress -----------------------------------------------------------------------------------


def progress(done: int) -> Progress:
    return Progress(
        run=RunId(1), source="docs\x1b[2J", done=done, queued=5, counts={"new": done, "failed": 0}, seconds=2
    )


def test_without_a_terminal_a_line_every_five_seconds_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = LineDisplay(Session(), clock=lambda: now)
    for tick in range(110):
        now = tick / 10
        lines.receive(progress(tick))
    lines.receive(Notice(text="a pause of 10 s"))
    lines.receive(PageStep(name="fetch", url="https://x/"))
    assert capsys.readouterr().err.splitlines() == [
        "docs␛[2J: 50 done, 5 queued, 25/s, 2.0 s: new 50",
        "docs␛[2J: 100 done, 5 queued, 50/s, 2.0 s: new 100",
        "a pause of 10 s",
    ]


def test_steps_are_reported_with_vv(capsys: pytest.CaptureFixture[str]) -> None:
    LineDisplay(Session(verbose=2)).receive(PageStep(name="fetch", url="https://x/"))
    assert capsys.readouterr().err == "fetch https://x/\n"


def test_the_watch_fits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def watch_for(session: Session) -> type[ProgressDisplay]:
        with show_progress(session) as watch:
            return type(watch)

    assert watch_for(Session(quiet=True)) is ProgressDisplay
    assert watch_for(Session()) is LineDisplay
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert watch_for(Session()) is LiveDisplay
    monkeypatch.setenv("TERM", "dumb")
    assert watch_for(Session()) is LineDisplay


def test_the_live_lines_show_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    session = Session()
    live = LiveDisplay(session)
    events: list[Event] = [progress(20), Notice(text="resumed"), PageStep(name="fetch", url="x")]
    for event in events:
        live.receive(event)
    with session.err.capture() as captured:
        session.err.print(live._draw())
    live.close()
    assert "20 done" in captured.get()
    assert "5 queued" in captured.get()
    assert "new 20" in captured.get()
    err = capsys.readouterr().err
    assert "resumed" in err
    assert err.rindex("\x1b[?25h") > err.rindex("\x1b[?25l")  # the cursor is back
