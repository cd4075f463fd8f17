"""The help and the reference pages stay in step with the code, and the demo plays."""

import json

import pytest
from scripts.reference import BLOCKS, DOCS, helps, renewed

from afresh.cli import main

COMMANDS = """crawl refresh search open find-version sources show pages links history attempts changes
why status plan remove confirm doctor config demo"""


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_is_what_the_code_says(name: str) -> None:
    """If this fails: python scripts/reference.py"""
    page = (DOCS / name).read_text(encoding="utf-8")
    assert page == renewed(page, BLOCKS[name]())


def test_every_command_of_the_design_is_there_with_examples() -> None:
    reported = dict(helps())
    assert {f"afresh {name}" for name in COMMANDS.split()} <= set(reported)
    assert {"afresh config show", "afresh config check", "afresh config path"} <= set(reported)
    for name, text in reported.items():
        assert f"Examples:\n  {name.split()[0]} " in text, name
        assert name in text.partition("Examples:")[2], name


@pytest.mark.slow
def test_the_demo_plays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["crawl"]["new"] > 20
    assert reported["unchanged_refresh"]["not_modified"] == reported["crawl"]["new"]
    assert reported["unchanged_refresh"]["bytes"] == 0
    second = reported["refresh"]
    counted = (second["new"], second["changed"], second["deleted"], second["moved"])
    assert counted == (1, 2, 1, 1)  # what moved is not new (G12)
    assert {each["kind"] for each in reported["changes"]} == {"new", "changed", "deleted", "moved"}
    retries, webhooks = (found[0]["url"] for found in reported["searches"].values())
    assert retries.endswith("/guide/retries/")
    assert webhooks.endswith("/guide/webhooks/")


def test_the_demo_says_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    displayed = capsys.readouterr().out
    assert "100 % of downloads saved" in displayed
    assert "+| 1 | 20 seconds | 20 seconds |" in displayed
    assert "$ afresh search" in displayed


@pytest.mark.slow
def test_every_sum_of_the_demo_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    displayed = capsys.readouterr().out
    sums = [line.partition(";")[0] for line in displayed.splitlines() if " checked: " in line]
    assert len(sums) == 3
    assert sums[-1].endswith("3 processed, 1 read at its new URL, 2 redirected or gone, 1 not read")
    for line in sums:
        whole, _, parts = line.partition(" checked: ")
        assert int(whole) == sum(int(part.split()[0]) for part in parts.split(", "))
