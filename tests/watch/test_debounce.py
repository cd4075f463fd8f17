"""Paths that change wait until they rest, but not for ever, and too many become a look at everything."""

from hypothesis import given
from hypothesis import strategies as st

from afresh.watch.watcher import MAX_QUIET_PERIODS, Debounce, DuePaths

QUIET = 0.5


def test_E28_E29_a_path_is_due_when_it_has_been_quiet() -> None:
    debounce = Debounce(QUIET)
    debounce.add("a", 0.0)
    debounce.add("a", 0.4)
    debounce.add("b", 0.8)
    assert debounce.take(0.8) is None
    assert debounce.next_at() == 0.9
    assert debounce.take(0.9) == DuePaths(frozenset({"a"}))
    assert debounce.next_at() == 1.3
    assert debounce.take(1.3) == DuePaths(frozenset({"b"}))
    assert debounce.take(99.0) is None
    assert debounce.next_at() is None


def test_changes_close_together_are_due_together() -> None:
    debounce = Debounce(QUIET)
    debounce.add("from.md", 0.0)
    debounce.add("to.md", 0.2)
    assert debounce.take(0.5) == DuePaths(frozenset({"from.md", "to.md"}))
    assert debounce.next_at() is None


def test_a_path_that_keeps_changing_is_due_after_ten_quiet_times() -> None:
    debounce = Debounce(QUIET)
    for tenth in range(10 * MAX_QUIET_PERIODS):
        debounce.add("log.md", tenth / 10)
        due = debounce.take(tenth / 10)
        if due is not None:
            assert tenth / 10 == MAX_QUIET_PERIODS * QUIET
            return
    raise AssertionError("it was never due")


def test_F85_too_many_paths_become_one_full_check() -> None:
    debounce = Debounce(QUIET, max_paths=1_000)
    for number in range(10_000):
        debounce.add(f"page-{number}", number / 10_000)
    assert debounce.take(1.2) is None
    assert debounce.take(1.5) == DuePaths(everything=True)
    assert debounce.take(99.0) is None


def test_an_endless_flood_is_checked_in_between() -> None:
    debounce = Debounce(QUIET, max_paths=10)
    for number in range(60):
        debounce.add(f"page-{number}", number / 10)
    assert debounce.take(5.0) == DuePaths(everything=True)


def test_a_full_check_can_be_due_at_once() -> None:
    debounce = Debounce(QUIET)
    debounce.add("a", 1.0)
    debounce.add_everything(1.1, since=1.1 - MAX_QUIET_PERIODS * QUIET)
    assert debounce.take(1.1) == DuePaths(everything=True)
    assert debounce.take(99.0) is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 30)), max_size=60), st.integers(1, 6))
def test_E28_every_change_is_due_later_and_in_time(events: list[tuple[str, int]], most: int) -> None:
    """No path is forgotten, and none waits longer than it may."""
    debounce, waiting, now = Debounce(1.0, max_paths=most), dict[str, float](), 0.0
    for path, pause in [*events, ("end", 200)]:
        now += pause / 10
        while (moment := debounce.next_at()) is not None and moment <= now:
            due = debounce.take(moment)
            assert due is not None
            for name in list(waiting) if due.everything else due.paths:
                assert moment - waiting.pop(name) <= MAX_QUIET_PERIODS + 1e-9
        debounce.add(path, now)
        waiting.setdefault(path, now)
    assert set(waiting) <= {"end"}
