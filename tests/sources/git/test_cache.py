"""Clones between runs: kept, shared, thrown away when damaged, removed when there are too many."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sources.git.repositories import GitServer, Repo, Run, options

from afresh.model.fetch import Body, Failed, Request
from afresh.sources.git import cache as git_clone
from afresh.sources.git.address import parse_git
from afresh.sources.git.cache import GitCache
from afresh.sources.git.process import GitError


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r.git")
    made.commit({"a.md": "# A", "b.md": "# B"})
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


async def read(repo: Repo, cache: Path, **more: int) -> dict[str, bytes]:
    async with Run(repo.url, cache, **more) as run:  # type: ignore[arg-type]
        seen = {url: await run.fetcher.fetch(Request(url=url)) for url in await run.listed()}
        return {url.rpartition("/")[2]: each.data for url, each in seen.items() if isinstance(each, Body)}


BOTH = {"a.md": b"# A", "b.md": b"# B"}


def clones(cache: Path) -> list[Path]:
    return found(cache, "*.git")


def found(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


async def test_a_clone_is_for_its_user_alone(repo: Repo, cache: Path) -> None:
    assert await read(repo, cache) == BOTH
    assert mode_of(cache) & 0o077 == 0


async def test_S6_a_clone_is_private_in_a_folder_that_was_there(repo: Repo, cache: Path) -> None:
    cache.mkdir(mode=0o755)
    assert await read(repo, cache) == BOTH
    [clone] = clones(cache)
    assert [oct(mode_of(each) & 0o077) for each in (cache, clone, *clone.rglob("pack"))] == ["0o0"] * 3


def mode_of(path: Path) -> int:
    return path.stat().st_mode


@pytest.mark.parametrize("harm", ["empty packs", "no objects", "no head", "garbage"])
async def test_a_damaged_clone_is_recreated(repo: Repo, cache: Path, harm: str) -> None:
    assert await read(repo, cache) == BOTH
    (clone,) = clones(cache)
    packs = [*clone.glob("objects/pack/*.pack")]
    match harm:
        case "empty packs":
            for pack in packs:
                pack.chmod(0o600)
                pack.write_bytes(b"")
        case "no objects":
            for pack in packs:
                pack.unlink()
        case "no head":
            (clone / "HEAD").unlink()
        case _:
            for pack in packs:
                pack.chmod(0o600)
                data = bytearray(pack.read_bytes())
                data[12:-20] = bytes(len(data) - 32)
                pack.write_bytes(bytes(data))
    assert await read(repo, cache) == BOTH


async def test_a_damaged_clone_that_another_uses_is_left_alone(repo: Repo, cache: Path) -> None:
    assert await read(repo, cache) == BOTH
    (clone,) = clones(cache)
    other = await GitCache(cache, 0).open(parse_git(repo.url))
    (clone / "HEAD").unlink()
    try:
        async with Run(repo.url, cache) as run:
            with pytest.raises(GitError, match="in use"):
                await run.listed()
        assert clones(cache) == [clone]
    finally:
        other.close()
    assert await read(repo, cache) == BOTH


async def test_F01_what_a_killed_process_left_is_in_nobodys_way(repo: Repo, cache: Path) -> None:
    assert await read(repo, cache) == BOTH
    (clone,) = clones(cache)
    (clone / "shallow.lock").touch()
    for ref in clone.glob("refs/kept/*"):
        ref.with_name(f"{ref.name}.lock").touch()
    (clone / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    (clone.with_suffix(".fresh")).mkdir()
    repo.commit({"a.md": "# A2"})
    assert await read(repo, cache) == {"a.md": b"# A2"}
    assert not (clone / "objects" / "pack" / "tmp_pack_x").exists()


async def test_F01_a_kill_in_the_middle_of_a_fetch_costs_one_more_fetch(repo: Repo, cache: Path) -> None:
    """The program is killed while its git runs; the next run waits for that git, then goes on."""
    code = f"""
import asyncio
from pathlib import Path
from tests.sources.git.repositories import Run
async def main():
    run = Run({repo.url!r}, Path({str(cache)!r}))
    async with run:
        lease = await run.repository._cache.open(run.repository.address)
        async with lease.writing(5) as locks:
            from afresh.sources.git.process import GitCall, start
            env = {{**run.remote.offline(), "GIT_DIR": {str(repo.path)!r}}}
            call = GitCall(args=("cat-file", "--batch"), env=env, folder="/", seconds=9, kept_open=locks)
            await start(call)
            print("held", flush=True)
            await asyncio.sleep(60)
