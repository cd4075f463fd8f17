"""GitHub as a source: what is listed, what is asked, and what a look at a page shows."""

import json
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.git_objects import Submodule, Symlink
from tests.fakes.github_server import GithubServer
from tests.sources.github.github import Reader, opening

from afresh.app import utc_now
from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Gone, Moved, NotModified, Refused
from afresh.model.labels import name_for
from afresh.sources.detect import recognise
from afresh.sources.github.api import find_token
from afresh.sources.github.fetcher import GithubLister
from afresh.testing.script import Answer

FILES = {"README.md": b"# Docs\n", "docs/a.md": b"# A\n\nText.\n", "docs/deep/b.md": b"# B\n"}
NO_RAW = Answer(status=404, body=b"404: Not Found")
TOKEN = "ghp_0123456789"


@pytest.fixture
def server() -> Iterator[GithubServer]:
    with GithubServer() as server:
        server.push(FILES)
        yield server


# ---- listing ---------------------------------------------------------------------------------


async def test_A19_files_are_pages_that_people_can_open(server: GithubServer) -> None:
    server.push({**FILES, "logo.png": b"\x89PNG", "to": Symlink("README.md"), "lib": Submodule()})
    async with opening(server) as opened:
        listed = await opened.list()
        assert list(listed) == [server.page(path) for path in FILES]
        assert opened.lister.dropped == {"of a kind that is not read": 1, "symbolic links": 1, "submodules": 1}
        for path, data in FILES.items():
            seen = await opened.look(server.page(path))
            assert isinstance(seen, Body)
            assert (seen.url, seen.data) == (server.page(path), data)
            assert seen.validators == listed[seen.url].validators
            assert not opened.lister.walks(seen.url)
        assert not opened.lister.unchanged
    assert server.kinds == {"tree": 1, "repo": 1, "raw": 3, "robots": 1, "wiki": 1}


async def test_A19_an_unchanged_repository_costs_one_request_that_does_not_count(server: GithubServer) -> None:
    async with opening(server) as opened:
        listed = await opened.list()
        mark = opened.lister.mark
    server.forget()
    used = server.used
    async with opening(server, mark=mark) as opened:
        assert await opened.list() == {}
        assert opened.lister.unchanged
        assert opened.lister.mark == mark
        for url, page in listed.items():
            assert page.validators is not None
            assert isinstance(await opened.look(url, page.validators.etag), NotModified)
    assert server.kinds == {"tree": 1}
    assert (server.requests[0].status, server.used) == (304, used)


async def test_A19_only_changed_files_are_fetched(server: GithubServer) -> None:
    reader = Reader(server)
    await reader.run()
    server.forget()
    server.push({**FILES, "docs/a.md": b"# A\n\nOther.\n", "docs/new.md": b"# New\n"} | {"README.md": b"# Docs\n"})
    assert await reader.run() == {server.page("docs/a.md"): "changed", server.page("docs/new.md"): "new"}
    assert server.kinds == {"tree": 1, "repo": 1, "raw": 2}
    server.push({"README.md": FILES["README.md"]})
    assert set((await reader.run()).values()) == {"gone"}
    assert list(reader.pages) == [server.page("README.md")]


async def test_a_page_that_has_to_be_read_again_is_read_though_nothing_changed(server: GithubServer) -> None:
    async with opening(server) as opened:
        await opened.list()
        mark = opened.lister.mark
    async with opening(server, mark=mark) as opened:
        await opened.list()
        seen = await opened.look(server.page("README.md"))
        assert isinstance(seen, Body)
        assert isinstance(await opened.look(server.page("nothing.md")), Gone)


async def test_what_is_pushed_while_a_run_goes_on_waits_for_the_next_one(server: GithubServer) -> None:
    async with opening(server) as opened:
        await opened.list()
        mark = opened.lister.mark
    async with opening(server, mark=mark) as opened:
        await opened.list()
        server.push({**FILES, "README.md": b"# Later\n", "docs/a.md": b"# Later as well\n"})
        seen = await opened.look(server.page("README.md"))
        assert isinstance(seen, Body)
        assert seen.data == FILES["README.md"], "of the commit that the run is about"
        assert opened.lister.mark == mark
        assert opened.lister.unchanged
    async with opening(server, mark=mark) as opened:
        await opened.list()
        assert not opened.lister.unchanged


