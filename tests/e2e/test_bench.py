"""The benchmark works, tells the truth about its site, and notices wrong results."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import mix
from bench.__main__ import main
from bench.access_log import Asked, line, parse
from bench.checks import Check, Examiner
from bench.corpus import Corpus, Origin, prepare
from bench.links import reachable
from bench.measure import Cost
from bench.results import Results
from bench.session import Bench
from bench.subject import Answer
from bench.synthetic import fill_with

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--synthetic", "--pages", "40", "--rounds", "1", "--repeat", "1", "--no-compile")
PHASES = ["first crawl + index", "refresh, nothing changed", "refresh, typical mix", "one search, command line"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A made-up site of 60 pages."""
    made = prepare(Origin("made-up", fill_with(60), "lease", 60), tmp_path_factory.mktemp("bench"))
    made.reset()
    return made


def run_bench(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env={**os.environ, "AFRESH_BENCH_WORK": str(work)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_whole_benchmark_on_a_made_up_site(tmp_path: Path) -> None:
    """Crawl, refresh, mix and search are measured, and every result is checked and right."""
    done = run_bench(tmp_path, *QUICK, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    reported: dict[str, Any] = json.loads(done.stdout)
    assert reported["right"] is True
    assert reported["corpora"][0] | {"megabytes": 0} == {
        "name": "made-up",
        "pages": 40,
        "megabytes": 0,
        "modified": 3,
        "deleted": 1,
        "added": 1,
    }
    own = [row for row in reported["rows"] if row["system"] == "afresh"]
    assert [row["phase"] for row in own] == PHASES
    assert all(row["wall_s"] > 0 and row["cpu_s"] > 0 and row["rss_mb"] > 1 for row in own)
    assert all(row["ratio"] > 0 and row["ratio_goal"] and row["pages"] == 40 for row in own[:3])
    assert {goal["met"] for goal in reported["goals"]} <= {True, False}
    assert len(reported["goals"]) == 6
    assert all(seconds > 0 for seconds in reported["start_up_s"].values())
    assert {check["step"] for check in reported["checks"]} == {
        *("corpus", "bare loop", "crawl", "refresh", "mix", "search")
    }
    assert any("made-up" in note for note in reported["notes"])


def test_the_site_is_the_same_every_time_and_all_of_it_is_linked(corpus: Corpus, tmp_path: Path) -> None:
    again = prepare(Origin("made-up", fill_with(60), "lease", 60), tmp_path)
    assert again.mix == corpus.mix
    assert len(corpus.pages) == 60
    for page in corpus.pages:
        assert (again.pristine / page).read_bytes() == (corpus.pristine / page).read_bytes()
        assert 4_000 < (again.pristine / page).stat().st_size < 90_000


def test_the_mix_does_to_the_files_what_its_manifest_says(corpus: Corpus, tmp_path: Path) -> None:
    mine = prepare(Origin("made-up", fill_with(60), "lease", 60), tmp_path)
    mine.reset()
    before = {page: (mine.served / page).read_bytes() for page in mine.pages}
    mine.update()
    after = {str(path.relative_to(mine.served)) for path in mine.served.rglob("*.html")}
    assert after == mine.mix.after
    assert not mix.unreachable_after(mine.served, mine.mix)
    assert set(reachable(mine.served)) == mine.mix.after
    changed = {page for page in before if page in after and (mine.served / page).read_bytes() != before[page]}
    assert changed == mine.mix.changed
    assert (len(mine.mix.modified), len(mine.mix.deleted), len(mine.mix.added)) == (4, 2, 2)
    for page, word in (mine.mix.modified | mine.mix.added).items():
        assert word in (mine.served / page).read_text("utf-8")
    for page, word in mine.mix.deleted.items():
        assert word in before[page].decode()
    untouched = next(iter(mine.mix.after - mine.mix.changed - set(mine.mix.added)))
    assert (mine.served / untouched).stat().st_mtime == (mine.pristine / untouched).stat().st_mtime
    assert json.loads((tmp_path / "made-up-manifest.json").read_text("utf-8"))["added"] == mine.mix.added


def report(**counts: int) -> Answer:
    cost = Cost(exit_code=0, output="", errors="", started_at=0, wall_s=1, cpu_s=1, rss_mb=1, pss_mb=None)
    return Answer(cost, {"state": "completed", "seconds": 1.0, **counts})


def requests(corpus: Corpus, *statuses: int) -> list[Asked]:
    pages = zip(statuses, corpus.pages, strict=False)
    return [Asked(1.0, "GET", status, 0, f"/{corpus.name}/{page}") for status, page in pages]


def test_a_right_crawl_passes_and_every_wrong_one_is_noticed(corpus: Corpus) -> None:
    examiner = Examiner(corpus, "http://127.0.0.1:1", 1)
    right = requests(corpus, *[200] * 60)
    assert all(check.ok for check in examiner.crawl(report(new=60), right))
    for wrong in ({"new": 59}, {"new": 61}, {"new": 60, "failed": 1}, {"new": 60, "missing": 1}):
        assert not all(check.ok for check in examiner.crawl(report(**wrong), right)), wrong
    assert not all(check.ok for check in examiner.crawl(report(new=60), [*right, right[0]]))


def test_a_refresh_that_downloads_a_page_is_noticed(corpus: Corpus) -> None:
    examiner = Examiner(corpus, "http://127.0.0.1:1", 1)
    unchanged = report(not_modified=60)
    assert all(check.ok for check in examiner.unchanged(unchanged, requests(corpus, *[304] * 60)))
    wrong = [check for check in examiner.unchanged(unchanged, requests(corpus, *[304] * 59, 200)) if not check.ok]
    assert [check.what for check in wrong] == ["304 in the access log", "200 in the access log"]


def test_a_mix_is_right_only_if_it_equals_the_manifest(corpus: Corpus) -> None:
    examiner = Examiner(corpus, "http://127.0.0.1:1", 1)
    changed = len(corpus.mix.changed)
    right = {"new": 2, "changed": changed, "deleted": 2, "not_modified": 60 - 2 - changed}
    downloads = requests(corpus, *[200] * (2 + changed))
    assert all(check.ok for check in examiner.mix(report(**right), downloads, ()))
    for key, number in right.items():
        wrong = examiner.mix(report(**{**right, key: number - 1}), downloads, ())
        assert [check.what for check in wrong if not check.ok] == [key]


def test_the_access_log_is_read_as_it_is_written() -> None:
    asked = Asked(1_700_000_000.25, "GET", 304, 0, "/pg/index.html")
    assert parse(line(asked, 0.5)) == [asked]


@pytest.mark.parametrize(("got", "code"), [(60, 0), (59, 1)])
def test_one_wrong_result_makes_the_exit_code_1(
    got: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = Check("made-up", 1, "crawl", "new", 60, got)
    facts = {"processor": "any", "cores": 2, "python": "3", "load_before": 0}
    site = {"name": "made-up", "pages": 60, "megabytes": 1}
    found = Results("python -m bench", "1", None, facts, "aiohttp", 1, [site], {}, [], [], [check])
    monkeypatch.setattr(Bench, "measure", lambda _: found)
    assert main(["--synthetic"]) == code
    assert ("WRONG: made-up, round 1, crawl: new: expected 60, got 59" in capsys.readouterr().out) == bool(code)
