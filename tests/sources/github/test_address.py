"""What people type for a repository, and the addresses of its pages."""

import hashlib
import json
import subprocess

import pytest

from afresh.sources.git.address import blob_id
from afresh.sources.github.address import (
    GithubAddress,
    blob_start,
    blob_url,
    github_address,
    is_ref,
    odd_path,
    odd_wiki_page,
)
from afresh.sources.github.api import (
    LINKS,
    MODULES,
    ODD,
    GithubState,
    UnexpectedAnswer,
    read_facts,
    read_mark,
    read_tree,
)
from afresh.urls.canonical import canonical

WEB = "https://github.com"
CORP = "https://git.corp.example/hub"
ID, OTHER = "a" * 40, "b" * 40


def read(text: str) -> GithubAddress | None:
    return github_address(text, (WEB, CORP))


@pytest.mark.parametrize(
    ("typed", "url", "readings"),
    [
        ("octo/docs", f"{WEB}/octo/docs", [("HEAD", "")]),
        (" octo/docs.js ", f"{WEB}/octo/docs.js", [("HEAD", "")]),
        ("github.com/octo/docs", f"{WEB}/octo/docs", [("HEAD", "")]),
        ("https://www.github.com/octo/docs/", f"{WEB}/octo/docs", [("HEAD", "")]),
        ("HTTPS://GitHub.com/octo/docs.git", f"{WEB}/octo/docs", [("HEAD", "")]),
        ("https://github.com/octo/docs?tab=readme#top", f"{WEB}/octo/docs", [("HEAD", "")]),
        ("octo/docs@v1.2", f"{WEB}/octo/docs/tree/v1.2", [("v1.2", "")]),
        ("https://github.com/octo/docs/tree/main", f"{WEB}/octo/docs/tree/main", [("main", "")]),
        ("octo/docs@feature/x", f"{WEB}/octo/docs@feature/x", [("feature/x", "")]),
        (
            "https://github.com/octo/docs/tree/a/b/c",
            f"{WEB}/octo/docs/tree/a/b/c",
            [("a", "b/c"), ("a/b", "c"), ("a/b/c", "")],
        ),
        (
            "https://github.com/octo/docs/blob/main/a%20b/%C3%BC.md",
            f"{WEB}/octo/docs/tree/main/a%20b/%C3%BC.md",
            [("main", "a b/ü.md")],
        ),
        (f"{CORP}/octo/docs", f"{CORP}/octo/docs", [("HEAD", "")]),
        ("https://github.com/octo/docs/wiki/Some-Page", f"{WEB}/octo/docs/wiki", [("HEAD", "")]),
    ],
)
def test_what_is_typed(typed: str, url: str, readings: list[tuple[str, str]]) -> None:
    address = read(typed)
    assert address is not None
    assert (address.url, address.readings()) == (url, readings)
    assert read(address.url) == address, "what stands for the source is read as the same"
    assert canonical(url) == url


@pytest.mark.parametrize(
    "typed",
    [
        "docs",
        "./docs/guide",
        "docs/guide/part",
        "../up",
        "octo/..",
        "octo/docs@",
        "octo/docs@a..b",
        "-x/docs",
        "example.org/docs",
        "localhost/docs",
        "https://example.org/octo/docs",
        "https://github.com.evil.example/octo/docs",
        "https://evil.example/github.com/octo/docs",
        "https://user:pw@github.com/octo/docs",
        "ftp://github.com/octo/docs",
        "https://github.com/octo",
        "https://github.com/features/actions",
        "https://github.com/octo/docs/issues/5",
        "https://github.com/octo/docs/tree/..",
        "git+https://github.com/octo/docs",
        "",
    ],
)
def test_what_is_no_repository(typed: str) -> None:
    assert read(typed) is None


def test_the_wiki_comes_only_with_a_whole_repository() -> None:
    whole, ref, folder, wiki = map(read, ("o/r", "o/r@v1", f"{WEB}/o/r/tree/main/docs", "https://github.com/o/r/wiki"))
    assert whole is not None
    assert ref is not None
    assert folder is not None
    assert wiki is not None
    assert (whole.has_wiki, ref.has_wiki, folder.has_wiki) == (True, False, False)
    assert (whole.wiki_only, wiki.wiki_only, wiki.has_wiki) == (False, True, True)


@pytest.mark.parametrize("path", ["a.md", "a b/ü#?.md", "a;sid=1/(S(x))/b.md", "%2e%2e/x", "a+b&c=d@e/f.md"])
def test_the_page_of_a_file_has_one_canonical_address_of_its_own(path: str) -> None:
    start = blob_start(WEB, "o/r", "feature/x")
    url = blob_url(start, path)
    assert url is not None
    assert canonical(url) == url
    assert url.startswith(f"{WEB}/o/r/blob/feature/x/")
    assert blob_url(start, f"{path}.") != url


def test_a_path_too_long_for_an_address_has_no_page() -> None:
    start = blob_start(WEB, "o/r", "main")
    assert blob_url(start, "ü" * 900) is None
    assert blob_url(start, "a" * 1_990) is None
    assert blob_url(start, "a" * 1_900) is not None


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/./b", "a/", "a\0b", "a/\udcff.md", "x" * 2_000, ".."]
)
def test_F83_paths_that_are_none_are_refused(path: str) -> None:
    assert odd_path(path) is not None


