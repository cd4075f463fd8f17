"""Published figures are those of the file, and not older than a number of commits."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from bench import published
from bench.__main__ import publish
from bench.results import Results

NEVER = "0" * 40
NAMES = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
DATES = {"GIT_AUTHOR_DATE": "2026-03-01T12:00:00Z", "GIT_COMMITTER_DATE": "2026-03-01T12:00:00Z"}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **NAMES, **DATES},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a commit to measure."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "src/code.py", "measured")
    return folder


def test_only_commits_that_touch_src_make_figures_old(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "MAX_COMMITS", 2)
    found = {"commit": git(clone, "rev-parse", "HEAD"), "date": "2026-03-01"}
    for number in range(3):
        commit(clone, "README.md", f"text {number}")
    assert published.commits_since(found, clone) == 0
    for number in range(2):
        commit(clone, "src/code.py", f"code {number}")
    assert published.too_old(found, clone) == ""
    commit(clone, "src/code.py", "one more")
    assert "3 commits touched src" in published.too_old(found, clone)


def test_the_date_counts_where_a_rebase_replaced_the_commit(clone: Path) -> None:
    assert published.commits_since({"commit": NEVER, "date": "2026-02-28"}, clone) == 1
    assert published.commits_since({"commit": NEVER, "date": "2026-03-01"}, clone) == 0


def test_a_shallow_clone_and_a_folder_without_git_are_not_judged(clone: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "shallow")
    plain = tmp_path / "plain"
    plain.mkdir()
    for folder in (tmp_path / "shallow", plain):
        assert published.too_old({"commit": NEVER, "date": "2020-01-01"}, folder) == ""


def test_uncommitted_code_has_no_commit(clone: Path) -> None:
    assert published.commit(clone) == git(clone, "rev-parse", "HEAD")
    (clone / "src" / "code.py").write_text("changed", "utf-8")
    assert published.commit(clone) is None


@pytest.mark.parametrize(
    ("measured", "server", "written"), [(NEVER, "nginx", True), (None, "nginx", False), (NEVER, "aiohttp", False)]
)
def test_figures_are_published_only_if_they_can_be_repeated(
    measured: str | None, server: str, written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.json"
    monkeypatch.setattr("bench.__main__.RESULTS", file)
    publish(Results("make bench", "1", measured, {}, server, 3, [], {}, [], [], []))
    assert file.exists() == written
    if written:
        assert json.loads(file.read_text("utf-8"))["commit"] == NEVER


def test_the_tables_say_what_the_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"phase": "first crawl + index", "corpus": "pg", "pages": 1000, "pages_per_s": 64.0, "ratio_goal": 40.0}
    found = {
        "command": "make bench", "commit": NEVER, "date": "2026-03-01", "rounds": 3, "right": True, "notes": [],
        "machine": {"cores": 2, "processor": "any", "python": "3.11"},
        "rows": [{**row, "system": "afresh", "ratio": 53.6, "cpu_s": 11.5}],
        "peers": [{**row, "system": "Scrapy + FTS5", "ratio": 167.2, "cpu_s": 25.0}],
        "goals": [{"what": "peak memory", "corpus": "pg", "limit": 300.0, "value": 497.3, "unit": "MB"}],
    }  # fmt: skip
    monkeypatch.setattr(published, "RESULTS", tmp_path / "results.json")
    published.RESULTS.write_text(json.dumps(found), "utf-8")
    assert published.speed_table().splitlines()[-1] == "| first crawl + index | 64 | 54 × | 167 × |"
    assert "| first crawl + index | pg | 64 | 11.5 | 11.50 | 54 × | 40 | 167 × | 25.0 |" in published.benchmark_tables()
    assert "| peak memory | pg | 497 MB | 300 MB |" in published.benchmark_tables()
