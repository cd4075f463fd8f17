"""The section `links`: keywords with weights, in a file, a variable, a flag and a source of its own."""

from pathlib import Path

import pytest

from afresh.config import Config, describe, load
from afresh.errors import ConfigError


def settings(folder: Path, yaml: str = "", env: dict[str, str] | None = None, **flags: object) -> Config:
    """The settings of a file, variables and flags."""
    (folder / "afresh.yaml").write_text(yaml)
    return load(None, env or {}, {"store.url": f"sqlite:///{folder}/kb.db", **flags}, folder)


WANTED = {"budget": 1.0, "contact": 0.5, "town hall": 0.0}


@pytest.mark.parametrize(
    "yaml",
    [
        "links:\n  keywords:\n    Budget: 1\n    contact: 0.5\n    town  hall: 0\n",
        "links: {keywords: {budget: 1.0, contact: .5, town hall: 0}}\n",
        "links:\n  keywords: budget, contact:0.5, town hall:0\n",
        'links: {keywords: [budget, "contact:0.5", "town hall:0"]}\n',
    ],
)
def test_C19_keywords_may_be_a_mapping_a_list_or_a_line(tmp_path: Path, yaml: str) -> None:
    assert settings(tmp_path, yaml).links.keywords == WANTED


def test_C19_keywords_of_a_variable_and_of_a_source_take_the_place_of_those_in_the_file(tmp_path: Path) -> None:
    yaml = "links: {keywords: {other: 1}, unknown_keyword_weight: 0.1}\n"
    config = settings(tmp_path, yaml, {"AFRESH_LINKS__KEYWORDS": "Budget,contact:0.5,town hall:0"})
    assert (config.links.keywords, config.links.unknown_keyword_weight) == (WANTED, 0.1)
    own = config.with_overrides({}, {"keywords": {"minutes": 1}, "order": "score"})
    assert (own.links.keywords, own.crawl.order) == ({"minutes": 1.0}, "score")
    assert config.with_overrides({"keywords": {}}).links.keywords == {}
    assert describe(config)["links"]["keywords"] == WANTED


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        (
            "links:\n  keywords:\n    budget: 2\n",
            "line 2: links.keywords: expected a weight from 0 to 1 for 'budget', got 2",
        ),
        ("links:\n  keywords: {budget: high}\n", "links.keywords: expected a number from 0 to 1, got 'high'"),
        ("links:\n  keywords: {budget: 1, BUDGET: 1}\n", "links.keywords: the keyword 'budget' occurs twice"),
        ("links:\n  keywords: 7\n", "links.keywords: expected keywords with weights from 0 to 1"),
        ("links:\n  keywords: {a: {b: 1}}\n", "links.keywords: expected keywords with weights from 0 to 1"),
        ("links: {keywords: a, scorer: model}\n", "links.scorer: model needs ai.provider: openai"),
        ("links:\n  scorer: magic\n", "links.scorer: expected one of auto, offline, model"),
        ("links:\n  keyword: x\n", "unknown key links.keyword; did you mean links.keywords?"),
        ("crawl: {order: {budget: 1}}\n", "crawl.order: expected one of breadth, score, got a mapping"),
        ("ai: {budget_per_day: -1}\n", "ai.budget_per_day: expected a whole number from 0"),
    ],
)
def test_F87_a_wrong_setting_of_links_is_refused_with_its_place(tmp_path: Path, yaml: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, yaml)
    assert message in str(caught.value)
