"""The section `kb`: its sixteen keys, where its files are, and what they must not be."""

from dataclasses import asdict
from pathlib import Path

import pytest

from afresh.config import Config, describe, kb_paths, load
from afresh.errors import ConfigError
from afresh.sources.folder.filter import folder_filter
from afresh.urls.scope import Rules

DEFAULTS = {
    "sources_dir": None,
    "links_file_path": None,
    "index_path": "index.txt",
    "index_cache_path": "index-cache.json",
    "url_refresh_min_interval_seconds": 86_400,
    "url_refresh_max_age_seconds": 604_800,
    "url_refresh_budget_per_init": 50,
    "url_refresh_fail_backoff_base_seconds": 300,
    "url_refresh_fail_backoff_max_seconds": 86_400,
    "runtime_refresh_enabled": True,
    "runtime_refresh_tick_seconds": 60,
    "url_refresh_budget_per_tick": 5,
    "file_watch_enabled": True,
    "file_watch_debounce_seconds": 1,
    "links_watch_enabled": True,
    "links_watch_debounce_seconds": 1,
}
OTHER = {"sources_dir": "notes", "links_file_path": "links.txt", "index_path": "i", "index_cache_path": "c"}


def settings(folder: Path, text: str = "", env: dict[str, str] | None = None, cwd: Path | None = None) -> Config:
    file = folder / "afresh.yaml"
    file.write_text(f"kb:\n{text}" if text else "", encoding="utf-8")
    return load(file, env or {}, {}, cwd or folder)


def test_E6_the_sixteen_keys_and_their_defaults(tmp_path: Path) -> None:
    config = settings(tmp_path)
    assert asdict(config.kb) == DEFAULTS
    assert describe(config)["kb"] == DEFAULTS
    assert not config.kb.in_use


@pytest.mark.parametrize("key", DEFAULTS)
def test_E5_E6_every_key_is_set_by_file_and_by_environment(tmp_path: Path, key: str) -> None:
    value = OTHER.get(key, "false" if DEFAULTS[key] is True else "7")
    chosen = {"false": False, "7": 7}.get(value, value)
    given = settings(tmp_path, f"  {key}: {value}\n")
    assert getattr(given.kb, key) == chosen
    variable = f"AFRESH_KB__{key}".upper()
    assert getattr(settings(tmp_path, env={variable: value}).kb, key) == chosen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  url_refresh_budget_per_init: -1\n", "afresh.yaml line 2: kb.url_refresh_budget_per_init: expected"),
        ("  url_refresh_budget_per_tick: 1.5\n", "expected a whole number"),
        ("  runtime_refresh_tick_seconds: 0\n", "from 0.1 to 86400"),
        ("  file_watch_debounce_seconds: soon\n", "expected a number"),
        ("  links_watch_enabled: 2\n", "expected true or false"),
        ("  index_path: null\n", "expected text, got nothing"),
        ('  index_cache_path: " "\n', "expected the path of a file"),
        ("  source_dir: notes\n", "did you mean kb.sources_dir?"),
        (
            "  url_refresh_fail_backoff_base_seconds: 9\n  url_refresh_fail_backoff_max_seconds: 8\n",
            "kb.url_refresh_fail_backoff_base_seconds (9) must be at most",
        ),
    ],
)
def test_F87_wrong_values_are_refused_with_key_and_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text)
    assert words in str(caught.value)


def test_the_default_back_off_gives_way_to_its_cap(tmp_path: Path) -> None:
    kb = settings(tmp_path, "  url_refresh_fail_backoff_max_seconds: 8\n").kb
    assert kb.url_refresh_fail_backoff_base_seconds == 8


def test_a_greatest_age_below_the_interval_is_no_contradiction(tmp_path: Path) -> None:
    kb = settings(tmp_path, "  url_refresh_min_interval_seconds: 60\n  url_refresh_max_age_seconds: 5\n").kb
    assert (kb.url_refresh_min_interval_seconds, kb.url_refresh_max_age_seconds) == (60, 5)


# ---- where the files are


def test_paths_start_at_the_settings_file_and_those_of_variables_where_one_is(tmp_path: Path, home: Path) -> None:
    project, here = tmp_path / "project", tmp_path / "here"
    for folder in (project, here):
        folder.mkdir()
    text = "  sources_dir: ./notes\n  links_file_path: ~/links.txt\n  index_path: /out/../index.txt\n"
    paths = kb_paths(settings(project, text, cwd=here), here)
    assert paths.sources_dir == project / "notes"
    assert paths.links_file == home / "links.txt"
    assert paths.index == Path("/index.txt")
    assert (paths.cache, paths.lock) == (project / "index-cache.json", project / "index-cache.json.lock")
    env = {"AFRESH_KB__SOURCES_DIR": "notes"}
    assert kb_paths(settings(project, env=env, cwd=here), here).sources_dir == here / "notes"
    bare = kb_paths(load(None, {}, {}, here), here)
    assert (bare.sources_dir, bare.links_file, bare.index) == (None, None, here / "index.txt")


def test_a_link_to_a_cache_has_the_lock_of_the_cache(tmp_path: Path) -> None:
    (tmp_path / "c.json").symlink_to(tmp_path / "real.json")
    assert kb_paths(settings(tmp_path, "  index_cache_path: c.json\n"), tmp_path).lock == tmp_path / "real.json.lock"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  index_path: x\n  index_cache_path: ./x\n", "kb.index_path and kb.index_cache_path are the same file"),
        ("  links_file_path: index.txt\n", "kb.links_file_path and kb.index_path"),
        ("  index_path: notes\n", "kb.sources_dir and kb.index_path"),
        ("  index_path: index-cache.json.lock\n", "kb.index_path and the lock of kb.index_cache_path"),
        ("  index_path: afresh.yaml\n", "the settings file and kb.index_path"),
        ("  index_cache_path: kb.db\nstore: {url: 'sqlite:///kb.db'}\n", "store.url and kb.index_cache_path"),
        ("  index_path: kb.db-wal\nstore: {url: 'sqlite:///kb.db'}\n", "a file of store.url and kb.index_path"),
        ("  index_path: a.log\nlog: {file: a.log}\n", "log.file and kb.index_path"),
    ],
)
def test_F87_no_file_is_written_over_another(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, f"  sources_dir: notes\n{text}")
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_index_cache_lock_list_and_settings_inside_the_folder_are_no_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = ("index.txt", "index-cache.json", "index-cache.json.lock", "index.txt.0a1b2c3d.tmp", "links.txt")
    notes = ("a.md", "index.md", "links.txt.md", "deep/index.txt", "deep/links.txt", "deep/afresh.yaml")
    config = settings(tmp_path, "  sources_dir: .\n  links_file_path: links.txt\n")
    rules = Rules(root=tmp_path.as_uri())
    file_filter = folder_filter(config, rules, str(tmp_path))
    assert all(file_filter.why_not(name) for name in (*ours, "afresh.yaml"))  # settings may hold keys
    assert not any(file_filter.why_not(name) for name in notes)
    elsewhere = folder_filter(config, rules, str(tmp_path / "deep"))
    assert not any(elsewhere.why_not(name) for name in ("index.txt", "links.txt"))
