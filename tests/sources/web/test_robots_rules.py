"""What the lines of a robots.txt mean (P14, F72, F74): the cases of three parsers and of 4,229 real files."""

import base64
import gzip
import json
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from afresh.sources.web import robots as robots_rules
from afresh.sources.web.robots import RobotsRules

SIZE = 500 * 1024
LONG_PATH = "http://x.org/" + "a" * 1_900

# Where we differ from a case on which its source and the reference parser agree, or from the reference.
DIFFERENCES = {
    "index.html": "Allow: /a/index.html does not open /a/ as well: a rule of Google's, not of RFC 9309",
    "robots.txt": "/robots.txt itself is always allowed (RFC 9309 2.2.2); the reference has no such rule",
    "%7e": "a needless escape means the character (RFC 9309 2.2.2); the reference compares letters",
    "Visit-time": "not obeyed: no standard names it, and a run that waited for the night would never end",
    "harry potter": "a name is one word (RFC 9309 2.2.1), and a line without colon is two",
}


def _rows(shared: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(row) for row in (shared / f"data/robots/{name}.jsonl").read_text().splitlines()]


@cache
def _rules(robots: bytes, agent: str) -> RobotsRules:
    return RobotsRules(robots, agent)


def _robots(row: dict[str, Any]) -> bytes:
    if "robots_b64" in row:
        return base64.b64decode(row["robots_b64"])
    return str(row["robots"]).encode()


def _right(row: dict[str, Any]) -> bool:
    return (_rules(_robots(row), row["agent"]).refusal(row["url"]) is None) is row["allowed"]


def _wrong(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["test"], row["url"]) for row in rows if not _right(row)]


def test_P14_every_case_of_the_reference_parser(shared: Path) -> None:
    rows = [row for row in _rows(shared, "google_cases") if not row["google_only"]]
    assert len(rows) == 72
    assert _wrong(rows) == []


@pytest.mark.parametrize(
    ("name", "agreed", "differing"),
    [
        ("protego_cases", 317, [("test_index_html_is_directory", "http://foo.com/allowed-slash/")]),
        ("crawlercommons_cases", 91, [("testPrecedenceOfRules", "http://domain.com/")]),
    ],
)
def test_P14_cases_of_other_parsers_where_they_agree_with_the_reference(
    shared: Path, name: str, agreed: int, differing: list[tuple[str, str]]
) -> None:
    """Both differences are DIFFERENCES["index.html"]; contested rows do not count."""
    rows = [row for row in _rows(shared, name) if row["google"] == row["allowed"]]
    assert len(rows) == agreed
    assert _wrong(rows) == differing


