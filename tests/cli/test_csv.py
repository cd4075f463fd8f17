"""Lists as CSV: what a spreadsheet may open and a script read back (F107)."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import fields

import pytest
from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import found, hit, page, source

from afresh.model.records import Attempt
from afresh.model.reports import ChangeView, HistoryEntry, LinkView, PageView, SearchHit, SourceView
from afresh.present import formats

LISTS = {
    "search retried": SearchHit,
    "sources": SourceView,
    "pages harbor": PageView,
    "links harbor": LinkView,
    "history https://docs.example.org/": HistoryEntry,
    "attempts 3": Attempt,
    "changes": ChangeView,
}
FORMULAS = [
    *("=cmd()", "=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(A1)", " =1+1", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "＠x")
]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("typed", LISTS)
def test_F107_every_list_is_csv_with_the_names_of_its_json(afresh: Afresh, typed: str) -> None:
    words = typed.split()
    ended = afresh(*words, "--csv")
    assert ended.code == 0
    rows, objects = read(ended.out), afresh(*words, "--json").document
    assert [list(row) for row in rows] == [[each.name for each in fields(LISTS[typed])]] * len(objects)
    assert len(rows) == len(objects) > 0
    assert [row.get("url") for row in rows] == [each.get("url") for each in objects]
    assert ended.out.count("\r\n") >= len(rows) + 1


@pytest.mark.parametrize("title", FORMULAS)
def test_F107_a_formula_is_only_text(afresh: Afresh, kb: Opened, title: str) -> None:
    kb.answers["pages.of_source"] = [page(title=title)]
    (row,) = read(afresh("pages", "harbor", "--csv").out)
    assert row["title"].startswith("'")
    assert row["title"].lstrip("'").strip() == title.strip()


@pytest.mark.parametrize("title", ['say "no"', "a,b;c", "two\nlines", "two\r\nlines", "Zürich 世界 🎉", "'", ""])
def test_F107_quotes_commas_and_lines_come_back(afresh: Afresh, kb: Opened, title: str) -> None:
    kb.answers["pages.of_source"] = [page(title=title), page(title="next")]
    first, second = read(afresh("pages", "harbor", "--csv").out)
    assert (first["title"], second["title"]) == (title.replace("\r\n", "\n"), "next")


def test_F107_NUL_escapes_and_lone_surrogates_are_made_visible(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.of_source"] = [page(title="a\x00b\x1b[2Jc\ud800d\u202ee")]
    ended = afresh("pages", "harbor", "--csv")
    ended.out.encode()
    assert read(ended.out)[0]["title"] == "a␀b␛[2Jc�d�e"


def test_F107_numbers_stay_numbers_and_lists_are_json(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit(score=-1.5, language=None))
    (row,) = read(afresh("search", "retry", "--csv").out)
    assert (row["score"], row["language"]) == ("-1.5", "")
    assert json.loads(row["path"]) == ["Retries", "Back-off"]
    assert "\x02" not in row["text"]
    kb.answers["sources.views"] = [source(rules={"include": ["=a"]})]
    assert json.loads(read(afresh("sources", "--csv").out)[0]["rules"]) == {"include": ["=a"]}


def test_F107_no_rows_are_a_heading(afresh: Afresh) -> None:
    assert afresh("pages", "harbor", "--text", "zebra", "--csv").out.startswith("id,url,status,")
    assert afresh("pages", "harbor", "--text", "zebra", "--json").document == []


def test_F107_csv_and_json_at_once_are_refused(afresh: Afresh) -> None:
    assert (afresh("pages", "harbor", "--csv", "--json").code) == 2


class Counted(io.StringIO):
    """Takes any amount and keeps only how much it was."""

    size = 0

    def write(self, text: str) -> int:
        self.size += len(text)
        return len(text)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_F107_a_million_rows_are_streamed(form: str) -> None:
    """Whenever a row is asked for, those before it are written: nothing grows with their number."""
    file, one = Counted(), page()

    def rows() -> Iterator[PageView]:
        for number in range(2_000):
            assert file.size >= number * 100, "the rows before are still held"
            yield one

    if form == "csv":
        formats.write_csv(rows(), PageView, file)
    else:
        formats.write(rows(), file)
    assert file.size > 2_000 * 100


def test_F107_a_streamed_list_is_the_same_document() -> None:
    whole, streamed = io.StringIO(), io.StringIO()
    formats.write([page(), page(title="b\nc")], whole)
    formats.write(iter([page(), page(title="b\nc")]), streamed)
    assert whole.getvalue() == streamed.getvalue()
    assert json.loads(whole.getvalue())[1]["title"] == "b\nc"
    assert whole.getvalue() == json.dumps(json.loads(whole.getvalue()), indent=2) + "\n"
