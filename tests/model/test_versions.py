"""Which version a person means, among those that exist."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.errors import UsageError
from afresh.model.versions import Choice, Match, choose, newest_first, read

REACT = ("16.14.0", "17.0.2", "18.0.0", "18.2.0", "18.3.1", "19.0.0-rc.1")


def chosen(wanted: str | None, *existing: str | None) -> tuple[str | None, str] | None:
    choice = choose(wanted, existing)
    return (choice.version, str(choice.match)) if choice else None


@pytest.mark.parametrize(
    ("wanted", "version", "match"),
    [
        (None, "18.3.1", "latest"),
        ("latest", "18.3.1", "latest"),
        ("Latest", "18.3.1", "latest"),
        ("*", "18.3.1", "latest"),
        ("18.2.0", "18.2.0", "exact"),
        ("v18.2.0", "18.2.0", "exact"),
        ("18.2.5", "18.2.0", "nearest_lower"),
        ("18.2.5.1", "18.2.0", "nearest_lower"),
        ("25.0.0", "18.3.1", "nearest_lower"),
        ("18", "18.3.1", "range"),
        ("v18", "18.3.1", "range"),
        ("18.x", "18.3.1", "range"),
        ("18.X.x", "18.3.1", "range"),
        ("18.2.x", "18.2.0", "range"),
        ("18.2.*", "18.2.0", "range"),
        ("18.2", "18.2.0", "range"),
        ("18.1.x", "18.0.0", "nearest_lower"),
        ("20", "18.3.1", "nearest_lower"),
        ("^18", "18.3.1", "range"),
        ("^18.2.0", "18.3.1", "range"),
        ("^17.0.0", "17.0.2", "range"),
        ("^18.4", "18.3.1", "nearest_lower"),
        ("~18.2", "18.2.0", "range"),
        ("~18.2.0", "18.2.0", "range"),
        ("~18", "18.3.1", "range"),
        ("~=18.2", "18.3.1", "range"),
        ("~=18.2.0", "18.2.0", "range"),
        (">=17 <19", "18.3.1", "range"),
        (">=17,<18", "17.0.2", "range"),
        (">= 17, < 18", "17.0.2", "range"),
        (">=17", "18.3.1", "range"),
        (">17", "18.3.1", "range"),
        (">18.3", "19.0.0-rc.1", "range"),
        ("<18", "17.0.2", "range"),
        ("<=18", "18.3.1", "range"),
        ("<=18.0.0", "18.0.0", "range"),
        ("==18.2.0", "18.2.0", "range"),
        ("=18", "18.3.1", "range"),
        ("19.0.0-rc.1", "19.0.0-rc.1", "exact"),
        ("19.0.0rc1", "19.0.0-rc.1", "exact"),
        ("19.0.0-rc.2", "19.0.0-rc.1", "nearest_lower"),
        ("19", "19.0.0-rc.1", "range"),
        ("^19", "19.0.0-rc.1", "range"),
        ("19.0.0", "18.3.1", "nearest_lower"),
    ],
)
def test_what_is_chosen(wanted: str | None, version: str, match: str) -> None:
    assert chosen(wanted, *REACT) == (version, match)
    assert chosen(wanted, *reversed(REACT)) == (version, match)


@pytest.mark.parametrize("wanted", ["15", "15.x", "^15", "1.0.0", "<16", ">=1 <2", "main", "stable"])
def test_what_there_is_not_is_not_chosen(wanted: str) -> None:
    assert chosen(wanted, "16.14.0", "17.0.2") is None
    assert chosen(wanted) is None


@pytest.mark.parametrize(
    "label", ["v18.2", "2024-11", "main", "stable", "latest", "18.x", "release/5", "gh-pages", "3f2a9c1", "*"]
)
def test_a_label_is_found_as_it_is(label: str) -> None:
    assert chosen(label, "18.2.0", "99.0.0", None, label) == (label, "exact")
    assert chosen(label.upper(), "99.0.0", label) == (label, "exact")


def test_no_version_means_the_source_without_one() -> None:
    assert chosen(None, "18.2.0", None) == (None, "unversioned")
    assert chosen("", "18.2.0", None) == (None, "unversioned")
    assert chosen("latest", "18.2.0", None) == ("18.2.0", "latest")
    assert chosen("latest", None) == (None, "unversioned")
    assert chosen("latest", None, "19.0.0-rc.1") == (None, "unversioned")


def test_the_source_without_a_version_answers_for_numbers_that_are_not_there() -> None:
    assert chosen("18.2.0", None) == (None, "unversioned")
    assert chosen("^18", None, "19.0.0") == (None, "unversioned")
    assert chosen("^18", None, "17.0.0") == ("17.0.0", "nearest_lower")
    assert chosen("main", None) is None


def test_words_are_the_latest_where_there_are_no_numbers() -> None:
    assert chosen("latest", "main", "stable") == ("stable", "latest")
    assert chosen(None, "main", "19.0.0-rc.1") == ("19.0.0-rc.1", "latest")
    assert chosen(None, "trunk", "main") == ("main", "latest")
    assert chosen("latest", "main", "stable", "1.0") == ("1.0", "latest")


def test_dates_and_short_numbers_are_versions_too() -> None:
    assert chosen("2024", "2024-11", "2024-02", "2025-01") == ("2024-11", "range")
    assert chosen("2024-12", "2024-11", "2024-02", "2025-01") == ("2024-11", "nearest_lower")
    assert chosen("latest", "2024-11-05", "2024-11-12") == ("2024-11-12", "latest")
    assert chosen("3.12.4", "3.11", "3.12", "3.13") == ("3.12", "nearest_lower")
    assert chosen("3.12.0", "3.11", "3.12", "3.13") == ("3.12", "exact")
    assert chosen("16", "9.6", "15", "17") == ("15", "nearest_lower")
    assert chosen("^0.2.1", "0.2.0", "0.2.9", "0.3.0") == ("0.2.9", "range")
    assert chosen("^0.0.3", "0.0.3", "0.0.4") == ("0.0.3", "range")


@pytest.mark.parametrize(
    "wanted",
    [">=", "^main", ">=17 <", "17 - 19", "17 || 19", "~>18", ">=17 foo", "^", "1" + ".1" * 200, "~=18", "<1 >2"],
)
def test_an_invalid_range_is_refused_with_examples(wanted: str) -> None:
    with pytest.raises(UsageError, match=r"range|numbers|no version fits"):
        choose(wanted, ["17.0.0"])


def test_the_order_of_versions() -> None:
    labels = [
        *("18.0.0.post1", "18-lts", "18.0.0-rc.10", "18.0.0rc2", "18.0.0-next.1", "18.0.0-beta", "18.0.0b1"),
        *("18.0.0-alpha.1", "18.0.0.dev3", "17.0.2", "2.10", "2.9", "1.0+build", "main", "stable"),
    ]
    assert newest_first(reversed(labels)) == labels


def test_two_labels_of_one_number_are_chosen_alike_in_any_order() -> None:
    assert chosen("18.2.0.0", "18.2", "v18.2.0") == chosen("18.2.0.0", "v18.2.0", "18.2")


# ---- laws -------------------------------------------------------------------------------------------

numbers = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
suffixes = st.sampled_from(("", "", "", "-rc.1", "a2", ".dev1", ".post1", "-lts"))
labels = st.builds("{}{}{}".format, st.sampled_from(("", "v")), numbers, suffixes)
versions = labels | st.sampled_from(("main", "stable", "2024-11"))
existing = st.lists(st.none() | versions, max_size=8)
signs = st.sampled_from(("", "^", "~", ">=", "<=", ">", "<", "==", "~="))
ranges = st.lists(st.builds("{}{}".format, signs, numbers), min_size=1, max_size=3).map(" ".join)
anything = st.none() | versions | ranges | st.text(max_size=12)


def choice_of(wanted: str | None, given: list[str | None]) -> Choice | None:
    try:
        return choose(wanted, given)
    except UsageError:
        return None


@law
@given(anything, existing)
def test_only_what_exists_is_chosen_whatever_is_typed(wanted: str | None, given: list[str | None]) -> None:
    choice = choice_of(wanted, given)
    if choice is not None:
        assert choice.version in given
        assert (choice.version is None) == (choice.match is Match.UNVERSIONED)


@law
@given(anything, existing, st.randoms(use_true_random=False))
def test_the_order_of_what_exists_does_not_matter(wanted: str | None, given: list[str | None], chance: Random) -> None:
    shuffled = sorted(given, key=lambda _: chance.random())
    assert choice_of(wanted, given) == choice_of(wanted, shuffled)


@law
@given(existing, st.data())
def test_what_exists_is_found_by_its_label(given: list[str | None], data: st.DataObject) -> None:
    wanted = data.draw(versions)
    assert choose(wanted, [*given, wanted]) == Choice(wanted, Match.EXACT)


@law
@given(labels, existing)
def test_a_lower_one_is_lower_and_the_nearest_of_its_kind(wanted: str, given: list[str | None]) -> None:
    choice = choice_of(wanted, given)
    if choice is None or choice.match is not Match.NEAREST_LOWER:
        return
    asked, got = read(wanted), read(choice.version or "")
    assert asked is not None
    assert got is not None
    assert got.key < asked.key
    others = [known for label in given if label and (known := read(label))]
    between = [each for each in others if got.key < each.key < asked.key]
    assert not [each for each in between if each.is_release]


@law
@given(ranges, st.lists(versions, max_size=8), st.lists(versions, max_size=4))
def test_more_versions_never_turn_a_hit_into_a_fallback(wanted: str, given: list[str], more: list[str]) -> None:
    before, after = choice_of(wanted, [*given]), choice_of(wanted, [*given, *more])
    if before is not None and before.match is Match.RANGE:
        assert after is not None
        assert after.match in (Match.RANGE, Match.EXACT)