async def test_pages_can_be_looked_at_without_a_listing(server: GithubServer) -> None:
    async with opening(server) as opened:
        listed = await opened.list()
        mark = opened.lister.mark
    server.push({**FILES, "README.md": b"# Other\n"})
    async with opening(server, mark=mark) as opened:
        tags = {url: page.validators.etag for url, page in listed.items() if page.validators}
        seen = {url: await opened.look(url, tag) for url, tag in tags.items()}
    assert [type(each) for each in seen.values()] == [Body, NotModified, NotModified]


async def test_other_rules_make_the_mark_void(server: GithubServer) -> None:
    async with opening(server, rules="a") as opened:
        await opened.list()
        mark = opened.lister.mark
    async with opening(server, mark=mark, rules="b") as opened:
        assert len(await opened.list()) == 3
    async with opening(server, mark=mark, rules="a", wiki=False) as opened:
        assert len(await opened.list()) == 3
        assert not opened.lister.unchanged


@pytest.mark.parametrize("weak", [True, False])
async def test_weak_and_strong_etags(weak: bool) -> None:
    with GithubServer(weak=weak) as server:
        server.push(FILES)
        reader = Reader(server)
        await reader.run()
        assert (reader.mark or "").count("W/") == weak
        server.forget()
        assert await reader.run() == {}
        assert server.kinds == {"tree": 1}


async def test_a_branch_with_slashes_and_a_folder_are_distinguished_by_requests(server: GithubServer) -> None:
    server.push({"docs/x.md": b"# X\n", "other.md": b"# O\n"}, "feature/new/thing")
    base = f"{server.web_url}/octo/docs"
    async with opening(server, f"{base}/tree/feature/new/thing/docs") as opened:
        assert list(await opened.list()) == [f"{base}/blob/feature/new/thing/docs/x.md"]
        seen = await opened.look(f"{base}/blob/feature/new/thing/docs/x.md")
        assert isinstance(seen, Body)
        mark = opened.lister.mark
    assert server.kinds["tree"] == 3
    server.forget()
    async with opening(server, f"{base}/tree/feature/new/thing/docs", mark=mark) as opened:
        await opened.list()
        assert opened.lister.unchanged
    assert server.kinds == {"tree": 1}
    async with opening(server, "octo/docs@feature/new/thing") as opened:
        assert len(await opened.list()) == 2
    async with opening(server, f"{base}/blob/main/docs/a.md") as opened:
        assert list(await opened.list()) == [server.page("docs/a.md")]


async def test_a_short_ref_without_the_path_is_not_the_target(server: GithubServer) -> None:
    server.push({"x/y.md": b"# Y\n"}, "release")  # as a tag may be called beside a branch release/2
    server.push({"docs/y.md": b"# Y\n"}, "release/2")
    base = f"{server.web_url}/octo/docs"
    async with opening(server, f"{base}/tree/release/2/docs") as opened:
        assert list(await opened.list()) == [f"{base}/blob/release/2/docs/y.md"]
    async with opening(server, f"{base}/tree/release/nothing") as opened:
        with pytest.raises(SourceError, match="has no file or folder nothing on release"):
            await opened.list()


async def test_a_commit_is_a_ref_as_well(server: GithubServer) -> None:
    first = server.repository.refs["main"]
    server.push({"only.md": b"# Only\n"})
    async with opening(server, f"octo/docs@{first}") as opened:
        assert list(await opened.list()) == [server.page(path, first) for path in FILES]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("octo/docs@nope", "no branch, tag or commit nope"),
        ("octo/nothing", "octo/nothing does not exist on"),
        ("{web}/octo/docs/tree/main/no/such", "has no file or folder no/such"),
    ],
)
async def test_what_is_not_there_is_an_error_and_no_empty_listing(server: GithubServer, target: str, why: str) -> None:
    async with opening(server, target.format(web=server.web_url)) as opened:
        with pytest.raises(SourceError, match=why):
            await opened.list()
        assert opened.lister.mark is None


async def test_an_empty_repository_says_so() -> None:
    with GithubServer() as server:
        async with opening(server) as opened:
            with pytest.raises(SourceError, match="the repository is empty"):
                await opened.list()


