"""Lengths of time as people type them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import UsageError
from afresh.text.quantities import read_duration


@pytest.mark.parametrize(
    ("typed", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("1h", timedelta(hours=1)),
        (" 7D ", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        ("1h30m", timedelta(minutes=90)),
        ("0s", timedelta()),
    ],
)
def test_durations_are_read_as_typed(typed: str, duration: timedelta) -> None:
    assert read_duration(typed) == duration


@pytest.mark.parametrize(
    "typed", ["", "7", "d", "7 d", "-1d", "1.5h", "1y", "١d", "1h 5", "9999999999s", "1d" * 90_000 + "!"]
)
def test_an_invalid_duration_is_refused_with_examples(typed: str) -> None:
    with pytest.raises(UsageError, match=r"such as 90s, 15m, 1h, 7d or 2w"):
        read_duration(typed)


def test_more_than_a_hundred_years_is_refused() -> None:
    with pytest.raises(UsageError, match="longer than a hundred years"):
        read_duration("999999999w")


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from("smhd")), min_size=1, max_size=4))
def test_parts_add_up(parts: list[tuple[int, str]]) -> None:
    whole = read_duration("".join(f"{number}{unit}" for number, unit in parts))
    assert whole == sum((read_duration(f"{number}{unit}") for number, unit in parts), timedelta())
