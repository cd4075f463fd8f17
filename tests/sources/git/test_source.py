"""Git repositories through lister and fetcher: what is asked, what is read, what is left alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.git.repositories import GitServer, Repo, Run, options

from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Refused, Request, Validators

PAGES = {"docs/a.md": "# A", "docs/b.md": "# B", "src/x.py": "x = 1", ".hidden.md": "no"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "served" / "r.git")
    made.commit(PAGES)
    return made


@pytest.fixture
def server(repo: Repo) -> Iterator[GitServer]:
    with GitServer(repo.path.parent).running() as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def text(seen: Fetched) -> str:
    assert isinstance(seen, Body), seen
    return seen.data.decode()


async def test_an_unchanged_repository_costs_one_request(repo: Repo, server: GitServer, cache: Path) -> None:
    async with Run(server.at("r.git"), cache) as first:
        listed = await first.listed()
        assert not first.lister.unchanged
        for url in listed:
            await first.fetcher.fetch(Request(url=url))
        mark = first.lister.mark
    server.requests.clear()
    async with Run(server.at("r.git"), cache, mark=mark) as again:
        assert await again.listed() == {}
        assert again.lister.unchanged
        assert again.lister.mark == mark
    assert server.requests == ["GET /r.git/info/refs"]


async def test_a_changed_repository_sends_its_changed_files_in_one_request(
    repo: Repo, server: GitServer, cache: Path
) -> None:
    many = {f"docs/{number}.md": f"# Page {number}" for number in range(40)}
    repo.commit(many)
    async with Run(server.at("r.git"), cache) as first:
        before = await first.listed()
        assert [text(await first.fetcher.fetch(Request(url=url))) for url in before] == [
            many[url.partition("@HEAD/")[2]] for url in before
        ]
        mark = first.lister.mark
    repo.commit({**many, "docs/3.md": "# New three", "docs/5.md": "# New five", "docs/new.md": "# New"})
    server.requests.clear()
    async with Run(server.at("r.git"), cache, mark=mark) as then:
        after = await then.listed()
        changed = {url for url in after if before.get(url) != after[url]}
        assert {url.rpartition("/")[2] for url in changed} == {"3.md", "5.md", "new.md"}
        for url in sorted(changed):
            seen = await then.fetcher.fetch(Request(url=url, validators=Validators(etag=before.get(url))))
            assert text(seen).startswith("# New")
    # one question; commit and trees; the three files
    posts = [each for each in server.requests if each.startswith("POST")]
    assert len(posts) == 2
    assert len(server.requests) == 5
    assert packed(then) == len(many) + 3


def packed(run: Run) -> int:
    """How many files the clone holds."""
    import subprocess

    counted = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch-check"],
        cwd=run.repository._cache.folder / next(run.repository._cache.folder.glob("*.git")),
        capture_output=True,
        check=True,
    )
    return counted.stdout.count(b" blob ")


async def test_F32_a_server_that_fails_in_the_middle_is_not_asked_for_each_file(
    repo: Repo, server: GitServer, cache: Path
) -> None:
    async with Run(server.at("r.git"), cache) as first:
        for url in await first.listed():
            await first.fetcher.fetch(Request(url=url))
    repo.commit({**PAGES, "docs/a.md": "# A2", "docs/b.md": "# B2"})
    async with Run(server.at("r.git"), cache) as run:
        listed = await run.listed()
        server.down = True
        server.requests.clear()
        seen = {url.rpartition("/")[2]: await run.fetcher.fetch(Request(url=url)) for url in listed}
        assert len(server.requests) == 1
        assert isinstance(seen["a.md"], Failed)
        assert isinstance(seen["b.md"], Failed)
        assert text(seen["x.py"]) == "x = 1"  # that was here


@pytest.mark.parametrize("harm", ["lost", "damaged"])
@pytest.mark.parametrize("over", ["file", "http"])
async def test_a_file_that_a_repository_lost_fails_alone(
    repo: Repo, server: GitServer, cache: Path, harm: str, over: str
) -> None:
    blob = repo.git("rev-parse", "main:docs/b.md")
    place = repo.path / "objects" / blob[:2] / blob[2:]
    place.chmod(0o600)
    place.unlink() if harm == "lost" else place.write_bytes(b"x")
    async with Run(repo.url if over == "file" else server.at("r.git"), cache) as run:
        seen = {url: await run.fetcher.fetch(Request(url=url)) for url in await run.listed()}
    (failed,) = [each for each in seen.values() if not isinstance(each, Body)]
    assert isinstance(failed, Failed)
    assert failed.reason.endswith("lists this file but does not contain it")
    assert isinstance(next(each for url, each in seen.items() if url.endswith("b.md")), Failed)


async def test_files_that_the_rules_leave_out_are_never_fetched(repo: Repo, cache: Path) -> None:
    async with Run(repo.url, cache) as run:
        listed = await run.listed()
        assert sorted(url.partition("@HEAD/")[2] for url in listed) == ["docs/a.md", "docs/b.md", "src/x.py"]
        await run.fetcher.fetch(Request(url=next(iter(listed))))
        assert packed(run) == 3
        seen = await run.fetcher.fetch(Request(url=f"{repo.url}@HEAD/.hidden.md"))
        assert seen == Gone(status_code=None, reason="left out: hidden")


async def test_a_file_that_is_as_it_was_is_not_read(repo: Repo, cache: Path) -> None:
    async with Run(repo.url, cache) as run:
        url, blob = next(iter((await run.listed()).items()))
        body = await run.fetcher.fetch(Request(url=url))
        assert isinstance(body, Body)
        assert body.validators == Validators(etag=blob)
        seen = await run.fetcher.fetch(Request(url=url, validators=body.validators))
        assert seen == NotModified(validators=Validators(etag=blob), status_code=None)


async def test_a_file_that_is_no_longer_there_is_gone(repo: Repo, cache: Path) -> None:
    async with Run(repo.url, cache) as run:
        for url in (f"{repo.url}@HEAD/docs/z.md", f"{repo.url}@HEAD/docs", f"{repo.url}@other/docs/a.md"):
            assert isinstance(await run.fetcher.fetch(Request(url=url)), Gone)


@pytest.mark.parametrize(("after", "names"), [("#docs", {"a.md", "b.md"}), ("@side#docs", {"c.md"})])
async def test_a_folder_of_a_branch_is_all_that_is_read(repo: Repo, cache: Path, after: str, names: set[str]) -> None:
    repo.commit({"docs/c.md": "# C", "docsy/d.md": "# D"}, "side")
    async with Run(repo.url + after, cache) as run:
        listed = await run.listed()
        assert {url.rpartition("/docs/")[2] for url in listed} == names
        assert len(listed) == len(names)


async def test_one_state_is_read_although_the_branch_moves_meanwhile(repo: Repo, cache: Path) -> None:
    async with Run(repo.url, cache) as run:
        listed = await run.listed()
        repo.commit({"docs/a.md": "# Other"})
        assert text(await run.fetcher.fetch(Request(url=next(iter(listed))))) == "# A"


# ---- names that move ------------------------------------------------------------------------------------


async def marked(address: str, cache: Path) -> str | None:
    async with Run(address, cache) as run:
        await run.listed()
        return run.lister.mark


async def read_all(address: str, cache: Path, mark: str | None = None) -> dict[str, str]:
    async with Run(address, cache, mark=mark) as run:
        listed = await run.listed()
        return {
            url.partition("@")[2].partition("/")[2]: text(await run.fetcher.fetch(Request(url=url))) for url in listed
        }


async def test_a_branch_that_was_pushed_by_force_is_read_as_it_is_now(repo: Repo, cache: Path) -> None:
    mark = await marked(repo.url + "@main", cache)
    repo.git("update-ref", "-d", "refs/heads/main")
    repo.commit({"docs/a.md": "# Rewritten"})
    repo.git("reflog", "expire", "--expire=all", "--all")
    repo.git("gc", "--quiet", "--prune=now")
    assert await read_all(repo.url + "@main", cache, mark) == {"docs/a.md": "# Rewritten"}


async def test_F80_a_branch_that_was_deleted_is_an_error(repo: Repo, cache: Path) -> None:
    repo.commit({"docs/c.md": "# C"}, "side")
    mark = await marked(repo.url + "@side", cache)
    repo.git("update-ref", "-d", "refs/heads/side")
    async with Run(repo.url + "@side", cache, mark=mark) as run:
        with pytest.raises(SourceError, match="no branch or tag side"):
            await run.listed()
        assert isinstance(await run.fetcher.fetch(Request(url=f"{repo.url}@side/docs/c.md")), Failed)


async def test_a_default_branch_with_a_new_name_changes_nothing(repo: Repo, cache: Path) -> None:
    mark = await marked(repo.url, cache)
    repo.git("branch", "-m", "main", "trunk")
    repo.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    async with Run(repo.url, cache, mark=mark) as run:
        assert await run.listed() == {}
        assert run.lister.unchanged


async def test_a_tag_that_moved_is_read_again(repo: Repo, cache: Path) -> None:
    repo.git("-c", "user.name=t", "-c", "user.email=t@t", "tag", "-a", "-m", "x", "v1", "main")
    assert (await read_all(repo.url + "@v1", cache))["docs/a.md"] == "# A"
    mark = await marked(repo.url + "@v1", cache)
    repo.commit({"docs/a.md": "# A2"})
    async with Run(repo.url + "@v1", cache, mark=mark) as run:
        await run.listed()
        assert run.lister.unchanged
    repo.git("tag", "-f", "v1", "main")
    assert await read_all(repo.url + "@v1", cache, mark) == {"docs/a.md": "# A2"}


async def test_a_branch_goes_before_a_tag_of_the_same_name(repo: Repo, cache: Path) -> None:
    repo.git("tag", "both", "main")
    repo.commit({"docs/c.md": "# Branch"}, "both")
    assert await read_all(repo.url + "@both", cache) == {"docs/c.md": "# Branch"}
    async with Run(repo.url + "@both", cache) as run:
        await run.listed()
        assert run.lister.notes == ["both is a branch and a tag: the branch is read; write @refs/tags/both for the tag"]
    assert "docs/a.md" in await read_all(repo.url + "@refs/tags/both", cache)


async def test_a_commit_id_is_read_once_and_never_asked_for_again(repo: Repo, server: GitServer, cache: Path) -> None:
    commit = repo.git("rev-parse", "main")
    repo.commit({"docs/a.md": "# Later"})
    address = f"{server.at('r.git')}@{commit}"
    assert (await read_all(address, cache))["docs/a.md"] == "# A"
    mark = await marked(address, cache)
    server.requests.clear()
    async with Run(address, cache, mark=mark) as run:
        assert await run.listed() == {}
    assert server.requests == []


async def test_F80_an_empty_repository_is_an_error(tmp_path: Path, cache: Path) -> None:
    async with Run(Repo(tmp_path / "empty.git").url, cache) as run:
        with pytest.raises(SourceError, match="no commits"):
            await run.listed()


async def test_F80_a_folder_that_is_not_there_is_an_error(repo: Repo, cache: Path) -> None:
    async with Run(repo.url + "#nowhere", cache) as run:
        with pytest.raises(SourceError, match="no files"):
            await run.listed()


async def test_rules_that_changed_make_another_state(repo: Repo, cache: Path) -> None:
    mark = await marked(repo.url, cache)
    async with Run(repo.url, cache, mark=mark, rules="hidden too") as run:
        assert len(await run.listed()) == 3


# ---- what is not read -----------------------------------------------------------------------------------


async def test_F83_names_of_any_bytes_are_read(tmp_path: Path, cache: Path) -> None:
    names = [b"a\nb.md", b"caf\xe9.md", "ü ✓.md".encode(), b'q"uote\\.md', b"-rf.md", b"n" * 250, b"A.md", b"a.md"]
    repo = Repo(tmp_path / "odd@place #1.git")
    repo.commit({name: name.hex() for name in names})
    from afresh.sources.detect import bare_repository

    address = bare_repository(str(repo.path))
    assert address is not None
    async with Run(address, cache) as run:
        listed = await run.listed()
        assert len(listed) == len(names)
        assert {text(await run.fetcher.fetch(Request(url=url))) for url in listed} == {name.hex() for name in names}


async def test_F78_links_and_submodules_are_counted_and_left_alone(tmp_path: Path, cache: Path) -> None:
    repo = Repo(tmp_path / "r.git")
    repo.commit(
        {"a.md": "# A", "link.md": "/etc/passwd", "sub": "a" * 40, "run.sh": "echo"},
        modes={"link.md": "120000", "sub": "160000", "run.sh": "100755"},
    )
    async with Run(repo.url, cache) as run:
        assert {url.rpartition("/")[2] for url in await run.listed()} == {"a.md", "run.sh"}
        assert run.lister.dropped == {"symbolic links": 1, "submodules": 1}
        assert isinstance(await run.fetcher.fetch(Request(url=f"{repo.url}@HEAD/link.md")), Gone)


async def test_F83_large_files_and_lfs_pointers_are_refused_with_a_reason(tmp_path: Path, cache: Path) -> None:
    repo = Repo(tmp_path / "r.git")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    repo.commit({"big.md": "x" * 5_000, "film.md": pointer, "fits.md": "x" * 1_000})
    async with Run(repo.url, cache, bounds=options(max_file_bytes=1_000)) as run:
        listed = await run.listed()
        seen = {url.rpartition("/")[2]: await run.fetcher.fetch(Request(url=url)) for url in listed}
        assert isinstance(seen["fits.md"], Body)
        for name, why in (("big.md", "5,000 bytes"), ("film.md", "Git LFS")):
            refused = seen[name]
            assert isinstance(refused, Refused)
            assert why in refused.reason
        pointer_is = Validators(etag=listed[f"{repo.url}@HEAD/film.md"])
        assert getattr(seen["film.md"], "validators", None) == pointer_is
        assert getattr(seen["big.md"], "validators", None) is None, "the limit may be raised"


async def test_repositories_with_long_ids_are_read(tmp_path: Path, cache: Path) -> None:
    repo = Repo(tmp_path / "r.git", form="sha256")
    repo.commit({"a.md": "# A"})
    assert await read_all(repo.url, cache) == {"a.md": "# A"}


async def test_a_server_that_cannot_send_parts_is_read_whole(repo: Repo, server: GitServer, cache: Path) -> None:
    repo.git("config", "uploadpack.allowFilter", "false")
    assert (await read_all(server.at("r.git"), cache))["docs/a.md"] == "# A"
    repo.commit({**PAGES, "docs/a.md": "# A2"})
    assert (await read_all(server.at("r.git"), cache))["docs/a.md"] == "# A2"


def test_paths_of_repositories_are_distinguished_from_folders(repo: Repo, tmp_path: Path) -> None:
    from afresh.sources.detect import bare_repository

    work = tmp_path / "work"
    repo.git("clone", "--quiet", str(repo.path), str(work))
    assert bare_repository(str(work)) is None
    inside, bare = bare_repository(str(work / ".git")), bare_repository(f"{repo.path}@main")
    assert inside is not None
    assert inside.url == f"git+file://{work}/.git"
    assert inside.name == "work"
    assert bare is not None
    assert bare.url == f"{repo.url}@main"
