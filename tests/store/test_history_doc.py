"""docs/explanation/history-as-queue.md says what the schema has (B20)."""

import re
from pathlib import Path

import pytest

from afresh.model.fetch import Outcome
from afresh.store.dialect import migrations

TEXT = (Path(__file__).parents[2] / "docs" / "explanation" / "history-as-queue.md").read_text(encoding="utf-8")
SCHEMA = "\n".join(text for _, text in migrations("sqlite"))


def _columns(table: str) -> list[str]:
    """The columns of a table as the migrations make it."""
    made = re.search(rf"create table {table} \((.*?)\n\)", SCHEMA, re.DOTALL)
    assert made is not None
    lines = (line.split() for line in made[1].strip().splitlines())
    added = re.findall(rf"alter table {table} add column (\w+)", SCHEMA)
    return [words[0] for words in lines if words[0] not in ("unique", "primary")] + added


def test_B20_every_column_of_the_history_is_explained_and_no_other() -> None:
    table = TEXT.split("| column of `page_crawls` | meaning |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == _columns("page_crawls")


def test_B2_B20_every_outcome_is_named() -> None:
    sentence = TEXT.split("Outcomes are ")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", sentence)) == sorted(Outcome)


@pytest.mark.parametrize("name", ["locked_by", "wanted_by", "used", "next_allowed_at", "domain"])
def test_B20_politeness_is_explained_by_real_columns(name: str) -> None:
    assert name in _columns("hosts")
    assert f"`{name}`" in TEXT.split("## Rate limits are rows, too")[1]


def test_B5_B20_it_says_why_nothing_counts_attempts() -> None:
    assert "## Why there is no counter of attempts" in TEXT
    assert "failures" in _columns("pages")


def test_it_is_one_page() -> None:
    assert len(TEXT.splitlines()) < 100