@pytest.mark.parametrize("most", [1, 3, 4])
async def test_a_tree_that_is_cut_is_listed_folder_by_folder(server: GithubServer, most: int) -> None:
    server.push({"a.md": b"# a\n", "d/b.md": b"# b\n", "d/e/c.md": b"# c\n", "d/e/f/g.md": b"# g\n"})
    server.most_entries = most
    async with opening(server) as opened:
        listed = await opened.list()
        if most == 1:  # not even one folder fits into an answer
            assert len(opened.lister.listing_errors) == 1
            assert "more files than can be listed" in opened.lister.listing_errors[0]
            assert opened.lister.mark is None
        else:
            pages = {server.page(path) for path in ("a.md", "d/b.md", "d/e/c.md", "d/e/f/g.md")}
            assert (set(listed), opened.lister.listing_errors) == (pages, [])
            mark = opened.lister.mark
    if most > 1:
        server.forget()
        async with opening(server, mark=mark) as opened:
            await opened.list()
            assert opened.lister.unchanged
        assert server.kinds == {"tree": 1}


async def test_only_folders_on_the_way_are_opened_and_caps_are_reported(server: GithubServer) -> None:
    server.push({**{f"other{n}/x/y.md": b"# x\n" for n in range(30)}, "docs/in/a.md": b"# a\n"})
    server.most_entries = 40
    target = f"{server.web_url}/octo/docs/tree/main/docs/in"
    async with opening(server, target) as opened:
        assert list(await opened.list()) == [server.page("docs/in/a.md")]
    assert server.kinds["tree"] == 3  # the cut one, the root, docs
    async with opening(server, most_files=5) as opened:
        await opened.list()
        assert opened.lister.listing_errors


# ---- renames ---------------------------------------------------------------------------------


async def test_a_renamed_default_branch_moves_the_pages(server: GithubServer) -> None:
    reader = Reader(server)
    await reader.run()
    server.rename_branch("main", "trunk")
    assert await reader.run() == {}, "the same commit: GitHub leads old addresses to the new ones"
    server.push({path: data for path, data in FILES.items() if path != "docs/a.md"})
    reported = await reader.run()
    assert reported == {
        server.page("README.md"): "new",
        server.page("docs/deep/b.md"): "new",
        server.page("README.md", "main"): "moved",
        server.page("docs/deep/b.md", "main"): "moved",
        server.page("docs/a.md", "main"): "gone",
    }
    assert set(reader.pages) == {server.page("README.md"), server.page("docs/deep/b.md")}


async def test_a_renamed_repository_keeps_the_addresses_of_its_files(server: GithubServer) -> None:
    reader = Reader(server, "octo/docs")
    await reader.run()
    pages = set(reader.pages)
    server.rename("octo/handbook")
    assert await reader.run() == {}
    server.forget()
    assert await reader.run() == {}
    assert server.kinds == {"tree": 1}, "asked by its new name from now on"
    server.push({**FILES, "docs/a.md": b"# Again\n"})
    reported = await reader.run()
    assert set(reported.values()) == {"changed"}
    assert set(reader.pages) == pages


async def test_a_redirect_out_of_the_api_is_not_followed(server: GithubServer) -> None:
    with GithubServer() as other:
        other.push(FILES)
        server.script.append(Answer(status=301, headers={"Location": f"{other.api_url}/repos/octo/docs"}))
        server.token = TOKEN
        async with opening(server, token=TOKEN) as opened:
            with pytest.raises(SourceError, match="301"):
                await opened.list()
        assert len(other.requests) == 0


@pytest.mark.parametrize("way", ["/../login", "/%2e%2E/login", "/..%2flogin", "/..\\login", "/x/../../login"])
async def test_a_redirect_that_climbs_out_of_the_api_is_not_followed(server: GithubServer, way: str) -> None:
    server.script.append(Answer(status=301, headers={"Location": f"{server.api_url}{way}"}))
    async with opening(server) as opened:
        with pytest.raises(SourceError, match="301"):
            await opened.list()
    assert len(server.requests) == 1


async def test_a_name_in_other_letters_is_the_same_repository(server: GithubServer) -> None:
    async with opening(server, "Octo/DOCS") as opened:
        assert list(await opened.list()) == [server.page(path) for path in FILES]


# ---- contents --------------------------------------------------------------------------------


