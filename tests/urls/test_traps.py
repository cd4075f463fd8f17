"""Traps by their form (F67): what repeats, what counts, who vouches; and no real documentation among them."""

import json
import tarfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from afresh.urls.canonical import MAX_LENGTH, canonical
from afresh.urls.scope import ENDLESS, Rules, trap_in
from afresh.urls.traps import display_pattern, is_vouched_for, pattern_of

ROOT = "https://x.org/docs/"


def at(path: str) -> str:
    url = canonical(path, ROOT)
    assert url is not None
    return url


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a/a/a", "the path repeats /a"),
        ("x/a/a/a/y.html", "the path repeats /a"),
        ("a/b/a/b/a/b", "the path repeats /a/b"),
        ("a/b/c/a/b/c/a/b/c", "the path repeats /a/b/c"),
        ("s?tag=1&tag=2&tag=3", "the parameter tag occurs 3 times"),
        ("s?" + "&".join(f"p{number}=x" for number in range(13)), "13 parameters"),
    ],
)
def test_F67_an_address_that_repeats_or_grows_gives_itself_away(path: str, why: str) -> None:
    assert trap_in(at(path)) == ENDLESS + why
    assert Rules(root=ROOT).refusal(at(path), 1) == ENDLESS + why
    assert Rules(root=ROOT, max_per_pattern=0).refusal(at(path), 1) is None


@pytest.mark.parametrize(
    "path",
    ["", "a/a", "a/b/a/b", "a/b/a/c/a/d", "1/11/111", "a//a//b", "s?a=1&b=2&a=3", "s?a=1&b=1&c=1", "x/docs/docs"],
)
def test_F67_what_only_looks_alike_is_no_trap(path: str) -> None:
    assert trap_in(at(path)) is None


def test_F67_a_root_that_repeats_itself_is_crawled_all_the_same() -> None:
    assert Rules(root="https://x.org/a/a/a/").refusal("https://x.org/a/a/a/b", 1) is None


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("cal/2024/05", "cal/{n}/{n}"),
        ("cal/2024-05-17", "cal/{n}"),
        ("cal/2024/may", "cal/{n}/may"),
        ("17.html", "{n}.html"),
        ("list?page=3", "list?page={n}"),
        ("list?b=2&a=1", "list?a={n}&b={n}"),
        ("list?day=2024-05-17&view=month", "list?day={n}-{n}-{n}&view=month"),
        ("commit/9fceb02d0ae598e95dc970b74767f19372d61af8", "commit/{id}"),
        ("x/123e4567-e89b-12d3-a456-426614174000/edit", "x/{id}/edit"),
        ("x?token=aZ93kdLq0Ws81mXy", "x?token={id}"),
    ],
)
def test_F67_what_a_program_counts_is_left_open(path: str, pattern: str) -> None:
    found = pattern_of(at(path), ROOT)
    assert found == ROOT + pattern
    assert display_pattern(found) == f"/docs/{pattern}"


@pytest.mark.parametrize(
    "path",
    [
        *("", "a/b.html", "pep-0484/", "chapter3.html", "v2/intro", "4.2/topics", "releases/4.2.1.html"),
        *("whatsnew/3.11.html", "functions-json.html", "x86_64/abi", "md5", "utf-8", "search?q=word"),
        *("index.php?title=Main_Page", "facade", "deadbeef"),
    ],
)
def test_F67_names_and_versions_are_no_counters(path: str) -> None:
    assert pattern_of(at(path), ROOT) is None


def test_F67_numbers_of_the_root_are_part_of_its_name() -> None:
    root = "https://x.org/archive/2024/05/"
    assert pattern_of(f"{root}intro", root) is None
    assert pattern_of(f"{root}7", root) == f"{root}{{n}}"
    assert pattern_of("https://x.org/archive/2024/06/intro", root) == "https://x.org/archive/{n}/{n}/intro"


@pytest.mark.parametrize(
    ("url", "found_on", "vouched"),
    [
        ("toc/7", "toc", True),
        ("toc/7", "", True),
        ("toc/8", "toc/7", False),
        ("part/3/item/9", "part/3/", True),
        ("part/3/item/9", "part/3", True),
        ("part/4/item/9", "part/3/", False),
        ("cal/2024/05", "cal/2024/", False),
        ("cal/2024/05/17", "cal/2024/05", False),
        ("list?page=2", "list?page=1", False),
        ("item/9", "list?page=1", False),
    ],
)
def test_F67_a_table_of_contents_vouches_and_a_neighbour_does_not(url: str, found_on: str, vouched: bool) -> None:
    assert is_vouched_for(at(url), at(found_on), ROOT) is vouched


def test_F67_real_documentation_has_no_traps(shared: Path) -> None:
    """No page of the corpora is refused, and no pattern of theirs comes near the limit."""
    data = shared / "data" / "docs-refresh"
    with tarfile.open(data / "fastapi.tar.xz") as archive:
        names = [f"/fastapi/{member.name}" for member in archive if member.isfile()]
    for folder in ("python3.11-doc", "postgresql-doc-15"):
        pages = Path("/usr/share/doc", folder, "html").resolve()
        names += [f"/{folder}/{page.relative_to(pages)}" for page in pages.rglob("*.html")]
    urls = [url for name in names if (url := canonical(name, "https://x.org/")) is not None]
    assert len(urls) == len(names) > 500
    rules = Rules(root="https://x.org/", max_components=99)
    assert [url for url in urls if rules.refusal(url, 1)] == []
    patterns = Counter(pattern for url in urls if (pattern := pattern_of(url, rules.root)))
    assert all(number <= rules.max_per_pattern for number in patterns.values()), patterns.most_common(3)
    assert json.loads((data / "fastapi.json").read_text())


@pytest.mark.parametrize(
    "rest", ["a/" * 990, "ab/" * 660, "1/" * 990, "a=1&" * 490, "?" + "a=1&" * 490, "1" * 1990, "-1" * 990]
)
def test_F67_a_hostile_address_costs_little(rest: str) -> None:
    url = f"https://x.org/{rest}"[:MAX_LENGTH]
    started = time.process_time()
    for _ in range(100):
        trap_in(url)
        pattern_of(url, ROOT)
    assert time.process_time() - started < 5


ADDRESSES = st.lists(st.sampled_from(["a", "b", "1", "22", "2024", "x9", "", "?", "&", "=", "3f786850"]), max_size=12)


@examples(300)
@given(ADDRESSES)
def test_F67_laws_of_patterns(parts: list[str]) -> None:
    """A pattern is a fixed point, and an address without digits has none."""
    url = canonical("/docs/" + "/".join(parts), "https://x.org/")
    assert url is not None
    pattern = pattern_of(url, ROOT)
    if pattern is None:
        return
    assert any(mark in pattern for mark in ("{n}", "{id}"))
    numbered = pattern.replace("{n}", "7").replace("{id}", "3f786850")
    assert pattern_of(numbered, ROOT) == pattern
