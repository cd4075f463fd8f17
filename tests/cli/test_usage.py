"""Parsing, flags, errors and exit codes of the command line."""

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import report

from afresh import __version__
from afresh.config import Config
from afresh.errors import AfreshError, ConfigError, SourceError, StoreError, UsageError
from afresh.model.filters import PageFilter
from afresh.model.records import PageStatus
from afresh.ports import StoreAccess

SITE = "https://docs.example.org/"
CRAWL: dict[str, object] = {"target": SITE, "keep": False, "again": False}


def test_only_the_flags_given_become_rules_and_policy(afresh: Afresh, kb: Opened) -> None:
    assert afresh("crawl", SITE).code == 0
    assert kb.calls == [("runs.crawl", {**CRAWL, "rules": {}, "policy": {}})]
    assert kb.closed


def test_every_crawl_flag_reaches_its_rule(afresh: Afresh, kb: Opened) -> None:
    """DESIGN §5: --max-pages --max-depth --max-params --max-components --scope --include --exclude …"""
    flags = "--name n --version 2 --max-pages 5 --max-depth 3 --max-params 0 --max-components 4 --scope domain"
    flags += " --include */a/* --include */b/* --exclude */c/* --concurrency 2 --delay 0.5 --render never"
    flags += " --no-robots --storage-body none --full"
    assert afresh("crawl", SITE, *flags.split()).code == 0
    rules = {
        "scope": "domain",
        "include": ["*/a/*", "*/b/*"],
        "exclude": ["*/c/*"],
        "max_depth": 3,
        "max_pages": 5,
        "max_params": 0,
        "max_components": 4,
    }
    policy = {"concurrency": 2, "delay_seconds": 0.5, "render": "never", "respect_robots": False, "body": "none"}
    expected = {**CRAWL, "name": "n", "version": "2", "rules": rules, "policy": policy, "full": True}
    assert kb.calls == [("runs.crawl", expected)]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--max-pages 0", "--max-pages: expected a whole number from 1 to 10000000, got 0"),
        ("--scope planet", "--scope: expected one of subpages, hostname, domain, got 'planet'"),
        ("--render browser", "--render: expected one of auto, never"),
        ("--concurrency 1000", "--concurrency: expected a whole number from 1 to 64, got 1000"),
        ("--delay -1", "--delay: expected a number from 0 to 3600, got -1"),
        ("--delay nan", "--delay: expected a number from 0 to 3600, got nan"),
        ("--storage-body html", "--storage-body: expected one of markdown, none"),
        ("--max-pages lots", "'lots' is not a valid integer"),
        ("--max-params some", "'some' is not a whole number"),
        ("--max-pages none", "'none' is not a valid integer"),
        ("--max-page 3", "--max-pages"),
        ("--version 1@2", "--version: expected a version without spaces and without @"),
    ],
)
def test_F87_a_wrong_flag_is_named_and_nothing_is_opened(afresh: Afresh, kb: Opened, flags: str, expected: str) -> None:
    ended = afresh("crawl", SITE, *flags.split())
    assert ended.code == 2
    assert ended.err.startswith("afresh: ")
    assert expected in ended.err
    assert ended.out == ""
    assert kb.config is None


