"""Canonical addresses: tables and laws."""

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import examples

from afresh.urls.canonical import (
    MAX_LENGTH,
    canonical,
    directory_of,
    domain_of,
    host_of,
    origin_of,
    path_components,
    registrable_domain,
    trim_params,
)

BASE = "https://docs.example.org/guide/start.html?lang=en"


# ---- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw_url", "expected"),
    [
        ("https://x.org/a#part", "https://x.org/a"),
        ("https://x.org/a?#part", "https://x.org/a"),
        ("https://x.org?", "https://x.org/"),
        ("https://x.org/a/./b/../c", "https://x.org/a/c"),
        ("https://x.org/%7euser/%c3%a9%2fx", "https://x.org/~user/%C3%A9%2Fx"),
        ("https://x.org/a%2Eb?q=%41%2b", "https://x.org/a.b?q=A%2B"),
        ("https://x.org/a?utm_source=n&id=7&fbclid=1&b=&c", "https://x.org/a?id=7&b=&c"),
        ("https://x.org/a?UTM_Medium=m&gclid=1", "https://x.org/a"),
        ("https://x.org/a?%75tm_source=n&q=1", "https://x.org/a?q=1"),
        ("https://x.org/a?_ga=1&ref_src=t&mc_eid=e&msclkid=k&z=+%20+", "https://x.org/a?z=+%20+"),
        ("\t HTTPS://X.org/a\n b ", "https://x.org/a%20b"),
        ("https:\\\\x.org\\a", "https://x.org/a"),
    ],
)
def test_F68_duplicates_fold_into_one_address(raw_url: str, expected: str) -> None:
    """F68: fragment, tracking parameters, dot segments, escapes."""
    assert canonical(raw_url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "https://x.org/a?b=1&a=2",
        "https://x.org/a?a=2&b=1",
        "https://x.org/a?b=",
        "https://x.org/a?b",
        "https://x.org/a?&b=1&",
        "https://x.org/a?utm=1&gclid2=1&agclid=1&ref=main&page=2",
        "https://x.org/a//b",
        "https://x.org/a",
        "https://x.org/a/",
        "https://x.org/a/index.html",
        "https://x.org/A",
        "http://x.org/a",
        "https://www.x.org/a",
        "https://x.org/100%/%7e",
    ],
)
def test_F68_what_may_be_another_page_stays_byte_exact(url: str) -> None:
    """F68: order, empty values, case, www, scheme, slashes and index.html are left to the evidence."""
    assert canonical(url) == url


@pytest.mark.parametrize(
    ("raw_url", "expected"),
    [
        ("https://Bücher.DE/", "https://xn--bcher-kva.de/"),
        ("https://xn--bcher-kva.de/", "https://xn--bcher-kva.de/"),
        ("https://нэб.рф/", "https://xn--90ax2c.xn--p1ai/"),
        ("https://b%C3%BCcher.de/", "https://xn--bcher-kva.de/"),
        ("https://аpple.com/", "https://xn--pple-43d.com/"),  # Cyrillic а: visible as such
        ("https://x.org./a", "https://x.org/a"),
        ("https://x.org.:8443/a", "https://x.org:8443/a"),
        ("https://x。org。/a", "https://x.org/a"),
        ("http://x.org:80/", "http://x.org/"),
        ("https://x.org:443/", "https://x.org/"),
        ("http://x.org:443/", "http://x.org:443/"),
        ("https://x.org:/", "https://x.org/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://[0:0::1]:8000/", "http://[::1]:8000/"),
        ("https://@x.org/", "https://x.org/"),
    ],
)
def test_F69_one_host_has_one_name(raw_url: str, expected: str) -> None:
    """F69: IDN, punycode, mixed script, trailing dot, default ports, numbers that hide an address."""
    assert canonical(raw_url) == expected


@pytest.mark.parametrize(
    "raw_url",
    [
        "https://user@x.org/",
        "https://user:secret@x.org/",
        "https://:secret@x.org/",
        "https://docs.example.org@evil.org/",
        "https://x.org../",
        "http://1.2.3.4../",
        "https://./",
        "https://",
        "https://a b/",
        "https://x.org:99999/",
        "https://x.org/a\x00b",
        "https://x.org/a\x1b[31mb",
        "https://x.org/\x7f",
        "https://x.org/\ud800",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "ftp://x.org/",
        "javascript:alert(1)",
        "data:text/html,hi",
        "mailto:a@x.org",
        "blob:https://x.org/1",
        "view-source:https://x.org/",
        "//x.org/a",
        "a/b",
        "",
        "https://x.org/" + "a" * MAX_LENGTH,
        "https://x.org/?utm_source=" + "a" * 100_000,
    ],
)
def test_F69_what_is_no_plain_web_address_is_refused(raw_url: str) -> None:
    """F69 userinfo; control characters, other schemes, no host, too long."""
    assert canonical(raw_url) is None