async def test_a_raw_file_that_lags_is_never_taken_for_the_new_one(server: GithubServer) -> None:
    new = {**FILES, "README.md": b"# New\n"}
    commit = server.push(new)
    server.raw_lags = True
    server.bend = lambda kind, body: {**body, "sha": "e" * 40} if kind == "tree" else body
    async with opening(server) as opened:
        await opened.list()
        seen = await opened.look(server.page("README.md"))
        assert isinstance(seen, Body)
        assert seen.data == b"# New\n"
        again = await opened.look(server.page("docs/a.md"))
        assert isinstance(again, Body)
    raw = [each.path for each in server.requests if each.path.startswith("/raw/")]
    assert (len(raw), server.kinds["blob"]) == (3, 1)  # the unknown commit is asked for once
    assert commit not in str(raw)


async def test_without_raw_files_blobs_are_read(server: GithubServer) -> None:
    server.raw_answer = NO_RAW
    async with opening(server) as opened:
        await opened.list()
        for path, data in FILES.items():
            seen = await opened.look(server.page(path))
            assert isinstance(seen, Body)
            assert seen.data == data
    assert (server.kinds["raw"], server.kinds["blob"]) == (2, 3)


@pytest.mark.parametrize("status", [302, 401, 403])
async def test_a_raw_host_that_wants_people_to_sign_in_is_left_alone(server: GithubServer, status: int) -> None:
    server.raw_answer = Answer(status=status, headers={"Location": "/login"})
    async with opening(server) as opened:
        await opened.list()
        assert all([isinstance(await opened.look(server.page(path)), Body) for path in FILES])
    assert (server.kinds["raw"], server.kinds["blob"]) == (2, 3)


async def test_F75_a_raw_host_that_asks_to_wait_is_waited_for(server: GithubServer) -> None:
    server.raw_answer = Answer(status=429, headers={"Retry-After": "11"})
    async with opening(server) as opened:
        await opened.list()
        seen = await opened.look(server.page("README.md"))
    assert isinstance(seen, Failed)
    assert (seen.retry_after, server.kinds["blob"]) == (11, 0)


async def test_content_that_does_not_fit_its_id_is_a_failure(server: GithubServer) -> None:
    server.raw_answer = NO_RAW
    async with opening(server) as opened:
        await opened.list()
        blobs = server.repository.objects.blobs
        blobs.update(dict.fromkeys(blobs, b"# Forged\n"))
        seen = await opened.look(server.page("README.md"))
    assert isinstance(seen, Failed)
    assert "matches the file's id" in seen.reason


async def test_F57_F83_a_file_over_the_cap_is_left_out_and_a_pointer_refused(server: GithubServer) -> None:
    server.push({"big.md": b"x" * 5_000, "lfs.md": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n"})
    async with opening(server, max_body_bytes=4_000) as opened:
        await opened.list()
        big, pointer = [await opened.look(server.page(path)) for path in ("big.md", "lfs.md")]
        assert opened.lister.dropped == {"larger than files.max_file_bytes": 1}
    assert isinstance(big, Gone)
    assert isinstance(pointer, Refused)
    assert "LFS" in pointer.reason


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"sha": "x", "tree": []},
        {"sha": "a" * 40, "tree": [{"path": "a.md", "mode": "100644", "type": "blob", "sha": "../../user"}]},
        {"sha": "a" * 40, "tree": 5},
    ],
)
async def test_hostile_answers_of_the_api_are_errors(server: GithubServer, body: Any) -> None:
    server.bend = lambda kind, _: body
    async with opening(server) as opened:
        with pytest.raises(SourceError, match="cannot be used"):
            await opened.list()


async def test_F83_hostile_paths_are_left_out_and_counted(server: GithubServer) -> None:
    def bend(kind: str, body: Any) -> Any:
        odd = ["../../etc/passwd.md", "/etc/x.md", "a//b.md", "a\0.md", "", "x/\udcff.md", 5]
        entries = [{"path": path, "mode": "100644", "type": "blob", "sha": "a" * 40} for path in odd]
        return {**body, "tree": body["tree"] + entries} if kind == "tree" else body

    server.bend = bend
    async with opening(server) as opened:
        assert list(await opened.list()) == [server.page(path) for path in FILES]
        assert opened.lister.dropped == {"with a name that cannot be a path": 7}