asyncio.run(main())
"""
    kill_when_it_says_held(code)
    assert await read(repo, cache) == BOTH


def kill_when_it_says_held(code: str) -> None:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        child.send_signal(signal.SIGKILL)


async def test_two_runs_at_once_share_a_clone(repo: Repo, cache: Path) -> None:
    repo.commit({"c.md": "# C"}, "side")
    one, two = await asyncio.gather(read(repo, cache), read_ref(f"{repo.url}@side", cache))
    assert (one, two) == (BOTH, {"c.md": b"# C"})
    assert len(clones(cache)) == 1


async def read_ref(address: str, cache: Path) -> dict[str, bytes]:
    async with Run(address, cache) as run:
        seen = {url: await run.fetcher.fetch(Request(url=url)) for url in await run.listed()}
        return {url.rpartition("/")[2]: each.data for url, each in seen.items() if isinstance(each, Body)}


async def test_the_least_recently_used_clones_are_removed_when_there_are_too_many(tmp_path: Path, cache: Path) -> None:
    repos = [Repo(tmp_path / f"r{number}.git") for number in range(4)]
    for repo in repos:
        repo.commit({"a.md": os.urandom(50_000)})
        await read(repo, cache)
    busy = await GitCache(cache, 0).open(parse_git(repos[0].url))
    for age, used in enumerate(found(cache, "*.used")):
        os.utime(used, (1000 + age, 1000 + age))
    try:
        GitCache(cache, 130_000).tidy()
        assert [clone.name[:2] for clone in clones(cache)] == ["r0", "r3"]  # in use; used last
    finally:
        busy.close()
    assert [clone.name[:2] for clone in clones(cache)] == ["r0", "r3"]
    assert len(await read(repos[1], cache, max_bytes=10)) == 1
    assert clones(cache) == []
    assert found(cache, "*.trash") == []


async def test_an_unchanged_refresh_counts_as_use(repo: Repo, cache: Path) -> None:
    await read(repo, cache)
    (used,) = found(cache, "*.used")
    os.utime(used, (1, 1))
    async with Run(repo.url, cache) as run:
        await run.repository.state()
    assert age_of(used) > 1


def age_of(path: Path) -> float:
    return path.stat().st_mtime


async def test_many_refreshes_leave_few_packs_and_one_end_of_history(
    repo: Repo, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_clone, "MAX_PACKS", 3)
    for number in range(4):
        repo.commit({"a.md": f"# A{number}", "b.md": "# B"})
        assert await read(repo, cache) == {"a.md": f"# A{number}".encode(), "b.md": b"# B"}
    (clone,) = clones(cache)
    assert len(list(clone.glob("objects/pack/*.pack"))) <= 3
    assert len((clone / "shallow").read_text().split()) <= 2
    assert "promisor" not in (clone / "config").read_text()


async def test_a_clone_in_work_elsewhere_is_not_waited_for_for_ever(repo: Repo, cache: Path) -> None:
    await read(repo, cache)
    repo.commit({"a.md": "# A2"})
    (clone,) = clones(cache)
    lock = os.open(clone.with_suffix(".written"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        async with Run(repo.url, cache, bounds=options(timeout_seconds=0.2)) as run:
            with pytest.raises(GitError, match="another process"):
                await run.listed()
    finally:
        os.close(lock)


async def test_a_damaged_clone_of_a_server_that_is_down_is_asked_for_once(repo: Repo, cache: Path) -> None:
    with GitServer(repo.path.parent).running() as server:
        address = server.at("r.git")
        await read_ref(address, cache)
        async with Run(address, cache) as run:
            listed = await run.listed()
            (clone,) = clones(cache)
            spoil(clone)
            server.down = True
            server.requests.clear()
            seen = [await run.fetcher.fetch(Request(url=url)) for url in listed]
        assert all(isinstance(each, Failed) for each in seen)
        assert len(server.requests) == 1
        server.down = False
        assert await read_ref(address, cache) == BOTH


def spoil(clone: Path) -> None:
    for pack in clone.glob("objects/pack/*"):
        pack.unlink()