@pytest.mark.parametrize(
    ("flags", "rules", "policy"),
    [
        (["--robots"], {}, {"respect_robots": True}),
        (["--no-robots"], {}, {"respect_robots": False}),
        (["--include", "", "--exclude", ""], {"include": [], "exclude": []}, {}),
        (["--exclude", "", "--exclude", "*/a"], {"exclude": ["*/a"]}, {}),
        (["--max-params", "none"], {"max_params": None}, {}),
        (["--max-params", "null", "--max-components", "None"], {"max_params": None, "max_components": None}, {}),
    ],
)
def test_what_was_remembered_can_be_taken_back(
    afresh: Afresh, kb: Opened, flags: list[str], rules: dict[str, object], policy: dict[str, object]
) -> None:
    assert afresh("crawl", SITE, *flags).code == 0
    assert kb.calls == [("runs.crawl", {**CRAWL, "rules": rules, "policy": policy})]
    strict = {"max_params": 1, "max_components": 1, "include": ["x"], "exclude": ["y"], "respect_robots": False}
    own = Config().with_overrides(strict, rules, policy).crawl
    places: dict[str, object] = {"max_params": own.max_url_params, "max_components": own.max_path_components}
    places |= {"include": list(own.include), "exclude": list(own.exclude)}
    places |= {"respect_robots": own.respect_robots}
    assert {key: places[key] for key in rules | policy} == rules | policy


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--name", ""], "--name: expected a name"),
        (["--name", " "], "--name: expected a name"),
        (["--version", ""], "--version: expected a version such as 19, got nothing"),
        (["--version", "1 2"], "--version: expected a version without spaces and without @"),
        (["--version", "1\x1b2"], "--version: expected a version without spaces and without @"),
    ],
)
def test_a_name_or_version_that_cannot_be_typed_again_is_refused(
    afresh: Afresh, kb: Opened, flags: list[str], expected: str
) -> None:
    ended = afresh("crawl", SITE, *flags)
    assert ended.code == 2
    assert expected in ended.err
    assert kb.config is None


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["refresh"], ("runs.refresh", {})),
        (
            ["refresh", "a", "b@2", "--due", "--full"],
            ("runs.refresh", {"labels": ("a", "b@2"), "due": True, "full": True}),
        ),
        (["refresh", "--due", "--budget", "5"], ("runs.refresh", {"due": True, "budget": 5})),
        (["refresh", "t", "u", "t"], ("runs.refresh", {"labels": ("t", "u")})),
        (["refresh", "t", "--trust"], ("runs.refresh", {"labels": ("t",), "trust": True})),
        (["refresh", "--redetect-language"], ("runs.refresh", {"redetect": True})),
        (["search", "event", "loop"], ("search.search", {"query": "event loop"})),
        (
            ["search", "--in", "harbor@2", "--language", "en", "--limit", "3", "--all-passages", "--", "--json"],
            (
                "search.search",
                {"query": "--json", "within": ("harbor@2",), "language": "en", "limit": 3, "every_chunk": True},
            ),
        ),
        (["search", "x", "--language", "DE"], ("search.search", {"query": "x", "language": "de"})),
        (["search", "x", "--language", "pt_br"], ("search.search", {"query": "x", "language": "pt-BR"})),
        (
            ["search", "x", "--in", "react@^17", "--in", "harbor", "--in", "harbor"],
            ("search.search", {"query": "x", "within": ("react@^17", "harbor")}),
        ),
        (
            ["search", "x", "--path", "/a/*", "--mode", "Text", "--context"],
            ("search.search", {"query": "x", "path": "/a/*", "mode": "text", "context": True}),
        ),
        (["search", "x", "--mode", "Keyword"], ("search.search", {"query": "x", "mode": "text"})),
        (["search", "x", "--mode", "semantic"], ("search.search", {"query": "x", "mode": "vector"})),
        (
            ["search", "x", "--changed-within", "7d", "--checked-within", "90s"],
            (
                "search.search",
                {"query": "x", "changed_within": timedelta(days=7), "checked_within": timedelta(seconds=90)},
            ),
        ),
        (["search", "x", "--max-age", "1h"], ("search.search", {"query": "x", "max_age": timedelta(hours=1)})),
        (["pages", "harbor"], ("pages.of_source", {"label": "harbor"})),
        (
            ["pages", "harbor", "--status", "error", "--all", "--limit", "2"],
            (
                "pages.of_source",
                {"label": "harbor", "which": PageFilter(status=PageStatus.ERROR, everything=True), "limit": 2},
            ),
        ),
        (
            ["pages", "harbor", "--doubtful"],
            ("pages.of_source", {"label": "harbor", "which": PageFilter(doubtful=True)}),
        ),
        (
            ["links", "harbor", "--page", SITE, "--limit", "2"],
            ("links.of_source", {"label": "harbor", "page": SITE, "limit": 2}),
        ),
        (
            ["links", "harbor", "--keyword", "budget", "--min-score", "0.5"],
            ("links.of_source", {"label": "harbor", "keyword": "budget", "min_score": 0.5}),
        ),
        (["history", SITE, "--in", "harbor"], ("pages.history", {"url": SITE, "within": "harbor"})),
        (["attempts", "3", "--limit", "2"], ("runs.attempts", {"number": 3, "limit": 2})),
        (
            ["changes", "harbor", "--run", "2", "--limit", "2"],
            ("pages.changes", {"label": "harbor", "run": 2, "limit": 2}),
        ),
        (["why", SITE], ("pages.explain", {"url": SITE})),
        (["plan", "harbor"], ("sources.plan", {"label": "harbor"})),
        (["confirm", "7"], ("runs.confirm", {"run": 7})),
        (["show", "harbor"], ("sources.view", {"label": "harbor"})),
    ],
)
def test_arguments_reach_the_use_case(
    afresh: Afresh, kb: Opened, arguments: list[str], call: tuple[str, dict[str, object]]
) -> None:
    assert afresh(*arguments).code == 0
    besides = ("runs.get", "sources.view")  # of which kind a run is, and why a list is empty
    assert [each for each in kb.calls if each == call or each[0] not in besides] == [call]