async def test_F83_odd_names_are_asked_for_as_they_are(server: GithubServer) -> None:
    names = ["a b.md", "ü/漢.md", "50%25.md", "q?x=1.md", "#1.md", "a+b&c.md", "(S(x))/;sid=1.md", "n\nl.md"]
    server.push({name: name.encode() for name in names})
    async with opening(server) as opened:
        listed = await opened.list()
        bodies = [await opened.look(url) for url in listed]
    assert {each.data.decode() for each in bodies if isinstance(each, Body)} == set(names)
    assert server.kinds["blob"] == 0


# ---- tokens ----------------------------------------------------------------------------------


async def test_a_private_repository_needs_the_token_which_goes_to_the_api_alone() -> None:
    with GithubServer(private=True, token=TOKEN) as server:
        server.push(FILES)
        async with opening(server) as opened:
            with pytest.raises(SourceError, match=r"is private and needs a token \(github.token"):
                await opened.list()
        async with opening(server, token="wrong") as opened:
            with pytest.raises(SourceError, match="the token is not valid"):
                await opened.list()
        server.forget()
        async with opening(server, token=TOKEN) as opened:
            assert len(await opened.list()) == 3
            seen = await opened.look(server.page("README.md"))
            assert isinstance(seen, Body)
            mark = opened.lister.mark or ""
        assert server.kinds == {"tree": 1, "repo": 1, "blob": 1}
        assert TOKEN not in mark


async def test_P19_the_token_is_sent_only_to_the_api(server: GithubServer) -> None:
    server.token = TOKEN
    server.set_wiki({"Home": "<p>Home</p>"})
    async with opening(server, token=TOKEN) as opened:
        for url in await opened.list():
            await opened.look(url)
        assert TOKEN not in repr(opened) + str(opened.lister.mark)
    sent = [each.path for each in server.requests if TOKEN in str(each.headers)]
    assert sent == [each.path for each in server.requests if each.path.startswith("/api/")]
    assert {"raw", "wiki", "robots"} < set(server.kinds)


async def test_where_the_token_comes_from(tmp_path: Path) -> None:
    program = tmp_path / "gh"
    program.write_text('#!/bin/sh\n[ "$4" = git.corp ] && [ -z "$GH_FAIL" ] && echo from-gh\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    gh = {"PATH": f"{tmp_path}:/bin:/usr/bin"}
    assert await find_token("set", {**gh, "GITHUB_TOKEN": "env"}, "git.corp") == "set"
    assert await find_token(None, {**gh, "GITHUB_TOKEN": "env", "GH_TOKEN": "other"}, "git.corp") == "env"
    assert await find_token(None, {**gh, "GH_TOKEN": "other"}, "git.corp") == "other"
    assert await find_token(None, gh, "git.corp") == "from-gh"
    assert await find_token(None, gh, "github.com") is None
    assert await find_token(None, {**gh, "GH_FAIL": "1"}, "git.corp") is None
    assert await find_token(None, {**gh, "GITHUB_TOKEN": "a\nb"}, "elsewhere") is None
    assert await find_token(None, {"PATH": str(tmp_path / "none")}, "git.corp") is None


async def test_a_gh_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "gh"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert await find_token(None, {"PATH": f"{tmp_path}:/bin:/usr/bin"}, "x", seconds=0.05) is None


# ---- limits and outages ------------------------------------------------------------------------


async def test_F75_a_used_up_rate_limit_names_its_end_and_the_way_out(server: GithubServer) -> None:
    server.limit = 1
    server.reset_at = int((utc_now() + timedelta(minutes=20)).timestamp())
    async with opening(server) as opened:
        with pytest.raises(SourceError, match=r"until \d\d:\d\d UTC; set a token for a higher limit"):
            await opened.list()


async def test_F75_a_page_under_a_rate_limit_waits_as_long_as_it_lasts(server: GithubServer) -> None:
    server.raw_answer = NO_RAW
    async with opening(server) as opened:
        await opened.list()
        server.limit = 0
        server.reset_at = int((utc_now() + timedelta(minutes=20)).timestamp())
        waits = await opened.look(server.page("README.md"))
        server.reset_at = 99_999_999_999
        capped = await opened.look(server.page("README.md"))
    assert isinstance(waits, Failed)
    assert 1_100 < (waits.retry_after or 0) <= 1_200
    assert isinstance(capped, Failed)
    assert capped.retry_after == 3_600


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (403, {"Retry-After": "30"}, b"{}", 30),
        (429, {"Retry-After": "7"}, b"{}", 7),
        (403, {}, b'{"message": "You have exceeded a secondary rate limit."}', 60),
        (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, b"{}", 60),
        (503, {"Retry-After": "9"}, b"", 9),
        (500, {}, b"<html>", None),
    ],
)
async def test_F75_limits_of_other_forms(
    server: GithubServer, status: int, headers: dict[str, str], body: bytes, wait: float | None
) -> None:
    server.raw_answer = NO_RAW
    async with opening(server) as opened:
        await opened.list()
        server.script.append(Answer(status=status, headers=headers, body=body))
        seen = await opened.look(server.page("README.md"))
        assert isinstance(seen, Failed)
        assert (seen.retry_after, seen.status_code) == (wait, status)
        assert isinstance(await opened.look(server.page("README.md")), Body)