@pytest.mark.parametrize(
    ("raw_url", "expected"),
    [
        ("", "https://docs.example.org/guide/start.html?lang=en"),
        ("#top", "https://docs.example.org/guide/start.html?lang=en"),
        ("next.html", "https://docs.example.org/guide/next.html"),
        ("../api/", "https://docs.example.org/api/"),
        ("../../../etc", "https://docs.example.org/etc"),
        ("/a", "https://docs.example.org/a"),
        ("//cdn.example.org/a", "https://cdn.example.org/a"),
        ("?page=2", "https://docs.example.org/guide/start.html?page=2"),
        ("https:b", "https://docs.example.org/guide/b"),
        ("#" + "state" * 10_000, "https://docs.example.org/guide/start.html?lang=en"),
        ("a #\x01", "https://docs.example.org/guide/a%20"),
        ("mailto:a@x.org", None),
        ("//user@x.org/", None),
    ],
)
def test_links_are_resolved_against_their_page(raw_url: str, expected: str | None) -> None:
    """Joins follow the WHATWG rules; a long fragment costs nothing."""
    assert canonical(raw_url, BASE) == expected


@pytest.mark.parametrize(
    ("raw_url", "expected"),
    [
        ("https://x.org/a;jsessionid=9F3A?b=1", "https://x.org/a?b=1"),
        ("https://x.org/;JSESSIONID=9F3A", "https://x.org/"),
        ("https://x.org/a;v=1;jsessionid=9F3A/b", "https://x.org/a;v=1/b"),
        ("https://x.org/a/..;jsessionid=1/b", "https://x.org/b"),
        ("https://x.org/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "https://x.org/a.aspx"),
        ("https://x.org/a?PHPSESSID=0af&b=1", "https://x.org/a?b=1"),
        ("https://x.org/a?b=1&ASPSESSIONIDQADQ=x", "https://x.org/a?b=1"),
        ("https://x.org/a?CFID=1&CFTOKEN=2", "https://x.org/a"),
        ("https://x.org/a?sid=3f786850e387550fdab836ed7e6dc881", "https://x.org/a"),
        ("https://x.org/a?sid=7", "https://x.org/a?sid=7"),
        ("https://x.org/a?sid=introduction", "https://x.org/a?sid=introduction"),
        ("https://x.org/a;v=1?sessions=2&inside=12345678", "https://x.org/a;v=1?sessions=2&inside=12345678"),
        ("https://x.org/a(b)/(c)/d", "https://x.org/a(b)/(c)/d"),
    ],
)
def test_F67_F68_session_ids_are_no_part_of_an_address(raw_url: str, expected: str) -> None:
    assert canonical(raw_url) == expected
    assert canonical(expected) == expected


def test_F67_the_length_is_capped_after_normalising() -> None:
    """F67: 2,000 characters are the last that pass."""
    fits = "https://x.org/".ljust(MAX_LENGTH, "a")
    assert canonical(fits + "?utm_source=letter#part") == fits
    assert canonical(fits + "a") is None


@pytest.mark.parametrize(
    ("url", "domain", "host", "origin"),
    [
        ("https://x.org/a/b?c=/d", "x.org", "x.org", "https://x.org"),
        ("http://x.org:8080/", "x.org:8080", "x.org", "http://x.org:8080"),
        ("http://[::1]/", "[::1]", "[::1]", "http://[::1]"),
        ("http://[::1]:81/", "[::1]:81", "[::1]", "http://[::1]:81"),
    ],
)
def test_parts_of_an_address(url: str, domain: str, host: str, origin: str) -> None:
    """The politeness key, the host and the origin are cuts of the canonical form."""
    assert (domain_of(url), host_of(url), origin_of(url)) == (domain, host, origin)


@pytest.mark.parametrize(
    ("url", "directory", "components"),
    [
        ("https://x.org/", "https://x.org/", 0),
        ("https://x.org/?q=/a/b", "https://x.org/", 0),
        ("https://x.org/a", "https://x.org/", 1),
        ("https://x.org/a/", "https://x.org/a/", 1),
        ("https://x.org/a/b.html?q=1/2", "https://x.org/a/", 2),
        ("https://x.org//a//b/", "https://x.org//a//b/", 2),
    ],
)
def test_C23_directory_and_path_components(url: str, directory: str, components: int) -> None:
    """C23: a component is a non-empty part of the path; the query has none."""
    assert (directory_of(url), path_components(url)) == (directory, components)


@pytest.mark.parametrize(
    ("url", "limit", "expected"),
    [
        ("https://x.org/?a=1&b=2&c=3", None, "https://x.org/?a=1&b=2&c=3"),
        ("https://x.org/?a=1&b=2&c=3", 3, "https://x.org/?a=1&b=2&c=3"),
        ("https://x.org/?a=1&b=2&c=3", 2, "https://x.org/?a=1&b=2"),
        ("https://x.org/?a=1&b=2&c=3", 0, "https://x.org/"),
        ("https://x.org/?&a=1&&b=2", 1, "https://x.org/?a=1"),
        ("https://x.org/?&&", 1, "https://x.org/"),
        ("https://x.org/", 0, "https://x.org/"),
    ],
)
def test_C23_the_parameters_beyond_the_limit_are_stripped(url: str, limit: int | None, expected: str) -> None:
    """C23: none are stripped by default, else the first ones stay."""
    assert trim_params(url, limit) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("docs.example.org", "example.org"),
        ("example.org", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("alice.github.io", "alice.github.io"),
        ("docs.alice.github.io", "alice.github.io"),
        ("github.io", "github.io"),
        ("my.canva.site", "my.canva.site"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),  # *.kawasaki.jp
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),  # !city.kawasaki.jp
        ("a.b.xn--p1ai", "b.xn--p1ai"),
        ("a.b.xn--55qx5d.xn--j6w193g", "b.xn--55qx5d.xn--j6w193g"),  # 公司.香港
        ("shop.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("wiki.docs.internal", "docs.internal"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
    ],
)
def test_registrable_domain(host: str, expected: str) -> None:
    """The public suffix list with its private part decides; addresses and localhost return themselves."""
    assert registrable_domain(host) == expected