@pytest.mark.parametrize("before", [True, False])
def test_shared_options_work_before_and_after_the_command(
    afresh: Afresh, kb: Opened, tmp_path: Path, template: Path, before: bool
) -> None:
    (tmp_path / "mine.yaml").write_text("crawl: {max_pages: 77}\n")
    shutil.copy(template, tmp_path / "mine.db")
    options = ["--config", "mine.yaml", "--store", "sqlite:///mine.db", "--json", "-v", "-q"]
    ended = afresh(*options, "sources") if before else afresh("sources", *options)
    assert ended.code == 0
    assert ended.document[0]["name"] == "harbor"
    assert kb.config is not None
    assert kb.config.crawl.max_pages == 77
    assert kb.config.store.url == "sqlite:///mine.db"


def test_what_stands_after_the_command_wins(afresh: Afresh, kb: Opened) -> None:
    afresh("--store", "sqlite:///a.db", "sources", "--store", "sqlite:///b.db")
    assert kb.config is not None
    assert kb.config.store.url == "sqlite:///b.db"
    assert afresh("config", "--json", "path").document["path"] is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no source is called x"), 2),
        (ConfigError("wrong"), 2),
        (StoreError("cannot be opened"), 2),
        (SourceError("cannot be listed"), 1),
        (AfreshError("went wrong"), 1),
        (ValueError("a surprise"), 1),
    ],
)
def test_errors_are_one_sentence_and_an_exit_code(afresh: Afresh, kb: Opened, error: Exception, code: int) -> None:
    kb.answers["sources.views"] = error
    plain = afresh("sources")
    assert (plain.code, plain.out) == (code, "")
    assert plain.err.startswith("afresh: ")
    assert str(error) in plain.err
    assert "Traceback" not in plain.err
    assert kb.closed
    as_json = afresh("sources", "--json")
    assert as_json.code == code
    assert as_json.document["exit_code"] == code
    assert str(error) in as_json.document["error"]


@pytest.mark.parametrize("how", [["-v", "-v"], ["-vv"], ["--verbose", "-v"]])
def test_tracebacks_only_when_asked_for(afresh: Afresh, kb: Opened, how: list[str]) -> None:
    kb.answers["sources.views"] = ValueError("a surprise")
    assert "Traceback" not in afresh("sources", "-v").err
    assert "Traceback" in afresh("sources", *how).err