@pytest.mark.parametrize("path", ["a", "a/b.md", "..a/b..", ".github/x", "a\nb", "ü/漢.md", "-x"])
def test_F83_odd_names_that_are_paths_are_taken(path: str) -> None:
    assert odd_path(path) is None


@pytest.mark.parametrize(
    ("url", "ok"),
    [
        ("/wiki", True),
        ("/wiki/Home-Page", True),
        ("/Wiki/Other", True),
        ("/wiki/_new", False),
        ("/wiki/Page/_history", False),
        ("/wiki/Page/_edit", False),
        (f"/wiki/Page/{ID}", False),
        ("/wiki/Page?x=1", False),
        ("/wiki/", False),
        ("/wikis/Page", False),
        ("/issues", False),
    ],
)
def test_pages_of_a_wiki_and_its_tools(url: str, ok: bool) -> None:
    assert (odd_wiki_page(f"{WEB}/o/r{url}", f"{WEB}/o/r/wiki") is None) is ok


def test_refs_are_what_git_takes_for_one() -> None:
    for name in ("main", "feature/x", "v1.2", ID, "a-b_c"):
        assert is_ref(name), name
    for name in ("", "a..b", "-x", "a b", "a:b", "a~1", "x^", "a?", "a*", "a[", "x.lock", "/a", "a/", "a//b", "a/./b"):
        assert not is_ref(name), name


def test_the_id_of_a_content_is_that_of_git() -> None:
    data = b"hello\n"
    assert blob_id(data, ID) == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert blob_id(data, "c" * 64) == hashlib.sha256(b"blob 6\0hello\n").hexdigest()
    by_git = subprocess.run(["git", "hash-object", "--stdin"], input=data, capture_output=True, check=True)
    assert by_git.stdout.decode().strip() == blob_id(data, ID)


def entry(path: object, mode: str = "100644", kind: str = "blob", sha: object = ID, **more: object) -> object:
    return {"path": path, "mode": mode, "type": kind, "sha": sha, "size": 3, **more}


def test_a_tree_is_read_with_what_is_left_out_counted() -> None:
    answer = {
        "sha": OTHER,
        "tree": [
            entry("a.md"),
            entry("run.sh", "100755"),
            entry("docs", "040000", "tree"),
            entry("link", "120000"),
            entry("lib", "160000", "commit"),
            entry("../up"),
            entry(7),
            entry("x", "777777"),
        ],
    }
    tree = read_tree(answer, "sub/")
    assert [(file.path, file.etag, file.size) for file in tree.files] == [
        ("sub/a.md", f'"{ID}"', 3),
        ("sub/run.sh", f'"{ID}"', 3),
    ]
    assert (tree.id, tree.folders, tree.truncated) == (OTHER, (("sub/docs", ID),), False)
    assert tree.left_out == {LINKS: 1, MODULES: 1, ODD: 3}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"sha": ID, "tree": {}},
        {"sha": ID, "tree": ["x"]},
        {"sha": "HEAD", "tree": []},
        {"sha": ID, "tree": [entry("a", sha="../../x")]},
        {"sha": ID, "tree": [entry("a", sha=None)]},
        {"sha": ID, "tree": [entry("d", "040000", "tree", sha=f"{ID}?x")]},
    ],
)
def test_an_answer_that_is_no_tree_is_an_error(answer: object) -> None:
    with pytest.raises(UnexpectedAnswer):
        read_tree(answer)


@pytest.mark.parametrize("size", [-1, True, "3", None, 1.5])
def test_a_size_that_is_none_is_unknown(size: object) -> None:
    assert read_tree({"sha": ID, "tree": [entry("a", size=size)]}).files[0].size is None


def test_facts_are_checked_and_doubt_means_private() -> None:
    good = {"full_name": "o/r", "default_branch": "main", "has_wiki": True, "private": False}
    facts = read_facts(good)
    assert (facts.name, facts.branch, facts.wiki, facts.private) == ("o/r", "main", True, False)
    assert read_facts({**good, "has_wiki": 1, "private": None}).wiki is False
    assert read_facts({**good, "private": None}).private is True
    for wrong in (
        {"full_name": "o/r/../x"},
        {"full_name": "o/.."},
        {"full_name": 3},
        {"default_branch": "a b"},
        {"default_branch": None},
    ):
        with pytest.raises(UnexpectedAnswer):
            read_facts({**good, **wrong})


def test_a_mark_is_read_only_under_the_rules_it_was_made_under() -> None:
    state = GithubState(
        etag='W/"x"', name="o/r", url_name="o/r", ref="HEAD", path="", branch="main", commit=ID,
        private=False, wiki=True, rules="r1",
    )  # fmt: skip
    assert read_mark(state.as_text(), "r1") == state
    assert read_mark(state.as_text(), "r2") is None
    for text in (None, "", "{", "[]", "null", '{"etag": "x"}', state.as_text().replace('"o/r"', "5")):
        assert read_mark(text, "r1") is None
    assert read_mark(json.dumps({**json.loads(state.as_text()), "more": 1}), "r1") is None
    assert read_mark(json.dumps({**json.loads(state.as_text()), "etag": ""}), "r1") is None
