"""Paths that change wait until they rest, but not for ever, and too many become a look at everything."""

from hypothesis import given
from hypothesis import strategies as st

from afresh.watch.watcher import PATIENCE, Debounce, DuePaths

QUIET = 0.5


def test_E28_E29_a_path_is_due_when_it_has_been_quiet() -> None:
    heard = Debounce(QUIET)
    heard.hear("a", 0.0)
    heard.hear("a", 0.4)
    heard.hear("b", 0.8)
    assert heard.take(0.8) is None
    assert heard.next_at() == 0.9
    assert heard.take(0.9) == DuePaths(frozenset({"a"}))
    assert heard.next_at() == 1.3
    assert heard.take(1.3) == DuePaths(frozenset({"b"}))
    assert heard.take(99.0) is None
    assert heard.next_at() is None


def test_what_came_nearly_together_is_due_together() -> None:
    heard = Debounce(QUIET)
    heard.hear("from.md", 0.0)
    heard.hear("to.md", 0.2)
    assert heard.take(0.5) == DuePaths(frozenset({"from.md", "to.md"}))
    assert heard.next_at() is None


def test_a_path_that_never_rests_is_due_after_ten_times_as_long() -> None:
    heard = Debounce(QUIET)
    for tenth in range(10 * PATIENCE):
        heard.hear("log.md", tenth / 10)
        due = heard.take(tenth / 10)
        if due is not None:
            assert tenth / 10 == PATIENCE * QUIET
            return
    raise AssertionError("it was never due")


def test_F85_too_many_paths_become_one_look_at_everything() -> None:
    heard = Debounce(QUIET, most=1_000)
    for number in range(10_000):
        heard.hear(f"page-{number}", number / 10_000)
    assert heard.take(1.2) is None
    assert heard.take(1.5) == DuePaths(everything=True)
    assert heard.take(99.0) is None


def test_a_flood_without_end_is_looked_at_in_between() -> None:
    heard = Debounce(QUIET, most=10)
    for number in range(60):
        heard.hear(f"page-{number}", number / 10)
    assert heard.take(5.0) == DuePaths(everything=True)


def test_what_is_wanted_at_once_waits_for_nothing() -> None:
    heard = Debounce(QUIET)
    heard.hear("a", 1.0)
    heard.hear_all(1.1, since=1.1 - PATIENCE * QUIET)
    assert heard.take(1.1) == DuePaths(everything=True)
    assert heard.take(99.0) is None


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 30)), max_size=60),
    st.integers(1, 6),
)
def test_E28_whatever_is_heard_is_due_later_and_in_time(events: list[tuple[str, int]], most: int) -> None:
    """No path is forgotten, and none waits longer than it may."""
    heard, waiting, now = Debounce(1.0, most=most), dict[str, float](), 0.0
    for path, pause in [*events, ("end", 200)]:
        now += pause / 10
        while (moment := heard.next_at()) is not None and moment <= now:
            due = heard.take(moment)
            assert due is not None
            for name in list(waiting) if due.everything else due.paths:
                assert moment - waiting.pop(name) <= PATIENCE + 1e-9
        heard.hear(path, now)
        waiting.setdefault(path, now)
    assert set(waiting) <= {"end"}