def test_debug_variable_shows_tracebacks(afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    kb.answers["sources.views"] = ValueError("a surprise")
    monkeypatch.setenv("AFRESH_DEBUG", "1")
    assert "Traceback" in afresh("sources").err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["frobnicate"], "no such command 'frobnicate'"),
        (["sourcs"], "Did you mean 'sources'?"),
        (["sources", "--jsn"], "--json"),
        (["crawl"], "missing argument 'TARGET'"),
        (["search"], "missing argument 'QUERY...'"),
        (["search", ""], "enter a search query"),
        (["search", " ", "\t"], "enter a search query"),
        (["search", "x", "--language", "klingon!"], "--language: expected a tag such as en or pt-BR"),
        (["search", "x", "--language", ""], "--language: expected a tag such as en or pt-BR"),
        (["pages", "a", "--status", "odd"], "--status: expected one of pending, "),
        (["search", "x", "--limit", "0"], "--limit"),
        (["search", "x", "--mode", "magic"], "--mode: expected one of hybrid, text, vector, got 'magic'"),
        (["refresh", "--budget", "3"], "--budget needs --due: write `afresh refresh --due"),
        (["refresh", "--due", "--budget", "0"], "0 is not in the range x>=1"),
        (["search", "x", "--path", " "], "--path: expected a pattern such as '/guide/*'"),
        (["search", "x", "--max-age", "soon"], "--max-age: expected a duration such as 90s, 15m, 1h"),
        (["search", "x", "--changed-within", "7"], "--changed-within: expected a duration"),
        (["search", "x", "--checked-within", "0s"], "--checked-within: '0s' is too short"),
        (["confirm", "seven"], "'seven' is not a valid integer"),
        (["--json"], "no command was given"),
        (["config"], "missing command: show, check, path"),
    ],
)
def test_wrong_use_is_exit_code_2(afresh: Afresh, arguments: list[str], expected: str) -> None:
    ended = afresh(*arguments)
    assert ended.code == 2
    assert expected in ended.err


def test_wrong_use_with_json_is_still_one_document(afresh: Afresh) -> None:
    assert afresh("frobnicate", "--json").document["exit_code"] == 2


def test_nothing_typed_shows_the_help(afresh: Afresh) -> None:
    ended = afresh()
    assert ended.code == 2
    assert "afresh crawl https://" in ended.out


def test_version(afresh: Afresh) -> None:
    assert afresh("--version").out == f"afresh {__version__}\n"
    assert afresh("--version", "--json").document == {"version": __version__}


def test_a_wrong_settings_file_stops_every_command(afresh: Afresh, kb: Opened, tmp_path: Path) -> None:
    (tmp_path / "afresh.yaml").write_text("crawl:\n  concurency: 3\n  scope: all\n")
    ended = afresh("sources")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "afresh: afresh.yaml line 2: unknown key crawl.concurency; did you mean crawl.concurrency?",
        "afresh: afresh.yaml line 3: crawl.scope: expected one of subpages, hostname, domain, got 'all'",
    ]
    assert kb.config is None
    assert afresh("config", "check").code == 2
    doctor = afresh("doctor", "--json")
    assert (doctor.code, doctor.document[0]["check"], doctor.document[0]["ok"]) == (1, "settings", False)


@pytest.mark.parametrize(
    ("state", "code"), [("completed", 0), ("partial", 1), ("failed", 1), ("cancelled", 1), ("needs_confirmation", 3)]
)
def test_U5_the_state_of_a_run_is_the_exit_code(afresh: Afresh, kb: Opened, state: str, code: int) -> None:
    kb.let_runs_end_with(report(state=state), report(state="completed"))
    assert afresh("crawl", SITE).code == code
    assert afresh("refresh").code == code
    assert afresh("confirm", "7", "--json").code == code


def test_U5_a_run_that_failed_counts_more_than_one_that_waits_for_a_confirmation(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(state="needs_confirmation"), report(state="failed"))
    assert afresh("refresh").code == 1


def test_remove_refuses_without_a_terminal_unless_yes(afresh: Afresh, kb: Opened) -> None:
    refused = afresh("remove", "harbor@2")
    assert refused.code == 2
    assert "add --yes" in refused.err
    assert "sources.remove" not in [name for name, _ in kb.calls]
    done = afresh("remove", "harbor@2", "--yes", "--json")
    assert (done.code, done.document) == (0, {"removed": "harbor@2", "pages": 3})


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_remove_asks_on_a_terminal(
    afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: typed)
    assert afresh("remove", "harbor@2").code == code
    assert (("sources.remove", {"label": "harbor@2"}) in kb.calls) == (code == 0)


