"""One page is one page, and who saved nothing is not body of savings."""

import re
from dataclasses import replace
from pathlib import Path

from tests.fakes.records import report

from afresh.cli.report import savings
from afresh.crawl.url_patterns import _pattern_note
from afresh.model.charts import RunSavings
from afresh.notify.sender import plain_text
from afresh.server.web.words import receipt
from afresh.urls.scope import Rules
from afresh.urls.traps import pattern_of

SOURCE = Path(__file__).resolve().parents[2] / "src" / "afresh"
# A number that is not held back by a comparison with one, and a noun that is written as many.
_MANY = re.compile(r"""(?<!else )f"[^"]*\{[^{}]*\} (?:pages|chunks|sources|links|passages|documents|attempts)\b""")
LIMITS = ("more than", "at least", "at most", "pages/s", "pages or more", "sources that")


def test_U4_a_first_crawl_reports_no_savings() -> None:
    first = report(mode="crawl", known=0, new=9, changed=0, not_modified=1, chunks_reused=3)
    for body in (savings(first), receipt(first), receipt(first, _receipt())):
        assert "saved" not in body
        assert "checked" in body
    again = report(known=1160)
    assert "92 % of downloads saved" in savings(again)
    assert "saved" in receipt(again)
    assert "of the downloads" in receipt(again, replace(_receipt(), run=again))


def test_U4_the_numbers_of_a_receipt_add_up() -> None:
    read = {"new": 0, "changed": 2, "unchanged": 1, "not_modified": 27, "chunks_reused": 0}
    run = report(known=35, checked=35, moved=1, deleted=3, refused=1, doubtful=1, failed=1, held=4, **read)
    parts = "2 processed, 28 skipped, 2 redirected or gone, 2 not read, 1 failed"
    after = "3 deleted; 4 deletions awaiting confirmation; saved 84 % of the downloads"
    assert receipt(run) == f"35 checked: {parts}; {after}"
    plain = report(known=0, checked=2, new=2, changed=0, unchanged=0, not_modified=0, chunks_reused=0)
    assert receipt(plain) == "2 checked: 2 processed, 0 skipped"


def _receipt() -> RunSavings:
    return RunSavings(pages=10, fresh=10, oldest_check=None, run=None, bytes_saved_percent=8, embeddings_saved=4)


def test_U4_messages_say_one_page_of_one() -> None:
    counts = {"held": 1}
    body = {"event": "run.braked", "source": "docs", "version": None, "run": 3, "counts": counts}
    assert "would delete 1 page and needs confirmation" in plain_text(body)[1]
    rules = Rules(root="https://docs.test/", max_per_pattern=1)
    pattern = pattern_of("https://docs.test/list?page=2", rules.root)
    assert pattern is not None
    assert "stopped at 1 page like" in _pattern_note(pattern, 2, rules)


def test_U4_numbers_go_with_the_right_noun_everywhere() -> None:
    """`count(number, "page")` knows one from many; a sentence that does not use it has to look itself."""
    wrong = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "testing" not in path.parts
        for line in path.read_text("utf-8").splitlines()
        if _MANY.search(line) and not any(each in line for each in LIMITS)
    ]
    assert wrong == []
