"""The difference of two texts: complete, readable, and bounded whatever the texts are."""

import difflib
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.text.diff import markdown_diff

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "d", "```", "# Title", "+x", "-y", "@@ z"]), max_size=24)
TEXTS = LINES.map("\n".join)


def apply(old: str, diff: str) -> str:
    """The new text, made from the old one and the diff: the way to see that a diff tells everything."""
    before, after, at = old.split("\n"), [], 0
    for line in diff.split("\n"):
        if line.startswith("@@"):
            start, count = (int(number) for number in line.split()[1][1:].split(","))
            first = start - 1 if count else start
            after += before[at:first]
            at = first
        elif line.startswith("+"):
            after.append(line[1:])
        else:
            assert before[at] == line[1:]
            if line.startswith(" "):
                after.append(line[1:])
            at += 1
    return "\n".join(after + before[at:])


@given(text=TEXTS)
def test_equal_texts_have_no_diff(text: str) -> None:
    assert markdown_diff(text, text) == ""


@given(old=TEXTS, new=TEXTS)
def test_a_diff_turns_the_old_text_into_the_new(old: str, new: str) -> None:
    diff = markdown_diff(old, new)
    assert (diff == "") == (old == new)
    if diff:
        assert apply(old, diff) == new


@given(old=TEXTS, new=TEXTS)
def test_every_added_or_removed_line_is_in_the_diff(old: str, new: str) -> None:
    lines = markdown_diff(old, new).split("\n")
    assert {"-" + line for line in set(old.split("\n")) - set(new.split("\n"))} <= set(lines)
    assert {"+" + line for line in set(new.split("\n")) - set(old.split("\n"))} <= set(lines)


def test_it_is_written_as_difflib_writes_it() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:4], "changed", *old[5:20], "added", *old[20:36], *old[38:]]
    expected = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    assert markdown_diff("\n".join(old), "\n".join(new)).split("\n") == expected


def test_a_first_text_and_a_lost_one() -> None:
    assert markdown_diff("", "a\nb") == "@@ -1,1 +1,2 @@\n-\n+a\n+b"
    assert markdown_diff("a\nb", "") == "@@ -1,2 +1,1 @@\n-a\n-b\n+"


def test_a_moved_section_keeps_the_rest() -> None:
    sections = [f"## Part {n}\n\nText of part {n}.\n" for n in range(6)]
    moved = [sections[5], *sections[:5]]
    diff = markdown_diff("\n".join(sections), "\n".join(moved))
    assert "-## Part 5" in diff
    assert "+## Part 5" in diff
    assert "-## Part 2" not in diff


def _random_lines(seed: int, words: int) -> str:
    dice = random.Random(seed)
    return "\n".join(str(dice.randrange(words)) for _ in range(20_000))


@pytest.mark.parametrize("words", [1, 2, 50, 20_000, 10**9], ids="{} words".format)
def test_hostile_texts_take_bounded_time_and_room(words: int) -> None:
    old, new = _random_lines(1, words), _random_lines(2, words) + "\nend"
    started = time.process_time()
    diff = markdown_diff(old, new, limit=10_000)
    assert time.process_time() - started < 2
    assert 0 < len(diff) <= 10_000


def test_what_does_not_fit_is_counted() -> None:
    diff = markdown_diff("", "\n".join(f"line {n}" for n in range(10_000)), limit=1_000)
    lines = diff.split("\n")
    assert len(diff) <= 1_000
    assert lines[-1] == f"… {10_002 - len(lines) + 1} more lines"


def test_a_line_without_end_is_cut() -> None:
    diff = markdown_diff("short", "x" * 1_000_000)
    assert "-short" in diff
    assert "+xxx" in diff
    assert len(diff) < 2_000
