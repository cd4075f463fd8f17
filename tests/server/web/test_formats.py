"""Charts and forms, without a browser."""

import re
from dataclasses import replace

import pytest

from afresh.links.score import parse_keywords
from afresh.model.charts import UpcomingChecks
from afresh.model.records import RunId
from afresh.model.reports import RunReport
from afresh.server.web.drawing import _short, ahead, paces, runs
from afresh.server.web.rendered import MAX_URL_CHARS, rendered
from afresh.server.web.settings import _text

RUN = RunReport(run=RunId(3), source="docs", version=None, mode="refresh", state="completed", seconds=60.0, checked=1)


def test_charts_name_what_they_count() -> None:
    assert [_short(number) for number in (0, 999, 1_000, 12_345, 999_499)] == ["0", "999", "1k", "12.3k", "999k"]
    assert [_short(number) for number in (999_500, 999_600, 999_600_000, 1_234_000_000)] == [
        *("1M", "1M", "1G", "1.23G")
    ]
    assert "Run 3: 1 page per minute" in paces([RUN])
    drawn = runs([replace(RUN, checked=9, moved=2, doubtful=1)])
    assert "Run 3: 2 deleted or moved of 9 checked" in drawn
    assert "Run 3: 1 failed, skipped or doubtful of 9 checked" in drawn


def test_a_mark_stands_under_the_bar_of_its_hour() -> None:
    drawn = str(ahead(UpcomingChecks(due=5, hours=tuple(range(48)), later=0)))
    bars = re.findall(
        r'<rect class="ahead[^"]*" x="([\d.]+)" y="[\d.]+" width="([\d.]+)".*?<title>(.*?)</title>', drawn
    )
    middles = {title.partition(":")[0]: float(x) + float(width) / 2 for x, width, title in bars}
    marks = re.findall(r'<text class="t mid" x="([\d.]+)"[^>]*>(\d+) h<', drawn)
    assert [hours for _, hours in marks] == ["12", "24", "36"]
    for x, hours in marks:
        assert abs(float(x) - middles[f"In {hours} hours"]) < 0.1


def test_keywords_survive_a_round_trip_through_the_form() -> None:
    keywords = {"std:vector": 1.0, "contact": 0.5, "budget": 1.0, "a:b": 0.25}
    assert _text(keywords) == "std:vector:1, contact:0.5, budget, a:b:0.25"
    assert parse_keywords(_text(keywords)) == keywords


@pytest.mark.slow
def test_F104_links_make_no_page_of_any_size() -> None:
    base = "https://docs.example.org/" + "/".join(9 * ["part" * 45]) + "/"
    html = str(rendered("[a](../b) " * 39_000, base))
    assert MAX_URL_CHARS < len(html) < 3 * MAX_URL_CHARS
    assert html.count("<a href") < 39_000
    assert html.count("a") > 39_000, "what is no link any more is still there"
