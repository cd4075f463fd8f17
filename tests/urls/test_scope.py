"""What belongs to a source: tables of roots, scopes, globs and caps, and the laws of scopes."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from afresh.urls.canonical import canonical
from afresh.urls.scope import CrawlScope, Rules

DOCS = "https://x.org/docs/"


def belongs(rules: Rules, url: str, depth: int = 1) -> bool:
    assert canonical(url) == url, "the table must hold canonical addresses"
    return rules.refusal(url, depth) is None


@pytest.mark.parametrize(
    ("root", "inside", "outside"),
    [
        ("https://x.org/", "https://x.org/any/where", "https://y.org/"),
        (DOCS, "https://x.org/docs/a/b?c=1", "https://x.org/docs2/"),
        (DOCS, "https://x.org/docs/?page=2", "https://x.org/blog/"),
        (DOCS, "https://x.org/docs", "https://x.org/doc"),
        (DOCS, "http://x.org/docs/a", "https://x.org/Docs/a"),
        ("https://x.org/docs/index.html", "https://x.org/docs/a", "https://x.org/"),
        ("https://x.org/docs/index", "https://x.org/docs/a", "https://x.org/blog"),
        ("https://x.org/docs/start.php?id=1", "https://x.org/docs/start.php?id=2", "https://x.org/start.php"),
        ("https://x.org/docs", "https://x.org/docs/a", "https://x.org/blog"),
        ("https://x.org/docs", "https://x.org/docs?page=2", "https://x.org/docs-old"),
        ("https://x.org/docs/v1.2", "https://x.org/docs/v1.2/a", "https://x.org/docs/v1.3/a"),
        ("https://x.org/docs/guide", "https://x.org/docs/guide/a", "https://x.org/docs/api"),
        ("http://x.org:8080/docs/", "https://x.org:8080/docs/a", "http://x.org/docs/a"),
        (DOCS, "https://x.org/docs/a", "http://x.org:443/docs/a"),
        (DOCS, "https://x.org/docs/a", "https://www.x.org/docs/a"),
        (DOCS, "https://x.org/docs//a", "https://x.org//docs/a"),
        (DOCS, "https://x.org/docs/a%2F..", "https://x.org.evil.org/docs/"),
    ],
)
def test_subpages_are_the_root_s_site_below_its_directory(root: str, inside: str, outside: str) -> None:
    """The default scope; a root without suffix is a directory, one with a suffix stands in it."""
    rules = Rules(root=root)
    assert belongs(rules, inside)
    assert not belongs(rules, outside)


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        (CrawlScope.HOSTNAME, "https://x.org/blog", "https://www.x.org/docs/"),
        (CrawlScope.HOSTNAME, "http://x.org/", "https://x.org:8443/docs/"),
        (CrawlScope.DOMAIN, "https://www.x.org/blog", "https://y.org/docs/"),
        (CrawlScope.DOMAIN, "http://api.v2.x.org:8443/", "https://x.org.evil.org/"),
        (CrawlScope.DOMAIN, "https://x.org/", "https://ax.org/"),
    ],
)
def test_hostname_and_domain(scope: CrawlScope, inside: str, outside: str) -> None:
    """`hostname` is one host and port, `domain` everything below the registrable name."""
    rules = Rules(root=DOCS, scope=scope)
    assert belongs(rules, inside)
    assert not belongs(rules, outside)


@pytest.mark.parametrize(
    ("root", "other"),
    [
        ("https://alice.github.io/", "https://bob.github.io/"),
        ("https://a.co.uk/", "https://b.co.uk/"),
        ("http://127.0.0.1/", "http://127.0.0.2/"),
        ("http://10.0.0.1/", "http://11.0.0.1/"),
        ("http://[::1]/", "http://[::2]/"),
    ],
)
def test_domain_does_not_leak_to_neighbours(root: str, other: str) -> None:
    """Neighbours below a public suffix, and other addresses, are other domains."""
    assert not belongs(Rules(root=root, scope=CrawlScope.DOMAIN), other)


@pytest.mark.parametrize(
    ("glob", "url", "matches"),
    [
        ("/docs/api/*", "https://x.org/docs/api/a/b", True),
        ("/docs/api/**", "https://x.org/docs/api/a/b", True),
        ("https://x.org/docs/api/**", "https://x.org/docs/api/a", True),
        ("https://x.org/docs/api/*", "http://x.org/docs/api/a", False),
        ("*/private/*", "https://x.org/docs/private/a", True),
        ("*.pdf", "https://x.org/docs/a.pdf", True),
        ("*.pdf", "https://x.org/docs/a.pdf?download=1", True),
        ("/docs/search?q=*", "https://x.org/docs/search?q=1", True),
        ("*&page=*", "https://x.org/docs/a?b=1&page=2", True),
        ("/docs/login", "https://x.org/docs/login?next=/docs/", True),
        ("/docs/v[12]/*", "https://x.org/docs/v2/a", True),
        ("/docs/v[12]/*", "https://x.org/docs/v3/a", False),
        ("/docs/API/*", "https://x.org/docs/api/a", False),
        ("docs/api/*", "https://x.org/docs/api/a", False),
        ("/api/*", "https://x.org/docs/api/a", False),
        ("*.", "https://x.org/docs/abc", False),
    ],
)
def test_globs_match_the_address_or_its_path(glob: str, url: str, matches: bool) -> None:
    """A glob must cover the whole address or the whole path; exclude and include read it alike."""
    assert belongs(Rules(root=DOCS, include=(glob,)), url) is matches
    assert belongs(Rules(root=DOCS, exclude=(glob,)), url) is not matches


def test_exclude_wins_over_include() -> None:
    """A page both wanted and unwanted is unwanted."""
    rules = Rules(root=DOCS, include=("/docs/api/*",), exclude=("*/old/*",))
    assert belongs(rules, "https://x.org/docs/api/a")
    assert not belongs(rules, "https://x.org/docs/api/old/a")


@pytest.mark.parametrize(
    "form", ["https://x.org/docs", "https://x.org/docs/", "http://x.org/docs", "http://x.org/docs/"]
)
def test_the_root_belongs_in_the_forms_a_redirect_gives_it(form: str) -> None:
    """Include globs restrict what is found below the root, never the way in."""
    assert belongs(Rules(root="http://x.org/docs", include=("/docs/api/*",)), form)


def test_C23_a_trimmed_root_is_still_the_root() -> None:
    """C23: stripping parameters must not shut the way in."""
    rules = Rules(root="https://x.org/docs?a=1&b=2", max_params=1, include=("/docs/api/*",))
    assert rules.trim(rules.root) == "https://x.org/docs?a=1"
    assert belongs(rules, rules.trim(rules.root), 0)


@pytest.mark.parametrize(
    ("rules", "url", "depth", "reason"),
    [
        (Rules(root=DOCS), "https://y.org/", 1, "outside the scope subpages of https://x.org/docs/"),
        (
            Rules(root=DOCS, scope=CrawlScope.DOMAIN),
            "https://y.org/",
            1,
            "outside the scope domain of https://x.org/docs/",
        ),
        (Rules(root=DOCS, max_depth=3), "https://x.org/docs/a", 4, "deeper than max_depth 3"),
        (Rules(root=DOCS), "https://x.org/docs/" + "a/" * 11, 1, "12 path components, more than max_components 10"),
        (
            Rules(root=DOCS, exclude=("*.zip", "*/private/*")),
            "https://x.org/docs/private/",
            1,
            "excluded by */private/*",
        ),
        (Rules(root=DOCS, include=("/docs/api/*",)), "https://x.org/docs/a", 1, "matches no include pattern"),
    ],
)
def test_a_refusal_says_why(rules: Rules, url: str, depth: int, reason: str) -> None:
    """`afresh why` shows these words."""
    assert rules.refusal(url, depth) == reason


def test_C23_caps_let_the_last_one_pass() -> None:
    """C23: depth and components up to the cap belong; slashes of a query are no components."""
    rules = Rules(root=DOCS, max_depth=3, max_components=4)
    assert belongs(rules, "https://x.org/docs/a/b/c?d=/e/f/g/h", 3)
    assert belongs(rules, "https://x.org/docs//a//b//c/", 3)
    assert not belongs(rules, "https://x.org/docs/a/b/c/d", 3)
    assert not belongs(rules, "https://x.org/docs/a", 4)


def test_F77_other_schemes_and_hosts_are_outside() -> None:
    """F77: whatever a sitemap lists is refused with a reason, never an exception."""
    for scope in CrawlScope:
        rules = Rules(root=DOCS, scope=scope)
        for url in ("ftp://x.org/docs/a", "mailto:a@x.org", "https://evil.org/?https://x.org/docs/"):
            assert rules.refusal(url, 1) is not None


def test_rules_are_plain_values() -> None:
    """Rules are compared, hashed, replaced and sent to another process as values."""
    rules = Rules(root=DOCS, exclude=("*.pdf",))
    assert rules.refusal("https://x.org/docs/a", 1) is None
    assert pickle.loads(pickle.dumps(rules)) == rules == replace(rules)
    assert len({rules, replace(rules), replace(rules, max_depth=1)}) == 2


# ---- laws --------------------------------------------------------------------------------------

HOSTS = st.sampled_from(["x.org", "www.x.org", "y.org", "x.org:8080", "127.0.0.1", "a.github.io", "b.github.io"])
PATHS = st.lists(st.sampled_from(["", "docs", "a", "index.html", "index", "v1.2", "b?c=1&d=/2"]), max_size=13)
URLS = st.builds(
    lambda scheme, host, path: canonical(f"{scheme}://{host}/{'/'.join(path)}") or "",
    st.sampled_from(["http", "https"]),
    HOSTS,
    PATHS,
)
RULES = st.builds(
    Rules,
    root=URLS,
    scope=st.sampled_from(CrawlScope),
    include=st.sampled_from([(), ("/docs/*",), ("*a*", "*.html")]),
    exclude=st.sampled_from([(), ("*index*",), ("*",)]),
    max_depth=st.integers(0, 3),
    max_params=st.none() | st.integers(0, 2),
    max_components=st.integers(0, 10),
)


@examples(300)
@given(RULES)
def test_the_root_always_belongs(rules: Rules) -> None:
    """Law: no rule shuts out the root, trimmed or not."""
    assert rules.refusal(rules.root, 0) is None
    assert rules.refusal(rules.trim(rules.root), 0) is None


@examples(500)
@given(RULES, URLS, st.integers(0, 4))
def test_a_wider_scope_holds_the_narrower(rules: Rules, url: str, depth: int) -> None:
    """Law: subpages ⊂ hostname ⊂ domain."""
    narrow, middle, wide = (replace(rules, scope=scope).refusal(url, depth) is None for scope in CrawlScope)
    assert narrow <= middle <= wide


@examples(300)
@given(RULES, URLS, st.integers(0, 4))
def test_more_rules_never_let_more_in(rules: Rules, url: str, depth: int) -> None:
    """Law: caps and excludes only take away."""
    free = replace(rules, include=(), exclude=(), max_depth=99, max_components=99)
    assert rules.refusal(url, depth) is not None or free.refusal(url, depth) is None