@pytest.mark.parametrize(
    ("status", "why"), [(451, "was taken down"), (403, "403 Forbidden"), (500, "500"), (302, "302 Found")]
)
async def test_F30_F32_a_repository_that_cannot_be_read_is_an_error(
    server: GithubServer, status: int, why: str
) -> None:
    reader = Reader(server)
    await reader.run()
    for _ in range(2):
        server.script = [Answer(status=status, body=json.dumps({"message": "no"}).encode())]
        async with opening(server, mark=reader.mark) as opened:
            with pytest.raises(SourceError, match=why):
                await opened.list()
    server.script = []
    server.down()
    async with opening(server) as opened:
        with pytest.raises(SourceError, match="no connection to"):
            await opened.list()
        assert isinstance(await opened.look(server.page("README.md")), Failed)


async def test_a_server_that_stays_down_is_not_asked_by_every_page(server: GithubServer) -> None:
    async with opening(server) as opened:
        server.script = [Answer(status=500)] * 99
        seen = [await opened.look(server.page(f"{number}.md")) for number in range(10)]
    assert server.kinds == {"tree": 3}
    assert [each.hopeless for each in seen if isinstance(each, Failed)] == [False] * 3 + [True] * 7


# ---- the wiki --------------------------------------------------------------------------------


WIKI = {"Home": '<p>Welcome. See <a href="/octo/docs/wiki/Set-up">set-up</a>.</p>', "Set-up": "<p>Install it.</p>"}


