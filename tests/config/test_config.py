"""Settings: layers, types, ranges, and errors that name key, line and nearest key."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from afresh.config import Config, default_files, describe, list_values, load, secret_values
from afresh.config.forms import mask, network_place
from afresh.config.layers import apply_overrides, unknown_variables
from afresh.config.spec import InvalidValue
from afresh.errors import ConfigError
from afresh.sources.web.guard import AddressPolicy


def settings(
    tmp_path: Path,
    text: str | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Config:
    if text is not None:
        (tmp_path / "afresh.yaml").write_text(text, encoding="utf-8")
    return load(None, env or {}, flags or {}, tmp_path)


def refusal(tmp_path: Path, text: str | None = None, env: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text, env)
    return str(caught.value)


def test_defaults_are_those_of_the_design(tmp_path: Path) -> None:
    config = settings(tmp_path)
    assert config == Config()
    assert (config.crawl.concurrency, config.crawl.max_pages, config.crawl.max_depth) == (3, 10_000, 20)
    assert config.crawl.max_url_params is None
    assert config.crawl.max_path_components == 10
    assert config.crawl.scope == "subpages"
    assert (config.network.timeout_seconds, config.network.max_body_bytes) == (60, 10_485_760)
    assert (config.policy.gone_after, config.policy.missing_after) == (1, 3)
    assert (config.policy.brake_percent, config.policy.brake_pages) == (10, 10)
    assert config.storage.body == "markdown"


def test_default_store_is_one_file_in_the_data_folder(tmp_path: Path, home: Path) -> None:
    assert settings(tmp_path).store.url == f"sqlite:///{home}/data/afresh/afresh.db"


def test_layers_defaults_file_environment_flags(tmp_path: Path) -> None:
    text = "crawl:\n  concurrency: 4\n  max_pages: 50\n  max_depth: 2\n"
    env = {"AFRESH_CRAWL__CONCURRENCY": "5", "AFRESH_CRAWL__MAX_PAGES": "60"}
    config = settings(tmp_path, text, env, {"crawl.concurrency": 6})
    assert (config.crawl.concurrency, config.crawl.max_pages, config.crawl.max_depth) == (6, 60, 2)
    origins = {each.key: each.origin for each in list_values(config)}
    assert origins["crawl.concurrency"] == "flag --concurrency"
    assert origins["crawl.max_pages"] == "environment AFRESH_CRAWL__MAX_PAGES"
    assert origins["crawl.max_depth"] == "afresh.yaml line 4"
    assert origins["crawl.scope"] == "default"


def test_store_has_short_forms_and_the_full_variable_wins(tmp_path: Path) -> None:
    assert settings(tmp_path, env={"AFRESH_STORE": "sqlite:///a.db"}).store.url == "sqlite:///a.db"
    both = {"AFRESH_STORE": "sqlite:///a.db", "AFRESH_STORE__URL": "sqlite:///b.db"}
    assert settings(tmp_path, env=both).store.url == "sqlite:///b.db"
    assert settings(tmp_path, env=both, flags={"store.url": "sqlite:///c.db"}).store.url == "sqlite:///c.db"


def test_file_is_the_first_that_exists(tmp_path: Path, home: Path) -> None:
    user = home / "config" / "afresh" / "config.yaml"
    user.parent.mkdir(parents=True)
    named = tmp_path / "mine.yaml"
    assert default_files(tmp_path) == (tmp_path / "afresh.yaml", tmp_path / "config.yaml", user)
    files = [user, tmp_path / "config.yaml", tmp_path / "afresh.yaml"]
    for pages, file in enumerate(files, start=1):
        file.write_text(f"crawl: {{max_pages: {pages}}}")
        config = load(None, {}, {}, tmp_path)
        assert (config.crawl.max_pages, config.file) == (pages, file)
    named.write_text("crawl: {max_pages: 9}")
    assert load(None, {"AFRESH_CONFIG": "mine.yaml"}, {}, tmp_path).crawl.max_pages == 9
    assert load(files[0], {"AFRESH_CONFIG": "mine.yaml"}, {}, tmp_path).crawl.max_pages == 1


def test_F87_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--config nope\.yaml does not exist"):
        load(Path("nope.yaml"), {}, {}, tmp_path)
    with pytest.raises(ConfigError, match=r"AFRESH_CONFIG=nope\.yaml"):
        load(None, {"AFRESH_CONFIG": "nope.yaml"}, {}, tmp_path)
    with pytest.raises(ConfigError, match="is a folder"):
        load(tmp_path, {}, {}, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "crawl:\n  concurency: 3\n",
            "afresh.yaml line 2: unknown key crawl.concurency; did you mean crawl.concurrency?",
        ),
        ("crwal:\n  scope: domain\n", "afresh.yaml line 1: unknown key crwal; did you mean crawl?"),
        ("concurrency: 3\n", "line 1: unknown key concurrency; did you mean crawl.concurrency?"),
        ("network:\n\n  max_pages: 3\n", "line 3: unknown key network.max_pages; did you mean crawl.max_pages?"),
        (
            "crawl:\n  max_pages: many\n",
            "line 2: crawl.max_pages: expected a whole number from 1 to 10000000, got 'many'",
        ),
        ("crawl:\n  max_pages: 0\n", "line 2: crawl.max_pages: expected a whole number from 1 to 10000000, got 0"),
        ("crawl:\n  max_pages: 1.5\n", "crawl.max_pages: expected a whole number"),
        ("crawl:\n  max_pages: '7'\n", "crawl.max_pages: expected a whole number"),
        ("crawl:\n  max_pages: true\n", "crawl.max_pages: expected a whole number"),
        ("crawl:\n  max_pages:\n", "crawl.max_pages: expected a whole number from 1 to 10000000, got nothing"),
        ("crawl:\n  max_pages: 1:30\n", "crawl.max_pages: expected a whole number"),
        ("crawl:\n  max_pages: [1]\n", "crawl.max_pages: expected a whole number from 1 to 10000000, got a list"),
        ("crawl:\n  max_pages: {a: 1}\n", "crawl.max_pages: expected a whole number from 1 to 10000000, got a mapping"),
        ("crawl:\n  delay_seconds: .nan\n", "crawl.delay_seconds: expected a number from 0 to 3600"),
        ("crawl:\n  delay_seconds: -1\n", "crawl.delay_seconds: expected a number from 0 to 3600, got -1"),
        ("crawl:\n  scope: everything\n", "crawl.scope: expected one of subpages, hostname, domain, got 'everything'"),
        ("crawl:\n  scope: hostnam\n", "did you mean hostname?"),
        ("crawl:\n  render: browser\n", "crawl.render: expected one of auto, never"),
        ("crawl:\n  respect_robots: maybe\n", "crawl.respect_robots: expected true or false, got 'maybe'"),
        (
            "crawl:\n  include: docs\n",
            "crawl.include: expected a list of strings, at most 100, got 'docs': write [docs]",
        ),
        ("crawl:\n  include: [1]\n", "which YAML reads as a number"),
        ("crawl:\n  include: [[a]]\n", "crawl.include: expected strings or numbers, got a list"),
        ("crawl: 3\n", "line 1: crawl: expected keys, indented below it"),
        ("crawl: [a]\n", "line 1: crawl: expected keys, indented below it"),
        (
            "network:\n  allow: ['http://localhost/']\n",
            "network.allow: expected a network, an IP address or a host name, such as 10.0.0.0/8, "
            "127.0.0.1:8000, docs.internal; got 'http://localhost/'",
        ),
        ('network:\n  user_agent: "a\\nHost: b"\n', "network.user_agent: expected printable ASCII text"),
        (
            "policy:\n  schedule: 0 24 * * *\n",
            'line 2: policy.schedule: expected five cron fields ("30 4 * * *"), an alias (@daily), '
            '"every 6h" or "auto", '
            "got '0 24 * * *': the hour field is wrong: \"24\"; hours are 0 to 23",
        ),
        ("policy:\n  schedule: 0 0 30 2 *\n", "got '0 0 30 2 *': its date does not exist in any year"),
        ("policy:\n  time_zone: Mars/Base\n", "policy.time_zone: expected a time zone such as UTC"),
        ("policy:\n  time_zone: ../../etc/passwd\n", "policy.time_zone: expected a time zone such as UTC"),
        ("log:\n  level: loud\n", "log.level: expected one of debug, info, warning, error"),
        ("log:\n  file: ''\n", "log.file: expected the path of a file"),
        ("store:\n  url: kb.db\n", "did you mean sqlite:///kb.db?"),
        (
            "store:\n  url: mysql://u:geheim@h/db\n",
            "store.url: expected sqlite:///FILE or postgresql://USER@HOST/DATABASE, got 'mysql://u:***@h/db'",
        ),
        ("store:\n  url: 'sqlite:///:memory:'\n", "store.url: expected sqlite:///FILE, got :memory:"),
        ("store:\n  url: 'sqlite:///'\n", "or postgresql://USER@HOST/DATABASE, got 'sqlite:///'"),
        ("policy: {lease_seconds: 10, heartbeat_seconds: 8}\n", "policy.heartbeat_seconds (8) must be at most half"),
        ("policy: {backoff_base_seconds: 9, backoff_max_seconds: 8}\n", "backoff_base_seconds (9) must be at most"),
    ],
)
def test_F87_F89_a_wrong_key_or_value_is_named_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    message = refusal(tmp_path, text)
    assert expected in message
    assert "geheim" not in message


def test_F87_every_problem_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, "crawl:\n  max_pages: 0\n  scop: domain\nstorage:\n  body: html\n")
    assert [line.split(":")[0] for line in message.splitlines()] == [f"afresh.yaml line {n}" for n in (2, 3, 5)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("crawl:\n\tscope: domain\n", "line 2: begins with a tab"),
        ("crawl:\n  scope: domain\n  scope: hostname\n", "line 3: crawl.scope is also set in line 2"),
        ("crawl: {}\ncrawl: {}\n", "line 2: crawl is also set"),
        ("crawl: &a {scope: domain}\n", "line 1: anchors and aliases"),
        ("a: &a [x]\nb: *a\n", "anchors and aliases"),
        ("crawl:\n  scope: !!python/object:os.system domain\n", "line 2: the YAML tag"),
        ("crawl:\n  scope: !!str domain\n", "the YAML tag"),
        ("crawl:\n  scope: no\n", 'which YAML reads as true/false: write "no"'),
        ("network:\n  user_agent: 1.5\n", 'which YAML reads as a number: write "1.5"'),
        ("network:\n  user_agent: 2026-01-01\n", "which YAML reads as a date"),
        ("- crawl\n", "line 1: expected sections such as `crawl:`, got a list"),
        ("just words\n", "expected sections such as `crawl:`, got 'just words'"),
        ("crawl: {scope: domain\n", "line "),
        ("crawl: {}\n---\ncrawl: {}\n", "a second YAML document"),
        ("crawl: \x00\n", "line 1: a character that YAML does not allow"),
        ("[" * 5000, "nested too deeply"),
        ("? [a]\n: b\n", "a key must be a string"),
        ("# " + "x" * 1_100_000, "larger than 1 MB"),
        ("# " + "x" * 10_000_000, "larger than 1 MB"),
    ],
)
def test_F88_yaml_traps_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, text)


def test_F88_bytes_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "afresh.yaml").write_bytes(b"crawl:\n  scope: \xff\xfe\n")
    assert "afresh.yaml line 2: not UTF-8 text" in refusal(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing\n", "---\n", "crawl:\n", "crawl: {}\nstore: ~\n", "\ufeffcrawl:\n"]
)
def test_F88_an_empty_file_or_section_means_defaults(tmp_path: Path, text: str) -> None:
    assert settings(tmp_path, text) == Config()


def test_F88_a_billion_laughs_is_refused_at_once(tmp_path: Path) -> None:
    bomb = "a: &a [x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20)
    )
    assert "anchors and aliases" in refusal(tmp_path, bomb)


def test_a_foreign_config_file_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("baseURL: https://example.org\n")
    assert "belongs to another program" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("variable", "value", "key", "expected"),
    [
        ("AFRESH_CRAWL__INCLUDE", "*/a/*, */b/*", "include", ("*/a/*", "*/b/*")),
        ("AFRESH_CRAWL__INCLUDE", "['*/a,b/*', c]", "include", ("*/a,b/*", "c")),
        ("AFRESH_CRAWL__RESPECT_ROBOTS", "no", "respect_robots", False),
        ("AFRESH_CRAWL__RESPECT_ROBOTS", "1", "respect_robots", True),
        ("AFRESH_CRAWL__MAX_URL_PARAMS", "2", "max_url_params", 2),
        ("AFRESH_CRAWL__MAX_PATH_COMPONENTS", "null", "max_path_components", None),
        ("AFRESH_CRAWL__DELAY_SECONDS", "0.25", "delay_seconds", 0.25),
        ("AFRESH_CRAWL__DELAY_SECONDS", "", "delay_seconds", 0.0),
        ("AFRESH_CRAWL__SCOPE", "domain", "scope", "domain"),
    ],
)
def test_variables_are_read_by_the_type_of_their_key(
    tmp_path: Path, variable: str, value: str, key: str, expected: object
) -> None:
    assert getattr(settings(tmp_path, env={variable: value}).crawl, key) == expected


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("AFRESH_CRAWL__MAX_PAGES", "lots", "AFRESH_CRAWL__MAX_PAGES: expected a whole number"),
        ("AFRESH_CRAWL__MAX_PAGES", "0", "AFRESH_CRAWL__MAX_PAGES: expected a whole number from 1"),
        ("AFRESH_CRAWL__MAXPAGES", "3", "AFRESH_CRAWL__MAXPAGES: not a setting; did you mean AFRESH_CRAWL__MAX_PAGES?"),
        ("AFRESH_CRAWL_MAX_PAGES", "3", "did you mean AFRESH_CRAWL__MAX_PAGES (two underscores)?"),
        ("AFRESH_CRAWL__RESPECT_ROBOTS", "perhaps", "AFRESH_CRAWL__RESPECT_ROBOTS: expected true or false"),
        ("AFRESH_CRAWL__INCLUDE", "[a", "AFRESH_CRAWL__INCLUDE: expected a list"),
        ("AFRESH_STORE", "kb.db", "AFRESH_STORE: expected sqlite:///FILE"),
    ],
)
def test_F87_a_bad_variable_is_named(tmp_path: Path, variable: str, value: str, expected: str) -> None:
    assert expected in refusal(tmp_path, env={variable: value})


def test_unrelated_variables_are_left_alone(tmp_path: Path) -> None:
    assert settings(tmp_path, env={"AFRESH_DEBUG": "1", "PATH": "/bin", "AFRESH_TOKEN": "x"}) == Config()


def test_only_near_spellings_are_suggested_and_unknown_variables_named(tmp_path: Path) -> None:
    assert refusal(tmp_path, "search: {mode: text}\n").endswith("unknown key search")
    assert refusal(tmp_path, "serwer: {port: 1}\n").endswith("unknown key serwer; did you mean server?")
    (tmp_path / "afresh.yaml").unlink()
    assert refusal(tmp_path, env={"AFRESH_SEARCH__MODE": "text"}).endswith("AFRESH_SEARCH__MODE: not a setting")
    variables = ["AFRESH_FOO", "AFRESH_STOREE", "AFRESH_STORE", "AFRESH_TOKEN", "AFRESH_CRAWL__SCOPE", "PATH"]
    assert unknown_variables(variables) == [
        "AFRESH_FOO is not a setting",
        "AFRESH_STOREE is not a setting; did you mean AFRESH_STORE?",
    ]


def test_a_source_overlays_its_rules_and_policy(tmp_path: Path) -> None:
    config = settings(tmp_path, "crawl: {max_pages: 5}\n")
    rules = {"scope": "domain", "max_params": 1, "max_components": None, "include": ["*/a"]}
    own = config.with_overrides(rules, {"concurrency": 1, "delay_seconds": 1, "body": "none", "gone_after": 2})
    assert (own.crawl.scope, own.crawl.max_url_params, own.crawl.max_path_components) == ("domain", 1, None)
    assert own.crawl.include == ("*/a",)
    assert (own.crawl.concurrency, own.crawl.delay_seconds, own.crawl.max_pages) == (1, 1.0, 5)
    assert (own.storage.body, own.policy.gone_after) == ("none", 2)
    assert config.crawl.scope == "subpages"


@pytest.mark.parametrize(
    ("partial", "expected"),
    [
        ({"max_page": 3}, "unknown rule max_page; did you mean max_pages?"),
        ({"max_pages": "3"}, "max_pages: expected a whole number"),
        ({"concurrency": 0}, "concurrency: expected a whole number from 1 to 64, got 0"),
        ({"url": "sqlite:///x"}, "unknown rule url"),
        ({"respect_robots": 1}, "respect_robots: expected true or false"),
        ({"include": [1]}, "include: expected a list of strings"),
    ],
)
def test_a_wrong_rule_is_named(partial: Mapping[str, object], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config().with_overrides(partial)
    assert expected in str(caught.value)


def test_defaults_give_way_to_what_is_given(tmp_path: Path) -> None:
    """A short lease alone is enough: the heartbeat follows, and so does the first back-off."""
    config = settings(tmp_path, env={"AFRESH_POLICY__LEASE_SECONDS": "3", "AFRESH_POLICY__BACKOFF_MAX_SECONDS": "1"})
    assert config.policy.heartbeat_seconds == 0.5
    assert config.policy.backoff_base_seconds == 1


def test_the_whole_tree_is_reported_with_secrets_masked(tmp_path: Path) -> None:
    config = settings(tmp_path, env={"AFRESH_STORE": "sqlite:///kb.db?password=hush"})
    reported = describe(config)
    assert reported["store"]["url"] == "sqlite:///kb.db?password=***"
    sections = "store network crawl browser files git github policy storage embedding ai links log kb access"
    assert set(reported) == {*sections.split(), "sinks", "webhooks", "notify", "server", "telemetry", "retention"}
    assert reported["crawl"]["max_url_params"] is None
    assert reported["crawl"]["include"] == []
    assert "hush" not in repr(config)


def test_passwords_in_addresses_are_masked() -> None:
    url = "postgresql://me:pa/ss@db.example.org/kb?password=hush"
    assert mask(url) == "postgresql://me:***@db.example.org/kb?password=***"


def test_addresses_are_normalised(tmp_path: Path) -> None:
    config = settings(tmp_path, "network: {allow: [127.0.0.1, 10.1.2.3/8, '::1']}\n")
    assert config.network.allow == ("127.0.0.1/32", "10.0.0.0/8", "::1/128")


@pytest.mark.parametrize(
    ("typed", "kept", "ip", "host", "port"),
    [
        ("localhost", "localhost", "127.0.0.1", "localhost", 80),
        ("Docs.Internal.", "docs.internal", "10.0.0.7", "docs.internal", 443),
        ("docs.internal:8080", "docs.internal:8080", "10.0.0.7", "docs.internal", 8080),
        ("127.0.0.1:8000", "127.0.0.1:8000", "127.0.0.1", "anything", 8000),
        ("[::1]:8000", "[::1]:8000", "::1", "anything", 8000),
        ("[::1]", "::1/128", "::1", "anything", 1),
        ("192.168.0.0/16", "192.168.0.0/16", "192.168.3.4", "anything", 1),
    ],
)
def test_network_allow_takes_what_the_guard_understands(typed: str, kept: str, ip: str, host: str, port: int) -> None:
    assert network_place(typed) == kept
    assert AddressPolicy([kept]).check(ip, host, port) is None
    assert AddressPolicy([]).check(ip, host, port) is not None


@pytest.mark.parametrize(
    "typed",
    [
        *("", "  ", "a b", "10.0.0.0/99", "300.1.1.1", "host:0", "host:99999", "host:", "h:port", "a/b"),
        *("-x.org", "[docs]:80", "http://docs.internal", "*.internal", "a..b", "[::1", "docs.internal:80:80"),
    ],
)
def test_F87_a_place_that_could_never_match_is_refused(typed: str) -> None:
    with pytest.raises(InvalidValue):
        network_place(typed)


def test_settings_travel_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Config())) == Config()


def test_F100_webhooks_have_names_and_secrets_that_are_not_blank(tmp_path: Path) -> None:
    text = "webhooks: {ops: {secret: hush-hush, url: 'https://ops.example/x', events: [run.braked]}}\n"
    env = {"AFRESH_WEBHOOKS__GITHUB__SECRET": "It's a Secret to Everybody"}
    config = settings(tmp_path, text, env=env)
    assert config.webhooks["github"].secret == env["AFRESH_WEBHOOKS__GITHUB__SECRET"]
    assert config.webhooks["ops"].events == ("run.braked",)
    assert "Everybody" not in repr(config)
    assert describe(config)["webhooks"]["github"]["secret"] == "***"
    assert set(secret_values(config)) >= {"hush-hush", env["AFRESH_WEBHOOKS__GITHUB__SECRET"]}
    for wrong in (
        "webhooks: {github: {secret: ''}}",
        "webhooks: {github: {secret: '  '}}",
        "webhooks: {ops: {url: 'https://ops.example/x'}}",
        "webhooks: {github: {secret: s, url: 'https://ops.example/x'}}",
        "webhooks: {ops: {secret: s, events: [run.ended]}}",
        "webhooks: {Ops: {secret: s}}",
    ):
        with pytest.raises(ConfigError, match="webhooks"):
            settings(tmp_path, wrong + "\n")


@pytest.mark.parametrize("name", ["include", "exclude", "ignore"])
def test_S7_F182_patterns_are_bounded_in_length_and_number(name: str, tmp_path: Path) -> None:
    config, glob = settings(tmp_path), "*" + "a" * 199
    kept = apply_overrides(config, [{name: [glob] * 100}])
    assert (kept.files if name == "ignore" else kept.crawl).__getattribute__(name) == (glob,) * 100
    with pytest.raises(ConfigError, match=rf"^{name}: expected patterns of at most 200 characters, got one of 201: "):
        apply_overrides(config, [{name: [glob + "b"]}])
    with pytest.raises(ConfigError, match=rf"^{name}: expected a list of strings, at most 100, got 101$"):
        apply_overrides(config, [{name: ["*.pdf"] * 101}])
