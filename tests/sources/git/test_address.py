"""Addresses of git repositories: what is typed, its one form, the pages that are shown, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import SourceError, UsageError
from afresh.sources.git.address import RefKind, at_path, files_of, is_git, pages_of, parse_git, plain_page, state_of
from afresh.urls.canonical import canonical

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("git+https://Host.ORG/team/repo.git", "git+https://host.org/team/repo.git"),
        (" git+https://host.org:443/repo/@v1.2#docs/en/ ", "git+https://host.org/repo@v1.2#docs/en"),
        ("git+https://github.com/o/r", "git+https://github.com/o/r.git"),
        ("git+https://gitlab.com/a/b/c@feature/x", "git+https://gitlab.com/a/b/c.git@feature/x"),
        ("git+https://host.org/r@HEAD", "git+https://host.org/r"),
        (f"git+https://host.org/r@{COMMIT.upper()}", f"git+https://host.org/r@{COMMIT}"),
        ("git+https://host.org/r@@scope/pkg@1.0", "git+https://host.org/r@@scope/pkg@1.0"),
        ("git+https://host.org/a%40b.git@x%23y", "git+https://host.org/a%40b.git@x%23y"),
        ("git+https://bücher.example/r", "git+https://xn--bcher-kva.example/r"),
        ("git+http://127.0.0.1:8080/r.git", "git+http://127.0.0.1:8080/r.git"),
        ("git+ssh://git@host.org:22/r.git", "git+ssh://git@host.org/r.git"),
        ("ssh://git@ssh.github.com:443/o/r.git@main", "git+ssh://git@ssh.github.com:443/o/r.git@main"),
        ("git@github.com:o/r", "git+ssh://git@github.com/o/r.git"),
        ("git@host.org:o/r.git@main#docs", "git+ssh://git@host.org/o/r.git@main#docs"),
        ("ana@host.org:work/r.git", "git+ssh://ana@host.org/~/work/r.git"),
        ("ana@host.org:/srv/r.git", "git+ssh://ana@host.org/srv/r.git"),
        ("git+ssh://git@[::1]:2222/r.git", "git+ssh://git@[::1]:2222/r.git"),
        ("git+file:///srv/my repo.git#a b", "git+file:///srv/my%20repo.git#a%20b"),
        ("git+file://localhost/srv/r.git", "git+file:///srv/r.git"),
    ],
)
def test_each_repository_has_one_address(typed: str, expected: str) -> None:
    assert is_git(typed)
    assert parse_git(typed).url == expected
    assert parse_git(expected) == parse_git(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "git+https://ana:hunter2@host.org/r.git",
        "git+https://hunter2@host.org/r.git",
        "git+ssh://git:hunter2@host.org/r.git",
        "ssh://ana%3Ahunter2@host.org/r.git",
        "git+http://:hunter2@host.org/r.git",
    ],
)
def test_P19_credentials_in_an_address_are_refused_and_not_repeated(typed: str) -> None:
    with pytest.raises(UsageError, match="credential_helper") as refused:
        parse_git(typed)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "typed",
    [
        "git+ext::sh -c id",
        "git+ext://x/y",
        "git+ftp://host.org/r",
        "git+https://-oProxyCommand=id/r",
        "git+ssh://-oProxyCommand=id@host.org/r",
        "ssh://-oProxyCommand=id/r",
        "git+https://host.org/r@-upload-pack=id",
        "git+https://host.org/r@--output=x",
        "git+https://host.org/r@a..b",
        "git+https://host.org/r@a b",
        "git+https://host.org/r@a~1",
        "git+https://host.org/r@a:b",
        "git+https://host.org/r@*",
        "git+https://host.org/r@x.lock",
        "git+https://host.org/r@%00",
        "git+https://host.org/r@" + "x" * 300,
        "git+https://host.org/r@",
        "git+https://host.org/r?x=1",
        "git+https://host.org/a/../b",
        "git+https://host.org/%2e%2e/b",
        "git+https://host.org/r#../x",
        "git+https://host.org/r#.git/config",
        "git+https://host.org/",
        "git+https:///r",
        "git+https://host.org:99999/r",
        "git+file://other/r.git",
        "git+https://host.org/r\n@x",
    ],
)
def test_what_could_steer_git_or_means_nothing_is_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        parse_git(typed)


@pytest.mark.parametrize("typed", ["https://docs.example.org/", "owner/repo", "./docs", "ana@example.org", "x.git"])
def test_other_targets_are_no_git_addresses(typed: str) -> None:
    assert not is_git(typed)


@pytest.mark.parametrize(
    ("address", "kind", "page"),
    [
        ("git+https://github.com/o/r@main", RefKind.BRANCH, "https://github.com/o/r/blob/main/a%20b/%C3%A9.md"),
        ("git@github.com:o/r.git", RefKind.HEAD, "https://github.com/o/r/blob/HEAD/a%20b/%C3%A9.md"),
        ("git+https://gitlab.com/g/s/r@v1", RefKind.TAG, "https://gitlab.com/g/s/r/-/blob/v1/a%20b/%C3%A9.md"),
        (
            "git+https://gitlab.corp.example:8443/g/r@x/y",
            RefKind.BRANCH,
            "https://gitlab.corp.example:8443/g/r/-/blob/x/y/a%20b/%C3%A9.md",
        ),
        (
            "git+https://codeberg.org/o/r@main",
            RefKind.BRANCH,
            "https://codeberg.org/o/r/src/branch/main/a%20b/%C3%A9.md",
        ),
        ("git+https://codeberg.org/o/r@v1", RefKind.TAG, "https://codeberg.org/o/r/src/tag/v1/a%20b/%C3%A9.md"),
        ("git+https://codeberg.org/o/r", RefKind.HEAD, "https://codeberg.org/o/r/src/branch/trunk/a%20b/%C3%A9.md"),
        ("git+https://bitbucket.org/o/r@main", RefKind.BRANCH, "https://bitbucket.org/o/r/src/main/a%20b/%C3%A9.md"),
        ("git+https://host.org/r.git@x/y", RefKind.BRANCH, "git+https://host.org/r.git@x%2Fy/a%20b/%C3%A9.md"),
        ("git+file:///srv/r.git", RefKind.HEAD, "git+file:///srv/r.git@HEAD/a%20b/%C3%A9.md"),
        (
            "git+https://github.com/o/r.wiki.git",
            RefKind.HEAD,
            "git+https://github.com/o/r.wiki.git@HEAD/a%20b/%C3%A9.md",
        ),
        ("git+https://github.com/o/r@refs/tags/v1", RefKind.TAG, "https://github.com/o/r/blob/v1/a%20b/%C3%A9.md"),
    ],
)
def test_pages_are_what_people_can_open(address: str, kind: RefKind, page: str) -> None:
    path = "a b/é.md".encode()
    pages = pages_of(parse_git(address), kind, "trunk")
    assert pages.url(path) == page
    assert pages.path(page) == path


NAMES = st.binary(min_size=1, max_size=40).filter(
    lambda name: not {b"", b".", b".."} & set(name.split(b"/")) and b"\0" not in name
)


@given(NAMES)
def test_F83_whatever_bytes_a_name_holds_its_address_leads_back(name: bytes) -> None:
    for address in ("git+https://github.com/o/r@main", "git+https://host.org/r.git@a/b", "git+file:///r%40x.git"):
        pages = pages_of(parse_git(address), RefKind.BRANCH)
        url = pages.url(name)
        assert url is not None
        assert url.isascii()
        assert url.isprintable()
        assert pages.path(url) == name
        assert (canonical(url) if url.startswith("https") else plain_page(url)) == url


@pytest.mark.parametrize(
    "name", [b"a;jsessionid=1.md", b"(S(x))/a.md", b"100%.md", b"a?b#c.md", b"%2e%2e/x", b"\xff\xfe.md"]
)
def test_F83_names_that_look_like_parts_of_an_address_stay_whole(name: bytes) -> None:
    pages = pages_of(parse_git("git+https://github.com/o/r@main"), RefKind.BRANCH)
    url = pages.url(name) or ""
    assert canonical(url) == url
    assert pages.path(url) == name


def test_a_name_longer_than_any_address_has_none() -> None:
    assert pages_of(parse_git("git+https://github.com/o/r"), RefKind.HEAD).url(b"x" * 2_000) is None
    assert pages_of(parse_git("git+file:///r.git"), RefKind.HEAD).url(b"\xff" * 700) is None


@given(st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name and name.strip(b"/.")))
def test_a_path_of_this_machine_round_trips(name: bytes) -> None:
    path = b"/srv/x" + name.replace(b"/", b"_") + b".git"
    address = at_path(path, "main")
    assert parse_git(address.url) == address
    assert address.remote.isascii()


# ---- what git says --------------------------------------------------------------------------------------

A, B, C = "a" * 40, "b" * 40, "c" * 40


def test_a_branch_goes_before_a_tag_and_a_tag_leads_to_its_commit() -> None:
    both = f"{A}\trefs/heads/v1\n{B}\trefs/tags/v1\n{C}\trefs/tags/v1^{{}}\n".encode()
    assert (state_of(both, "v1").commit, state_of(both, "v1").kind) == (A, RefKind.BRANCH)
    assert state_of(both, "refs/tags/v1").commit == C
    assert (state_of(both.split(b"\n", 1)[1], "v1").commit, state_of(both, "refs/tags/v1").kind) == (C, RefKind.TAG)


def test_the_tail_of_another_name_is_not_taken_for_it() -> None:
    with pytest.raises(SourceError, match="no branch or tag main"):
        state_of(f"{A}\trefs/heads/old/refs/heads/main\n".encode(), "main")


def test_a_short_commit_id_is_named_in_the_error() -> None:
    with pytest.raises(SourceError, match="full id"):
        state_of(b"", "0123abc")


def test_only_plain_files_of_a_tree_are_read() -> None:
    listing = b"\0".join(
        b"%s %s %s\t%s" % row
        for row in [
            (b"100644", b"blob", A.encode(), b"a\tb.md"),
            (b"100755", b"blob", B.encode(), b"run.sh"),
            (b"120000", b"blob", A.encode(), b"link.md"),
            (b"160000", b"commit", A.encode(), b"sub"),
            (b"100644", b"blob", A.encode(), b"x/../y.md"),
        ]
    )
    assert [(each.path, each.unread) for each in files_of(listing + b"\0")] == [
        (b"a\tb.md", None),
        (b"run.sh", None),
        (b"link.md", "symbolic links"),
        (b"sub", "submodules"),
        (b"x/../y.md", "odd names"),
    ]