async def test_A19_the_wiki_is_walked_from_its_first_page(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    async with opening(server) as opened:
        listed = await opened.list()
        assert server.wiki() in listed
        assert listed[server.wiki()].validators is None
        assert opened.lister.walks(server.wiki("Set-up"))
        home, page = await opened.look(server.wiki()), await opened.look(server.wiki("Set-up"))
        assert isinstance(home, Body)
        assert isinstance(page, Body)
        assert home.index, "X-Robots-Tag: none is meant for search engines"
        for tool in ("Home/_history", "_new", "Home/_edit", f"Home/{'a' * 40}"):
            assert not opened.lister.walks(server.wiki(tool))
        assert not opened.lister.walks(f"{server.web_url}/octo/other/wiki")
        mark = opened.lister.mark
    assert (server.kinds["wiki"], server.kinds["robots"]) == (2, 1)
    server.forget()
    async with opening(server, mark=mark) as opened:
        assert list(await opened.list()) == [server.wiki()]
        assert opened.lister.unchanged
        for url, body in ((server.wiki(), home), (server.wiki("Set-up"), page)):
            assert isinstance(await opened.look(url, body.validators.etag), NotModified)
    assert server.kinds == {"tree": 1, "wiki": 2, "robots": 1}


async def test_a_first_page_that_is_known_is_not_modified_after_a_push_as_well(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    async with opening(server) as opened:
        await opened.list()
        home = await opened.look(server.wiki())
        assert isinstance(home, Body)
        server.forget()
    async with opening(server) as opened:
        await opened.list()
        assert isinstance(await opened.look(server.wiki(), home.validators.etag), NotModified)
    assert server.kinds["wiki"] == 1


async def test_a_wiki_page_that_is_gone_is_not_taken_for_the_first_one(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    async with opening(server) as opened:
        await opened.list()
        assert isinstance(await opened.look(server.wiki("Deleted")), Gone)
        assert isinstance(await opened.look(server.wiki("Home")), Gone), "its page is the first one"


async def test_a_wiki_without_pages_is_none_and_costs_nothing_later(server: GithubServer) -> None:
    async with opening(server) as opened:
        assert len(await opened.list()) == 3
        mark = opened.lister.mark
        assert isinstance(await opened.look(server.wiki("Old")), Gone)
    server.forget()
    async with opening(server, mark=mark) as opened:
        await opened.list()
    assert server.kinds == {"tree": 1}


async def test_a_wiki_that_is_out_of_order_is_not_taken_for_none(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    async with opening(server) as opened:
        await opened.repository.look()
        server.down()
        assert await opened.fetcher.find_wiki() == server.wiki()
        assert isinstance(await opened.look(server.wiki()), Failed)


async def test_the_pages_of_a_wiki_move_with_its_repository(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    old = server.wiki("Set-up")
    async with opening(server, "octo/docs") as opened:
        await opened.list()
        mark = opened.lister.mark
    server.rename("octo/handbook")
    async with opening(server, "octo/docs", mark=mark) as opened:
        listed = await opened.list()
        assert server.wiki() in listed
        moved = await opened.look(old)
        assert isinstance(moved, Moved)
        assert moved.to == server.wiki("Set-up")
        assert opened.lister.walks(moved.to)


async def test_only_the_wiki(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    async with opening(server, f"{server.web_url}/octo/docs/wiki") as opened:
        assert list(await opened.list()) == [server.wiki()]
        assert isinstance(await opened.look(server.wiki()), Body)
    assert server.kinds == {"wiki": 1, "robots": 1}


async def test_without_the_wiki_nothing_but_the_api_is_asked(server: GithubServer) -> None:
    server.set_wiki(WIKI)
    async with opening(server, wiki=False) as opened:
        assert server.wiki() not in await opened.list()
        assert not opened.lister.walks(server.wiki())
    assert server.kinds == {"tree": 1, "repo": 1}


def test_P13_a_wiki_ends_where_its_pages_are_too_many(server: GithubServer) -> None:
    class Endless:
        seen = wiki = None

        async def look(self) -> Refused:
            raise NotImplementedError

        async def find_wiki(self) -> None:
            raise NotImplementedError

        def walks(self, url: str) -> bool:
            return "/wiki/" in url

    endless: Any = Endless()
    lister = GithubLister(endless, endless, most_walked=3)
    refused = [lister.refusal(f"/wiki/{number % 5}", 1) for number in range(10)]
    assert [each is None for each in refused] == [True, True, True, False, False] * 2
    assert lister.refusal(server.page("README.md"), 1) is None


# ---- which server is meant -----------------------------------------------------------------------


async def test_P19_the_token_of_an_own_server_is_not_sent_to_the_public_one(server: GithubServer) -> None:
    environment = {"GITHUB_TOKEN": "env", "PATH": ""}
    for target, sent in (("octo/docs", "own"), ("https://github.com/octo/docs", None)):
        async with opening(server, target, token="own", environment=environment) as opened:
            assert await opened.repository._api.token() == sent
            assert (opened.repository.address.web == server.web_url) is (sent is not None)


def test_what_is_on_this_machine_comes_before_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert recognise("octo/docs") == ("github", "https://github.com/octo/docs")
    corp = ("https://hub.corp", "https://github.com")
    assert recognise("octo/docs@v1", corp) == ("github", "https://hub.corp/octo/docs/tree/v1")
    assert recognise("https://github.com/octo/docs/wiki", corp)[0] == "github"
    assert recognise("https://github.com/octo/docs/issues", corp)[0] == "web"
    assert recognise("localhost/docs")[0] == "web"
    (tmp_path / "octo/docs").mkdir(parents=True)
    assert recognise("octo/docs")[0] == "folder"


def test_a_source_is_called_as_its_repository() -> None:
    for url in (
        "https://github.com/octo/docs",
        "https://github.com/octo/docs@a/b",
        "https://github.com/octo/docs/wiki",
    ):
        assert name_for(url, "github") == "octo/docs"