def test_doctor_says_when_the_store_cannot_be_opened(afresh: Afresh, kb: Opened) -> None:
    kb.away = [StoreError("the file is not a database")]
    ended = afresh("doctor")
    assert ended.code == 1
    assert "✗ store" in ended.out
    assert "fix: " in ended.out


def test_help_needs_neither_rich_nor_yaml_nor_the_engine() -> None:
    """Start-up stays small: what a command does not need is not imported."""
    code = (
        "import sys; from afresh.cli import main; main(['search', '--help']); "
        "heavy = {'rich', 'yaml', 'aiohttp', 'asyncio', 'typer', 'pydantic', 'sqlite3', 'afresh.app'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(  # the interpreter of the tests itself
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=True
    )
    assert done.stderr.strip() == "[]"


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    code = "from afresh.cli import main; raise SystemExit(main(['config', 'show']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_json_is_valid_when_stdout_is_not_utf8(tmp_path: Path) -> None:
    code = "from afresh.cli import main; raise SystemExit(main(['--json', 'config', 'show']))"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "AFRESH_CRAWL__INCLUDE": "*/ä/*"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["crawl"]["include"] == ["*/ä/*"]


def test_a_terminal_that_knows_only_ascii_is_no_error(tmp_path: Path) -> None:
    code = "from afresh.cli import main; raise SystemExit(main(['doctor', '--store', 'sqlite:///kb.db']))"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, cwd=tmp_path, check=True)
    assert done.stdout.startswith(b"+ python")
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("words", "access"),
    [
        *((words, StoreAccess.READ) for words in ("search x", "sources", "show a", "pages a", "links a", "status")),
        *((words, StoreAccess.READ) for words in ("changes", "plan a", "doctor", "why http://a/")),
        *((words, StoreAccess.READ) for words in ("open http://a/", "find-version a")),
        *((words, StoreAccess.CHANGE) for words in ("refresh", "confirm 1", "remove a --yes")),
        ("search x --max-age 1h", StoreAccess.CHANGE),
        ("crawl http://a/", StoreAccess.CREATE),
    ],
)
def test_F16_only_a_crawl_may_make_a_store(afresh: Afresh, kb: Opened, words: str, access: StoreAccess) -> None:
    afresh(*words.split())
    assert kb.access is access


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"WEBHOOKS__OPS__URL": "http://10.0.0.5/hook"}, "webhooks.ops.url: address not allowed: 10.0.0.5"),
        ({"WEBHOOKS__OPS__URL": "http://169.254.169.254/"}, "network.allow"),
        ({"WEBHOOKS__OPS__URL": "http://localhost:9/"}, "localhost is a loopback address"),
        ({"WEBHOOKS__OPS__URL": "http://10.0.0.5/hook", "NETWORK__ALLOW": "10.0.0.0/8"}, None),
        ({"NOTIFY__TEAM__URL": "slak://hush1/hush2/hush3"}, "apprise does not support slak://; it supports slack://"),
        ({"NOTIFY__TEAM__URL": "slack://hush1"}, "notify.team.url: apprise cannot use this URL"),
        ({"NOTIFY__TEAM__URL": "json://203.0.113.9/hush1"}, None),
    ],
)
def test_S8_U4_config_check_refuses_where_no_message_would_get_to(
    afresh: Afresh, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], named: str | None
) -> None:
    if "WEBHOOKS__OPS__URL" in given:
        monkeypatch.setenv("AFRESH_WEBHOOKS__OPS__SECRET", "of-ops")
    for name, text in given.items():
        monkeypatch.setenv(f"AFRESH_{name}", text)
    ended = afresh("config", "check")
    assert ended.code == (0 if named is None else 2), ended.err
    assert named is None or named in " ".join(ended.err.split())
    assert "hush" not in ended.out + ended.err


def test_U4_config_check_names_the_extra_that_is_missing(afresh: Afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_NOTIFY__TEAM__URL", "slack://a/b/c")
    monkeypatch.setattr("afresh.services.webhooks.find_spec", lambda name: None)
    assert "pip install 'afresh[notify]'" in afresh("config", "check").err
