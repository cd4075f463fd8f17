"""Which addresses a person may have meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.urls.suggest import clues, nearest, stem_of

HOST = "https://docs.example.org"
RECORD = tuple(
    f"{HOST}{path}"
    for path in ("/", "/guide/", "/guide/retries/", "/api/retries.html", "/api/queue.html", "/blog/a/b/c")
)


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("/", ""),
        ("/index.html", ""),
        ("/guide/retries/", "retries"),
        ("/guide/Retries.html", "retries"),
        ("/guide/retries/index.html?x=1", "retries"),
        ("/v1.2", "v1.2"),
    ],
)
def test_the_part_that_says_something(path: str, stem: str) -> None:
    assert stem_of(HOST + path) == stem


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (f"{HOST}/guide/retries", f"{HOST}/guide/retries/"),
        (f"{HOST}/guide/retries.html", f"{HOST}/guide/retries/"),
        ("http://www.docs.example.org/guide/retries/", f"{HOST}/guide/retries/"),
        (f"{HOST}/reference/queue", f"{HOST}/api/queue.html"),
        (f"{HOST}/api/quoue.html", f"{HOST}/api/queue.html"),
        (f"{HOST}/index.html", f"{HOST}/"),
    ],
)
def test_the_nearest_is_the_expected_url(typed: str, expected: str) -> None:
    assert nearest(typed, RECORD)[0] == expected


def test_what_is_far_is_not_named() -> None:
    assert nearest("https://other.test/zebra", RECORD) == ()
    assert nearest(f"{HOST}/guide/retries/", [f"{HOST}/guide/retries/"]) == ()


def test_clues_go_from_the_narrow_to_the_wide() -> None:
    assert clues(f"{HOST}/guide/retries/?a=/b") == (
        "/retries",
        "//docs.example.org/guide/retries/",
        "//docs.example.org/",
    )
    assert clues(f"{HOST}/") == ("//docs.example.org/",)


@law
@given(st.text("ab./-?", max_size=20), st.lists(st.text("ab./-?", max_size=20), max_size=6))
def test_only_candidates_are_named_and_never_the_address_itself(path: str, others: list[str]) -> None:
    url, candidates = f"{HOST}/{path}", [f"{HOST}/{other}" for other in others]
    found = nearest(url, candidates)
    assert set(found) <= set(candidates) - {url}
    assert len(found) <= 3
