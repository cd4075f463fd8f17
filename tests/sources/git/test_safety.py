"""What a repository, its server or its address must not be able to do."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tests.sources.git.repositories import GitServer, Repo, Run, options

from afresh.config.sources import NetworkSettings
from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Request
from afresh.sources.git.address import parse_git
from afresh.sources.git.process import GitCall, GitError, output_of
from afresh.sources.git.remote import GitRemote, describe_error, environment
from afresh.sources.web.guard import AddressPolicy


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "served" / "r.git")
    made.commit({"a.md": "# A"})
    return made


@pytest.fixture
def server(repo: Repo) -> Iterator[GitServer]:
    with GitServer(repo.path.parent).running() as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


async def error_of(run: Run) -> str:
    async with run:
        with pytest.raises(SourceError) as raised:
            await run.listed()
    return str(raised.value)


# ---- where it may go ------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["git+https://127.0.0.1:{port}/r.git", "git+ssh://git@127.0.0.1:{port}/r.git"])
async def test_P15_a_private_address_is_not_asked(server: GitServer, cache: Path, address: str) -> None:
    bounds = options(policy=AddressPolicy())
    message = await error_of(Run(address.format(port=server.port), cache, bounds=bounds))
    assert "address not allowed" in message
    assert server.requests == []


async def test_P15_a_name_is_held_to_the_address_that_was_checked(server: GitServer, cache: Path) -> None:
    """git would look the name up again and find nothing: it goes where we looked."""
    address = parse_git(f"git+http://docs.invalid:{server.port}/r.git")

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["169.254.169.254", "127.0.0.1"]

    remote = GitRemote(address, options(), cache, resolve=resolve)
    assert (await remote.state()).branch == "main"
    assert len(server.requests) == 1


async def test_P15_a_name_that_leads_to_forbidden_addresses_only_is_refused(cache: Path) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["169.254.169.254", "10.0.0.1"]

    remote = GitRemote(parse_git("git+https://docs.example.org/r.git"), options(), cache, resolve=resolve)
    with pytest.raises(GitError, match="address not allowed"):
        await remote.state()


async def test_plain_http_is_only_spoken_where_the_operator_allows_it(cache: Path) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"]

    remote = GitRemote(parse_git("git+http://docs.example.org/r.git"), options(), cache, resolve=resolve)
    with pytest.raises(GitError, match="unencrypted http"):
        await remote.state()


async def test_P15_a_redirect_is_not_followed(repo: Repo, server: GitServer, cache: Path) -> None:
    with GitServer(repo.path.parent).running() as other:
        server.redirect = f"http://127.0.0.1:{other.port}"
        assert "the repository moved" in await error_of(Run(server.at("r.git"), cache))
        assert other.requests == []


async def test_no_other_transport_can_be_reached_from_settings_or_addresses(tmp_path: Path) -> None:
    env = environment(parse_git("git+https://host.org/r.git"), options(), (), os.devnull)
    for url in ("ext::touch pwned", f"file://{tmp_path}", "git://127.0.0.1/r", "http://127.0.0.1:9/r"):
        call = GitCall(args=("ls-remote", "--", url), env=env, folder=str(tmp_path), seconds=20)
        with pytest.raises(GitError, match="not allowed"):
            await output_of(call)
    assert written(tmp_path) == 0


# ---- what it may run ------------------------------------------------------------------------------------


async def test_no_setting_hook_or_variable_of_the_user_reaches_git(
    repo: Repo, cache: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-fetch", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {trap}\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f'[core]\n\thooksPath = {hooks}\n\tfsmonitor = "touch {trap}"\n'
        f'[url "file:///nowhere"]\n\tinsteadOf = file://{repo.path}\n'
        f'[uploadpack]\n\tpackObjectsHook = "touch {trap}; exec"\n'
    )
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {trap}")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'protocol.allow=never'")
    async with Run(repo.url, cache) as run:
        listed = await run.listed()
        assert isinstance(await run.fetcher.fetch(Request(url=next(iter(listed)))), Body)
    assert not trap.exists()


async def test_a_hook_in_a_clone_is_not_run(repo: Repo, cache: Path, tmp_path: Path) -> None:
    async with Run(repo.url, cache) as run:
        await run.listed()
    set_hook(cache, tmp_path / "trap")
    repo.commit({"a.md": "# A2"})
    async with Run(repo.url, cache) as run:
        await run.listed()
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("over", ["file", "http"])
async def test_settings_planted_in_a_clone_run_nothing(
    repo: Repo, server: GitServer, cache: Path, tmp_path: Path, over: str
) -> None:
    address = repo.url if over == "file" else server.at("r.git")
    async with Run(address, cache) as run:
        await run.listed()
    trap = tmp_path / "trap"
    (clone,) = cache.glob("*.git")
    before = (clone / "config").read_text()
    with (clone / "config").open("a") as file:
        file.write(
            f'[url "ext::touch {trap} "]\n\tinsteadOf = {run.remote.address.remote}\n'
            f'[protocol "ext"]\n\tallow = always\n'
            f'[remote "origin"]\n\tuploadpack = "touch {trap};git-upload-pack"\n'
        )
    repo.commit({"a.md": "# A2"})
    async with Run(address, cache) as run:
        (url,) = await run.listed()
        seen = await run.fetcher.fetch(Request(url=url))
        assert isinstance(seen, Body)
        assert seen.data == b"# A2"
    assert not trap.exists()
    assert (clone / "config").read_text() == before


def test_git_may_speak_one_protocol_whatever_settings_say() -> None:
    for scheme in ("https", "ssh", "file"):
        host = "" if scheme == "file" else "git@host.org" if scheme == "ssh" else "host.org"
        env = environment(parse_git(f"git+{scheme}://{host}/r.git"), options(), (), os.devnull)
        assert env["GIT_ALLOW_PROTOCOL"] == scheme


async def test_a_folder_of_clones_that_is_somebody_elses_is_not_used(
    repo: Repo, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert "git.cache_dir" in await error_of(Run(repo.url, cache))
    assert written(cache) == 0


async def test_a_folder_of_clones_is_closed_to_others(repo: Repo, tmp_path: Path) -> None:
    wide, deep = tmp_path / "wide", tmp_path / "new" / "git"
    wide.mkdir()
    wide.chmod(0o777)
    for cache in (wide, deep):
        async with Run(repo.url, cache) as run:
            await run.listed()
    assert [path.stat().st_mode & 0o777 for path in (wide, deep, deep.parent)] == [0o700] * 3


def set_hook(cache: Path, trap: Path) -> None:
    (clone,) = cache.glob("*.git")
    hook = clone / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)


async def test_a_tree_that_would_lead_out_of_itself_is_not_taken(repo: Repo, cache: Path) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", data=b"# Out")
    inner = repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=_entry("x.md", blob))
    tree = repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=_entry("..", inner, b"40000"))
    commit = repo.git("-c", "user.name=t", "-c", "user.email=t@t", "commit-tree", tree, "-m", "x")
    repo.git("update-ref", "refs/heads/main", commit)
    assert "hasDotdot" in await error_of(Run(repo.url, cache))


def _entry(name: str, oid: str, mode: bytes = b"100644") -> bytes:
    return mode + b" " + name.encode() + b"\0" + bytes.fromhex(oid)


# ---- how much it may cost -------------------------------------------------------------------------------


async def test_F57_a_pack_larger_than_allowed_is_cut_off(repo: Repo, server: GitServer, cache: Path) -> None:
    repo.commit({"big.md": os.urandom(2_000_000)})
    async with Run(server.at("r.git"), cache, bounds=options(max_fetch_bytes=500_000)) as run:
        (url,) = await run.listed()
        seen = await run.fetcher.fetch(Request(url=url))
        assert isinstance(seen, Failed)
        assert seen.hopeless
        assert "git.max_fetch_bytes" in seen.reason
    assert written(cache) < 1_200_000


async def test_a_tree_of_countless_files_is_reported_as_such(
    repo: Repo, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten trees of ten entries each, one in the other: few bytes, a million paths."""
    monkeypatch.setattr("afresh.sources.git.process.MAX_OUTPUT_BYTES", 1024**2)
    entry, mode = repo.git("hash-object", "-w", "--stdin", data=b"# A"), b"100644"
    for _ in range(6):
        made = b"".join(_entry(f"d{each}", entry, mode) for each in range(10))
        entry, mode = repo.git("hash-object", "-w", "-t", "tree", "--stdin", data=made), b"40000"
    commit = repo.git("-c", "user.name=t", "-c", "user.email=t@t", "commit-tree", entry, "-m", "x")
    repo.git("update-ref", "refs/heads/main", commit)
    assert "the file list of" in await error_of(Run(repo.url, cache))
    async with Run(f"{repo.url}#d1/d2/d3", cache) as run:
        assert len(await run.listed()) == 1_000