def test_the_suffix_list_is_imported_only_when_it_is_asked() -> None:
    """It costs start-up time, and IPs, localhost and host scopes do without it."""
    code = (
        "import sys, afresh.urls.scope as s, afresh.urls.canonical as u;"
        "u.registrable_domain('127.0.0.1'); u.registrable_domain('localhost');"
        "s.Rules(root='https://x.org/').refusal('https://y.org/', 1);"
        "sys.exit('publicsuffixlist' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- laws --------------------------------------------------------------------------------------

MARKS = st.sampled_from([*"/\\?#&=@:.%aE2é💩ß。 \t\n\0\x7f", "\ud800"])
WORDS = st.sampled_from(
    [
        "http:",
        "file:",
        "//",
        ":80",
        ":443",
        "..",
        "x.org",
        "bücher.de",
        "xn--",
        "[::1]",
        "0x7f.1",
        "utm_source",
        ";jsessionid=",
        "sid=1234567a",
        "/(S(",
        "))/",
    ]
)
ESCAPES = st.sampled_from(["%2e", "%2E", "%7e", "%25", "%32", "%65", "%41", "%c3%a9"])
PIECES = MARKS | WORDS | ESCAPES | st.text(max_size=3)
ADDRESSES = st.builds(
    lambda start, pieces: start + "".join(pieces),
    st.sampled_from(["", "http://", "https://x.org", "https://x.org/", "https://x.org/?"]),
    st.lists(PIECES, max_size=12),
)
CANONICAL = ADDRESSES.map(canonical).filter(lambda url: url is not None)
LAWS = examples(400)


@LAWS
@given(ADDRESSES)
@example("https://x.org/%%37e")
@example("https://x.org/%%32%65./a")
@example("https://x.org/?utm_source=1?&#")
@example("https://x.org/?utm_source=%&a=%7e")
@example("https://x.org/?utm_source=%&utm%5fx=1")
@example("https://x.org/%2e;jsessionid=%")
@example("https://x.org/a/..;jsessionid=1/;jsession;jsessionid=1id=2/b")
def test_canonical_is_idempotent(raw_url: str) -> None:
    """Law: the canonical form of a canonical address is itself, and it is short, plain and anonymous."""
    url = canonical(raw_url)
    if url is not None:
        assert canonical(url) == url
        assert canonical("", url) == url
        assert url.isascii()
        assert url.isprintable()
        assert len(url) <= MAX_LENGTH
        assert "#" not in url
        assert "@" not in domain_of(url)


@LAWS
@given(ADDRESSES, ADDRESSES | st.text())
def test_a_join_never_raises(raw_url: str, base: str) -> None:
    """Law: whatever a page holds as link and base, the answer is an address or None."""
    url = canonical(raw_url, base)
    assert url is None or url.startswith(("http://", "https://"))


@LAWS
@given(CANONICAL, st.integers(0, 5) | st.none())
def test_trimming_never_lengthens_and_stays_canonical(url: str, limit: int | None) -> None:
    """Law of C23: what is trimmed is no longer, is canonical, and is not trimmed again."""
    trimmed = trim_params(url, limit)
    assert len(trimmed) <= len(url)
    assert canonical(trimmed) == trimmed
    assert trim_params(trimmed, limit) == trimmed
    assert limit is None or sum(map(bool, trimmed.partition("?")[2].split("&"))) <= limit


@LAWS
@given(CANONICAL)
def test_the_parts_fit_together(url: str) -> None:
    """Law: origin, directory and components are cuts of the address."""
    assert url.startswith(directory_of(url))
    assert directory_of(url).startswith(origin_of(url) + "/")
    assert origin_of(url).endswith("//" + domain_of(url))
    assert domain_of(url).startswith(host_of(url))
    assert 0 <= path_components(url) <= url.count("/") - 2
    assert host_of(url).endswith(registrable_domain(host_of(url)))


@pytest.mark.parametrize(
    "raw_url", ["http://x.org/" + "😀" * 7_900, "http://x.org/?a=" + "é" * 7_900, "/" + "😀" * 1_000]
)
def test_S2_F180_what_cannot_become_short_enough_is_refused_before_it_is_worked_on(raw_url: str) -> None:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        found = canonical(raw_url, "http://x.org/")
    finally:
        sys.setprofile(None)
    assert found is None
    assert calls < 30
