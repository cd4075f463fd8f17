"""A crawl of a generated city, from outside: what is skipped, what is found, what bounds it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened
from tests.e2e.sites import looks
from tests.fakes.city import CitySite
from tests.fakes.city_pages import CALENDAR, FORBIDDEN

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase

RULES = {"max_per_pattern": 5}


@pytest.fixture
def city() -> Iterator[CitySite]:
    """A small city."""
    with CitySite(70) as site:
        yield site


def weeks(city: CitySite) -> set[str]:
    return {path for path in looks(city) if path.startswith(CALENDAR)}


def without_weeks(city: CitySite) -> set[str]:
    return {path for path in looks(city) if not path.startswith((CALENDAR, "/afresh"))}


async def test_C12_C22_a_city_of_500_pages_is_read_whole_once_and_then_not_at_all(
    store: Path, work: type[InProcess]
) -> None:
    with CitySite() as city:
        async with opened(store, {"crawl.probe": False}) as kb:
            report = await kb.runs.crawl(city.url, name="docs", rules=RULES)
            assert report.state == "completed"
            assert {*city.pages, *city.files} | weeks(city) == set(looks(city))
            assert set(looks(city).values()) == {1}  # C12: what was visited is skipped
            assert report.new == sum(looks(city).values())
            (again,) = await kb.runs.refresh(["docs"])
        assert counts(again) == {"not_modified": report.new, "refused": 1}
        assert_sound(store)
        assert len(city.pages) == 500


async def test_C12_other_schemes_other_domains_and_what_robots_forbids_are_skipped(
    kb: KnowledgeBase, city: CitySite
) -> None:
    report = await kb.runs.crawl(city.url, name="docs", rules=RULES)
    assert FORBIDDEN not in looks(city)
    assert report.refused == 1
    assert "robots.txt line 2" in (await kb.pages.explain(city.at(FORBIDDEN))).summary
    links = {view.url for view in await kb.links.of_source("docs")}
    assert "https://www.state.example/" in links
    assert not {url for url in links if not url.startswith(("http://", "https://"))}
    assert {view.url for view in await kb.pages.of_source("docs") if not view.url.startswith(city.url)} == set()


async def test_C22_pages_that_only_drupal_settings_name_are_found_with_their_words(
    kb: KnowledgeBase, city: CitySite
) -> None:
    await kb.runs.crawl(city.url, name="docs", rules=RULES)
    assert len(city.hidden) == 15
    assert set(city.hidden) <= set(looks(city))
    reported = {view.url: view.text for view in await kb.links.of_source("docs")}
    assert reported[city.at("/services/building-permits/")] == "Building permits"
    assert reported[city.at("/departments/parks/fees/")] == "Fees of Parks"
    assert await found(kb, "snow removal") >= {city.at("/services/snow-removal/")}
    assert without_weeks(city) <= {*city.pages, *city.files}  # nothing was made up


async def test_C22_hidden_links_can_be_left_alone_and_taken_up_again(
    store: Path, work: type[InProcess], city: CitySite
) -> None:
    async with opened(store, {"crawl.hidden_links": False}) as kb:
        await kb.runs.crawl(city.url, name="docs", rules=RULES)
        assert set(city.hidden).isdisjoint(looks(city))
    async with opened(store) as kb:  # the recipe is another one: pages that say 304 would keep their links
        (report,) = await kb.runs.refresh(["docs"])
        assert report.new == len(city.hidden)
    assert {city.at(path) for path in city.hidden} <= set(index_of(store))


@pytest.mark.parametrize(("most", "expected"), [(0, {CALENDAR}), (1, {CALENDAR, f"{CALENDAR}?page=1"})])
async def test_C23_parameters_beyond_the_most_are_stripped_and_the_rest_stays(
    kb: KnowledgeBase, city: CitySite, most: int, expected: set[str]
) -> None:
    await kb.runs.crawl(city.url, name="docs", rules={"max_params": most, "max_per_pattern": 1})
    assert weeks(city) == expected
    assert {url.partition("&")[2] for url in weeks(city)} == {""}


async def test_C23_by_default_no_parameter_is_stripped_and_ten_path_components_are_let_in(
    kb: KnowledgeBase, city: CitySite
) -> None:
    ten = "/" + "/".join("abcdefghij")
    city.add_to_nav(ten, "Ten")
    city.add_to_nav(f"{ten}/k", "Eleven")
    await kb.runs.crawl(city.url, name="docs", rules=RULES)
    assert f"{CALENDAR}?page=1&view=list" in weeks(city)
    assert ten in looks(city)
    assert f"{ten}/k" not in looks(city)
    with pytest.raises(UsageError, match="more than max_components 10"):
        await kb.pages.explain(city.at(f"{ten}/k"))


async def test_C23_max_depth_ends_the_calendar_that_has_no_end(kb: KnowledgeBase, city: CitySite) -> None:
    await kb.runs.crawl(city.url, name="docs", rules={"max_depth": 2, "max_params": 1, "max_per_pattern": 0})
    assert weeks(city) == {CALENDAR, f"{CALENDAR}?page=1"}
    assert "/departments/parks/" in looks(city)
    assert "/departments/parks/contact/" not in looks(city)


async def test_C9_C17_a_changed_navigation_changes_links_and_no_content(
    kb: KnowledgeBase, city: CitySite, store: Path
) -> None:
    first = await kb.runs.crawl(city.url, name="docs", rules=RULES)
    before = index_of(store)
    city.add_to_nav("/elections/", "Elections")
    city.rewrite("/contacts/", "All numbers are new since Monday.")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.new, report.changed, report.state) == (1, 1, "completed")
    after = index_of(store)
    assert set(after) - set(before) == {city.at("/elections/")}
    assert {url for url in before if before[url] != after[url]} == {city.at("/contacts/")}
    assert first.new + 1 == len(after)