def written(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.fixture
async def silence() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A repository that says nothing, and the event that it was asked."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readline()
            asked.set()
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        ended.set()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    yield f"git+http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/r.git", asked
    listener.close()
    if asked.is_set():
        await ended.wait()


async def test_F53_a_server_that_says_nothing_is_left_in_time(silence: tuple[str, asyncio.Event], cache: Path) -> None:
    message = await error_of(Run(silence[0], cache, bounds=options(network=NetworkSettings(timeout_seconds=0.3))))
    assert "no answer within 0.3 s" in message
    assert _children() == []


async def test_F10_a_call_that_is_given_up_leaves_no_process_behind(
    silence: tuple[str, asyncio.Event], cache: Path
) -> None:
    address, asked = silence
    async with Run(address, cache) as run:
        listing = asyncio.create_task(run.listed())
        await asked.wait()
        assert len(_children()) > 1  # git, and its helper for http
        listing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listing
    assert _children() == []


def _children() -> list[int]:
    import psutil

    return [each.pid for each in psutil.Process().children(recursive=True) if each.name().startswith("git")]


# ---- who it may learn about -----------------------------------------------------------------------------


async def test_P19_a_token_goes_to_its_host_alone_and_into_no_file(
    server: GitServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t-token"
    server.needs = "Basic never"
    bounds = options(token=secret, token_host="127.0.0.1")
    message = await error_of(Run(server.at("r.git"), cache, bounds=bounds))
    assert "is private or does not exist" in message
    assert server.received == [None]  # plain http carries no token
    address = parse_git("git+https://docs.example.org/r.git")
    theirs = environment(address, options(token=secret, token_host="other.org"), (), os.devnull)
    ours = environment(address, options(token=secret, token_host="docs.example.org"), (), os.devnull)
    assert secret not in "".join(theirs.values())
    assert [name for name, value in ours.items() if secret in value] == ["AFRESH_GIT_TOKEN"]
    assert secret not in repr(bounds)
    call = GitCall(
        args=("credential", "fill"), env=ours, folder="/", seconds=20, stdin=b"url=https://docs.example.org/r.git\n\n"
    )
    assert f"password={secret}".encode() in await output_of(call)


async def test_a_credential_helper_of_the_settings_is_asked(server: GitServer, cache: Path, tmp_path: Path) -> None:
    helper = tmp_path / "helper"
    helper.write_text("#!/bin/sh\necho username=ana\necho password=pw\n")
    helper.chmod(0o755)
    server.needs = "Basic YW5hOnB3"
    async with Run(server.at("r.git"), cache, bounds=options(credential_helper=str(helper))) as run:
        assert len(await run.listed()) == 1


async def test_P19_errors_of_git_are_reported_without_secrets(server: GitServer, cache: Path) -> None:
    assert "hunter2" not in describe_error("fatal: unable to access 'https://ana:hunter2@host.org/r.git/': boom")
    assert (
        describe_error("remote: Repository not found.\nfatal: repository 'x' not found")
        == "there is no such repository"
    )
    assert "no such repository" in await error_of(Run(server.at("other.git"), cache))


async def test_F31_a_closed_port_is_an_error_of_one_sentence(cache: Path) -> None:
    message = await error_of(Run("git+http://127.0.0.1:9/r.git", cache))
    assert message == "git+http://127.0.0.1:9/r.git: no connection to the host"


async def test_a_missing_git_names_the_fix(
    repo: Repo, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt install git" in await error_of(Run(repo.url, cache))


async def test_ssh_asks_nothing_and_goes_to_the_address_that_was_checked(
    repo: Repo, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in the place of ssh notes what it is told and runs the far side here."""
    log = stand_in_for_ssh(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    remote = GitRemote(parse_git(f"git@docs.invalid:{repo.path}"), options(), cache, resolve=resolve)
    assert (await remote.state()).branch == "main"
    given = lines_of(log)
    assert {"-oBatchMode=yes", "-oHostName=127.0.0.1", "-oHostKeyAlias=docs.invalid", "-oForwardAgent=no"} <= given
    other = parse_git("ssh://git@docs.invalid:2222/r.git")
    command = environment(other, options(), ("127.0.0.1",), os.devnull)["GIT_SSH_COMMAND"]
    assert "HostKeyAlias=[docs.invalid]:2222" in command


def stand_in_for_ssh(folder: Path) -> Path:
    folder.mkdir()
    message = folder / "told"
    (folder / "ssh").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {message}\nfor last; do :; done\neval "$last"\n')
    (folder / "ssh").chmod(0o755)
    return message


def lines_of(file: Path) -> set[str]:
    return set(file.read_text().splitlines())
