"""Globs mean what `fnmatch` says, and cost one step for each of their signs (F181)."""

import asyncio
import re
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.project.backtracking import Matcher

from afresh.crawl.url_patterns import trap_notes
from afresh.crawl.visit import _with_links
from afresh.model.fetch import Link
from afresh.model.records import VisitContent
from afresh.urls.globs import GlobSubject, parse_glob
from afresh.urls.scope import CrawlScope, Globs, Rules, address_filter

SIGNS = "ab/*?[]!-^é\\.&~|"
ROOT = "https://x.org/"


@given(glob=st.text(SIGNS, max_size=12), text=st.text("ab/]!-^é[*", max_size=12))
@example(glob="[", text="[")
@example(glob="[]a]*", text="]b")
@example(glob="[!]a]", text="b")
@example(glob="[b-a]", text="a")
@example(glob="[!b-a]", text="a")
@example(glob="**a**", text="a")
@example(glob="*a?b*", text="aab/b")
@example(glob="", text="")
def test_S7_a_glob_matches_what_fnmatch_says(glob: str, text: str) -> None:
    assert GlobSubject(text, (0,)).matches(parse_glob(glob)) is fnmatchcase(text, glob)


@given(
    glob=st.text(SIGNS, min_size=1, max_size=10), rest=st.text("ab/]!-", max_size=10), query=st.text("ab?/", max_size=4)
)
@example(glob="https://x.org/a", rest="a", query="?b")
def test_S7_globs_are_tried_on_the_address_its_path_and_query_and_its_path(glob: str, rest: str, query: str) -> None:
    url = f"{ROOT}{rest}?{query}"
    subjects = (url, f"/{rest}?{query}", f"/{rest}")
    wanted = any(fnmatchcase(each, glob) for each in subjects)
    rules = Rules(root="https://x.org/root", scope=CrawlScope.HOSTNAME, exclude=(glob,), max_per_pattern=0)
    assert (rules.refusal(url, 1) is not None) is wanted
    in_folder = fnmatchcase(f"/{rest}", glob) or fnmatchcase(rest, glob)
    assert (Globs(exclude=(glob,)).refusal(f"/{rest}") is not None) is in_folder
    if glob.startswith(("/", "*")) and re.search(r"[*?\[]", glob):
        assert address_filter(glob)(url) is wanted


def _work(judge: Callable[[], object], subjects: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    """The lines of afresh.urls that run, and the steps of patterns that are made of globs."""
    lines = 0
    patterns: list[re.Pattern[str]] = []

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if "afresh/urls" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return count

    compiled = re.compile

    def compile_and_keep(pattern: str, flags: int = 0) -> re.Pattern[str]:
        patterns.append(compiled(pattern, flags))
        return patterns[-1]

    with monkeypatch.context() as patch:
        patch.setattr(re, "compile", compile_and_keep)
        before = sys.gettrace()
        sys.settrace(count)
        try:
            judge()
        finally:
            sys.settrace(before)
    most = 10_000_000
    return lines + sum(Matcher(each).scan(text, anchored=True, most=most) for each in patterns for text in subjects)


@pytest.mark.parametrize("glob", ["*{}b", "*{}b*", "*a*{}b*", "*{}?b"])
def test_S7_F181_twice_the_glob_and_twice_the_url_are_at_most_twice_the_work(
    glob: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(size: int) -> int:
        url = f"{ROOT}{'a' * 4 * size}"
        rules = Rules(root=ROOT, exclude=(glob.format("a" * size),))
        return _work(lambda: rules.refusal(url, 1), (url, url[13:]), monkeypatch)

    assert work(100) <= 2.5 * work(50)


async def _turns_during(work: Any) -> int:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    await work
    task.cancel()
    return turns


async def test_S7_F181_many_long_links_are_judged_in_turns() -> None:
    """Links of a page, and those that are left out at the end of a run."""
    urls = [f"{ROOT}{number}{'a' * 1_900}" for number in range(100)]
    rules = Rules(root=ROOT, exclude=("*aab",))

    async def let_in(links: list[Link], found_on: str) -> frozenset[str]:
        return frozenset(link.url for link in links)

    async def left_out(source: int) -> list[str]:
        return urls

    tools: Any = SimpleNamespace(
        lister=SimpleNamespace(refusal=rules.refusal, walks=lambda url: True), patterns=SimpleNamespace(let_in=let_in)
    )
    claim: Any = SimpleNamespace(page=SimpleNamespace(url=ROOT))
    links = tuple(Link(url, "") for url in urls)
    assert await _turns_during(_with_links(VisitContent(), links, claim, tools)) >= 20
    store: Any = SimpleNamespace(links=SimpleNamespace(left_out=left_out))
    assert await _turns_during(trap_notes(store, 1, rules)) >= 20  # type: ignore[arg-type]
