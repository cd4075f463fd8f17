"""The offline scorer tells links apart as well as it did, on links that were labelled by hand."""

from collections import Counter
from dataclasses import replace

import pytest
from eval.links import ALL, FLOORS, LinkFigures, keywords_by_site, labelled, link_misses, measure_links
from eval.sets import HERE

PROMISED = 0.9  # precision and recall over all links; no floor of all goes below


async def test_C18_at_least_one_right_keyword_for_nine_of_ten_links() -> None:
    figures = await measure_links()
    assert list(link_misses(figures)) == []
    assert [each.part for each in figures] == ["tuned", "held out", "fresh", ALL]
    assert min(FLOORS[ALL]) >= PROMISED


def test_the_set_is_what_the_readme_says() -> None:
    links, readme = labelled(), (HERE / "README.md").read_text("utf-8")
    parts = Counter(each.part for each in links)
    assert len(links) == len({each.link for each in links}) == 473
    assert all(f"| `{part}` | {count} |" in readme for part, count in parts.items())
    assert f"{len(links)} links" in readme
    keywords = keywords_by_site()
    assert all(each.wanted <= set(keywords[each.site]) for each in links)
    assert min(Counter(bool(each.wanted) for each in links).values()) >= 150, "some are about nothing"
    assert all(any(word in each.wanted for each in links) for words in keywords.values() for word in words)


@pytest.mark.parametrize(("right", "scored", "broken"), [(80, 80, 1), (95, 130, 1), (95, 95, 0), (0, 0, 2)])
def test_figures_below_a_floor_are_a_miss(right: int, scored: int, broken: int) -> None:
    figures = LinkFigures(ALL, 200, 100, scored, right, (100, scored, right))
    assert len(list(link_misses([figures]))) == broken
    assert len(list(link_misses([replace(figures, part="fresh", right=50, scored=50)]))) == 1