def _probes(shared: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(shared / "data/robots/real_probes.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


@pytest.mark.slow
def test_P14_verdicts_on_real_files(shared: Path) -> None:
    """29,186 questions to 4,229 files of the web; five answers differ, each by a rule of the RFC."""
    with tarfile.open(shared / "data/robots/real_robots.tar.xz") as archive:
        files = {Path(member.name).name: archive.extractfile(member) for member in archive if member.isfile()}
        content = {name: file.read() for name, file in files.items() if file}
    rows = [row for row in _probes(shared) if not row["over_500k"]]
    wrong: Counter[str] = Counter()
    for row in rows:
        refusal = _rules(content[row["file"]], row["agent"]).refusal(row["url"])
        if (refusal is None) != row["allowed"]:
            wrong["robots.txt" if row["url"].endswith("/robots.txt") else row["url"][20:23]] += 1
    assert len(rows) == 29_186
    assert wrong == {"robots.txt": 3, "%7e": 2}
    assert wrong.keys() <= DIFFERENCES.keys()


def test_F74_crawl_delay_and_request_rate_of_another_parser(shared: Path) -> None:
    rows = [row for row in _rows(shared, "protego_extensions") if row["call"] != "visit_time"]
    differing = [row for row in rows if row["agent"] in DIFFERENCES]
    assert (len(rows), len(differing)) == (18, 1)
    for row in rows:
        if row in differing:
            continue
        expected = row["result"]
        if isinstance(expected, list):  # requests in seconds
            expected = min(60.0, expected[1] / expected[0])
        assert RobotsRules(_robots(row), row["agent"]).crawl_delay == expected, row


@pytest.mark.parametrize(
    ("line", "delay"),
    [
        ("Crawl-delay: 2", 2.0),
        ("crawl-delay:0.5 # please", 0.5),
        ("Crawl-delay: 1e9", 60.0),
        ("Crawl-delay: 1e999", 60.0),
        ("Crawl-delay: 0", 0.0),
        ("Crawl-delay: 3\nCrawl-delay: 9\nCrawl-delay: 1", 9.0),
        ("Crawl-delay: 2\nRequest-rate: 1/10s", 10.0),
        ("Request-rate: 1/1d", 60.0),
        ("Request-rate: 4/1 0600-0845", 0.25),
        *((f"Crawl-delay: {bad}", None) for bad in ("-5", "soon", "nan", "inf", "", "1_0", "٣", "9" * 500)),
        *((f"Request-rate: {bad}", None) for bad in ("0/10", "1", "1/", "/5", "-1/5", "1/5w", "many")),
    ],
)
def test_F74_a_pause_is_capped_and_nonsense_ignored(line: str, delay: float | None) -> None:
    assert RobotsRules(f"User-agent: *\n{line}".encode(), "afresh").crawl_delay == delay


def test_F74_the_pause_of_our_own_group_counts_and_no_other() -> None:
    robots = b"User-agent: *\nCrawl-delay: 10\nUser-agent: afresh\nCrawl-delay: 3\nUser-agent: x\nCrawl-delay: 7"
    assert RobotsRules(robots, "afresh").crawl_delay == 3.0
    assert RobotsRules(robots, "somebody").crawl_delay == 10.0
    assert RobotsRules(b"User-agent: *\nCrawl-delay: 10\nUser-agent: afresh", "afresh").crawl_delay is None


@pytest.mark.parametrize(
    ("robots", "refusal"),
    [
        ("Useragent: *\nDisallow: /a", "robots.txt line 2: Disallow: /a"),
        ("User-agent: *\n" + "Disallow: /a\n" * 3000, "robots.txt line 2: Disallow: /a"),
        ("User-agent: *\r\rDisallow: /\r\nDisallow: /a$\n", "robots.txt line 4: Disallow: /a$"),
        ("User-agent: afresh\nUser-agent: b\nSitemap: x\nDisallow: /a\nUser-agent: *\nDisallow: /", "line 4"),
        ("User-agent: afresh/2.0 (+http://x.org)\nDisallow: /\nUser-agent: *\nAllow: /", "line 2"),
        ("User-agent: *\nDisallow: /*\x1b[2J\nDisallow: /é*\nDisallow: /*", "line 4: Disallow: /*"),
        ("User-agent: *\nDisallow: /\nAllow: /", None),
        ("User-agent: afresh\nUser-agent: *\nDisallow: /b\nUser-agent: *\nDisallow: /", None),
        ("User-agent: afreshbot\nDisallow: /", None),
        ("Disallow: /", None),
        ("User-agent: *\nDisallow:\nDisallow: a\nDisallow: #/", None),
    ],
)
def test_P14_the_line_that_decides_is_named(robots: str, refusal: str | None) -> None:
    found = RobotsRules(robots.encode(), "afresh").refusal("http://x.org/a")
    assert found == refusal if refusal is None else refusal in (found or "")


@pytest.mark.parametrize(
    ("pattern", "matched", "other"),
    [
        ("/%7Ejoe", "/~joe/x", "/joe"),
        ("/~joe", "/%7ejoe", "/joe"),
        ("/%62az", "/baz", "/%2562az"),
        ("/a%2fb", "/a%2Fb", "/a/b"),
        ("/a-%24", "/a-$", "/a-"),
        ("/a-%2A", "/a-*", "/a-b"),
        ("/ツ", "/%E3%83%84", "/%E3%83%85"),
        ("/*a*b*c$", "/xaxbxbxc", "/xaxcxbx"),
        ("/a*a$", "/a-a", "/a"),
        ("/a$b", "/a$b", "/a"),
        ("*.pdf$", "/x.pdf", "/x.pdf?y"),
        ("/x*$", "/xyz", "/y"),
        ("/?q=", "/?q=1", "/x?q=1"),
    ],
)
def test_P14_what_a_pattern_matches(pattern: str, matched: str, other: str) -> None:
    rules = RobotsRules(f"User-agent: *\nDisallow: {pattern}".encode(), "afresh")
    assert rules.refusal(f"http://x.org{matched}") is not None
    assert rules.refusal(f"http://x.org{other}") is None


def test_a_rule_of_robots_txt_is_displayed_without_control_characters() -> None:
    refusal = RobotsRules(b"User-agent: *\nDisallow: /*\x1b[2J*\xff$\nDisallow: /\x07*", "afresh").refusal
    assert refusal("http://x.org/%1B[2J%FF") == "robots.txt line 2: Disallow: /*%1B[2J*%FF$"


HOSTILE = {
    "stars": b"User-agent: *\n" + b"".join(b"Disallow: /*a%da\n" % n for n in range(25_000)),
    "stars-in-a-row": b"User-agent: *\nDisallow: /" + b"*a" * 250_000,
    "only-stars": b"User-agent: *\n" + b"".join(b"Disallow: " + b"*" * n + b"b\n" for n in range(1_000)),
    "growing": b"User-agent: *\n" + b"".join(b"Disallow: /" + b"*a" * n + b"b\n" for n in range(650)),
    "groups": b"User-agent: *\nDisallow: /b\n" * 18_000,
    "colons": b":\n" * (SIZE // 2),
    "bytes": bytes(range(256)) * (SIZE // 256),
    "one-agent": b"User-agent: *\n" * 36_000 + b"Disallow: /b",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_F72_a_hostile_file_costs_little(name: str) -> None:
    """Generous bounds of CPU time: a pattern that backtracks would take minutes."""
    began = time.process_time()
    rules = RobotsRules(HOSTILE[name][:SIZE], "afresh")
    read = time.process_time()
    assert rules.refusal(LONG_PATH) in (None, robots_rules.TOO_MANY)
    asked = time.process_time()
    assert read - began < 3.0
    assert asked - read < 1.0


@pytest.mark.parametrize(
    "rule",
    ["*a*{n}", "*a*a*a*a*{n:x}$", "*" + "a" * 50 + "b{n:x}", "/a*{n}b"],
    ids=["two pieces", "many pieces", "long piece", "below a folder"],
)
def test_S2_F119_matching_a_url_is_bounded_whatever_the_rules(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL that cannot be decided within the bound is left alone: a rule may forbid it."""
    lines = "\n".join(f"Disallow: {rule.format(n=n)}" for n in range(30_000))
    rules = RobotsRules(f"User-agent: *\n{lines}".encode()[:SIZE], "afresh")
    compared = 0
    matches = robots_rules._Rule.matches

    class Path(str):
        def __contains__(self, piece: object) -> bool:
            nonlocal compared
            compared += len(self) + len(str(piece))
            return super().__contains__(str(piece))

    monkeypatch.setattr(robots_rules, "_unescaped", lambda path, plain: Path(path))
    monkeypatch.setattr(robots_rules._Rule, "matches", lambda rule, path: matches(rule, str(path)))
    assert rules.refusal(f"{LONG_PATH}%41") == robots_rules.TOO_MANY
    assert 0 < compared <= robots_rules.MAX_COMPARED_CHARS


def test_S2_rules_beyond_the_bound_do_not_weaken_those_that_decide_at_once() -> None:
    lines = "\n".join(f"Disallow: *{n}x" for n in range(30_000))
    rules = RobotsRules(f"User-agent: *\nDisallow: /closed/\n{lines}".encode(), "afresh")
    assert rules.refusal("http://x.org/closed/a") == "robots.txt line 2: Disallow: /closed/"
    assert rules.refusal("http://x.org/a") is None


def test_S2_sitemaps_are_named_once_and_not_without_end() -> None:
    lines = "\n".join(f"Sitemap: /{n % 3_000}" for n in range(6_000))
    assert RobotsRules(lines.encode(), "afresh").sitemaps == tuple(f"/{n}" for n in range(1_000))
