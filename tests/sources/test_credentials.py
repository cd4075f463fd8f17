"""For which repositories the operator lends keys."""

import pytest

from afresh.sources.detect import may_use_keys

GITHUB = ("https://ghe.internal:8443", "https://github.com")


@pytest.mark.parametrize(
    ("place", "kind", "url", "expected"),
    [
        ("github.com", "github", "https://github.com/acme/docs", True),
        ("github.com/acme", "github", "https://github.com/Acme/docs/tree/main", True),
        ("github.com/Acme/Docs", "github", "https://github.com/acme/docs@v1", True),
        ("github.com/acm", "github", "https://github.com/acme/docs", False),
        ("github.com/acme/do", "github", "https://github.com/acme/docs", False),
        ("ghe.internal:8443/acme", "github", "https://ghe.internal:8443/acme/docs", True),
        ("ghe.internal/acme", "github", "https://ghe.internal:8443/acme/docs", False),
        ("git.internal", "git", "git+https://git.internal/a/b.git@main#docs", True),
        ("git.internal/a/b", "git", "git+ssh://git@git.internal/a/b.git", True),
        ("git.internal/a/b", "git", "git+https://git.internal/a/b-private.git", False),
        ("git.internal/a", "git", "git+https://git.internal/A/b.git", False),
        ("git.internal/a", "git", "git+https://git.internal:444/a/b.git", False),
        ("git.internal:444/a", "git", "git+https://git.internal:444/a/b.git", True),
        ("git.internal/a", "git", "git+https://git.internal/a/../c/b.git", False),
        ("git.internal/a", "git", "git+https://git.internal/a%2F..%2Fc/b.git", False),
        ("git.internal", "git", "git+https://git.internal.evil.org/a/b.git", False),
        ("git.internal", "git", "git+https://evil.org/git.internal/b.git", False),
        ("git.internal", "git", "git+https://git.internal@evil.org/b.git", False),
        ("git.internal", "web", "https://git.internal/a", False),
    ],
)
def test_S3_a_place_covers_itself_and_what_is_below(place: str, kind: str, url: str, expected: bool) -> None:
    assert may_use_keys(kind, url, [place], GITHUB) is expected
    assert may_use_keys(kind, url, [], GITHUB) is False
