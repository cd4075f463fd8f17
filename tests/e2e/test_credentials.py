"""The operator's keys read what the operator names; what callers and agents add is read without them."""

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened, rows
from tests.fakes.github_server import GithubServer
from tests.sources.git.repositories import GitServer, Repo

from afresh.errors import ConfigError, UsageError
from afresh.kb import KnowledgeBase
from afresh.model.reports import RunReport
from afresh.sources.git.address import parse_git
from afresh.sources.git.remote import GitOptions, environment

TOKEN = "ghp_hush"
LOGIN = "Basic YW5hOnB3"  # ana:pw
Add = Callable[[KnowledgeBase, str], Awaitable[object]]


async def by_rest(kb: KnowledgeBase, target: str) -> object:
    """What POST /sources and the form of the web do."""
    source, _ = await kb.sources.add(target, name="docs", version=None, settings={})
    return await kb.runs.start(source)


async def by_agent(kb: KnowledgeBase, target: str) -> object:
    """What scrape_docs does."""
    return await kb.runs.crawl(target, name="docs", on_the_web=True, queue=True)


FROM_REMOTE = {"REST": by_rest, "MCP": by_agent}


async def worked(kb: KnowledgeBase) -> RunReport:
    """The newest run, when the queue is done."""
    await kb.runs.work(once=True)
    [run] = await kb.runs.records(None, below=None, limit=1)
    return run


@pytest.fixture(params=["setting", "environment", "program"])
def hub(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GithubServer]:
    """A private repository, and the operator's token for it in one of three places."""
    with GithubServer(private=True, token=TOKEN) as server:
        server.push({"README.md": b"# Harbor\n\nThe wordsecret of acme.\n"})
        if request.param == "environment":
            monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        elif request.param == "program":
            gh = tmp_path / "bin" / "gh"
            gh.parent.mkdir()
            gh.write_text(f"#!/bin/sh\necho {TOKEN}\n")
            gh.chmod(0o755)
            monkeypatch.setenv("PATH", f"{gh.parent}:{os.environ['PATH']}")
        else:
            monkeypatch.setenv("TOKEN_BY_SETTING", "1")
        yield server


@asynccontextmanager
async def knowing(store: Path, server: GithubServer, *allowed: str) -> AsyncIterator[KnowledgeBase]:
    flags = {**server.settings, **({"access.credentials_for": list(allowed)} if allowed else {})}
    if os.environ.get("TOKEN_BY_SETTING"):
        flags["github.token"] = TOKEN
    async with opened(store, flags) as kb:
        yield kb


@pytest.mark.parametrize("way", FROM_REMOTE)
async def test_S3_F117_what_callers_add_is_read_without_the_token_for_github(
    way: str, hub: GithubServer, store: Path, work: type[InProcess]
) -> None:
    target = f"{hub.web_url}/octo/docs"
    async with knowing(store, hub) as kb:
        await FROM_REMOTE[way](kb, target)
        report = await worked(kb)
        assert (report.state, report.new) == ("failed", 0)
        assert "access.credentials_for" in str(report.error)
        previewed = await kb.sources.preview(target)
        assert (previewed.listed, "access.credentials_for" in str(previewed.trouble)) == (None, True)
        # it becomes the operator's neither because the operator refreshes it, nor because a caller says so
        assert [run.state for run in await kb.runs.refresh(["docs"])] == ["failed"]
        assert (await kb.runs.crawl(target, name="docs")).state == "failed"
        [source] = await kb.sources.all()
        with pytest.raises(ConfigError, match="operator_url"):
            await kb.sources.change(source, settings={"operator_url": source.url})
    for allowed in ("github.com", f"{_host(hub)}/other", f"{_host(hub)}/oct", f"{_host(hub)}/octo/other"):
        async with knowing(store, hub, allowed) as kb:
            assert [run.state for run in await kb.runs.refresh(["docs"])] == ["failed"], allowed
    for allowed in (_host(hub), f"{_host(hub)}/Octo", f"{_host(hub)}/octo/docs"):
        async with knowing(store, hub, allowed) as kb:
            assert [run.state for run in await kb.runs.refresh(["docs"])] == ["completed"], allowed
            assert (await kb.sources.preview(target)).listed == 1


def _host(hub: GithubServer) -> str:
    return hub.web_url.removeprefix("http://")


async def test_S3_what_the_operator_adds_is_read_with_the_token_whoever_refreshes_it(
    hub: GithubServer, store: Path, work: type[InProcess]
) -> None:
    async with knowing(store, hub) as kb:
        assert (await kb.sources.preview("octo/docs", here=True)).listed == 1
        assert (await kb.runs.crawl("octo/docs", name="docs")).new == 1
        await by_rest(kb, f"{hub.web_url}/octo/docs")
        assert (await worked(kb)).state == "completed"


async def test_S3_a_source_from_before_is_read_without_keys_until_the_operator_names_it(
    hub: GithubServer, store: Path, work: type[InProcess]
) -> None:
    target = f"{hub.web_url}/octo/docs"
    async with knowing(store, hub) as kb:
        await kb.runs.crawl(target, name="docs", queue=True)
    with sqlite3.connect(store) as database:
        database.execute("update sources set operator_url = null")
    database.close()
    async with knowing(store, hub) as kb:
        assert (await worked(kb)).state == "failed"
        await by_rest(kb, target)
        assert (await worked(kb)).state == "failed"
        assert rows(store, "select operator_url from sources") == [(None,)]
        assert (await kb.runs.crawl(target, name="docs")).state == "completed"


async def test_S3_a_source_that_has_another_root_now_is_no_longer_what_the_operator_named(
    hub: GithubServer, store: Path, work: type[InProcess]
) -> None:
    """However it came to have it."""
    async with knowing(store, hub) as kb:
        await kb.runs.crawl("octo/docs", name="docs", queue=True)
    with sqlite3.connect(store) as database:
        database.execute("update sources set operator_url = url || '-before'")
    database.close()
    async with knowing(store, hub) as kb:
        assert (await worked(kb)).state == "failed"


# ---- git ------------------------------------------------------------------------------------------------


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "served" / "r.git")
    made.commit({"a.md": "# A\n\nThe wordsecret of acme."})
    return made


@pytest.fixture
def server(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """A repository that asks for a login, which the operator has in every place there is."""
    home, asked = tmp_path / "operator", tmp_path / "helper"
    home.mkdir()
    asked.write_text("#!/bin/sh\necho username=ana\necho password=pw\n")
    asked.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    with GitServer(repo.path.parent).running() as server:
        server.needs = LOGIN
        (home / ".netrc").write_text("machine 127.0.0.1 login ana password pw\n")
        (home / ".netrc").chmod(0o600)
        yield server


def git_flags(tmp_path: Path, *allowed: str) -> dict[str, object]:
    helper = {"git.credential_helper": str(tmp_path / "helper"), "git.cache_dir": str(tmp_path / "clones")}
    shared = {"access.credentials_for": list(allowed)} if allowed else {}
    return {**helper, **shared, "embedding.provider": "none"}


@pytest.mark.parametrize("way", FROM_REMOTE)
async def test_S3_F117_git_asks_no_helper_and_reads_no_netrc_for_what_callers_add(
    way: str, server: GitServer, store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    target = server.at("r.git")
    async with opened(store, git_flags(tmp_path)) as kb:
        await FROM_REMOTE[way](kb, target)
        report = await worked(kb)
        assert (report.state, report.new) == ("failed", 0)
        assert "access.credentials_for" in str(report.error)
        assert (await kb.sources.preview(target)).listed is None
        assert set(server.received) == {None}
    async with opened(store, git_flags(tmp_path, f"127.0.0.1:{server.port}")) as kb:
        assert [run.new for run in await kb.runs.refresh(["docs"])] == [1]
    assert LOGIN in server.received


async def test_S3_a_clone_that_was_made_with_keys_serves_nobody_else(
    server: GitServer, repo: Repo, store: Path, tmp_path: Path, work: type[InProcess]
) -> None:
    """A commit needs no question to the server, where a clone has it."""
    pinned = f"{server.at('r.git')}@{repo.git('rev-parse', 'HEAD').strip()}"
    async with opened(store, git_flags(tmp_path)) as kb:
        assert (await kb.runs.crawl(pinned, name="mine")).new == 1
        source, _ = await kb.sources.add(pinned, name="theirs", version="1", settings={})
        await kb.runs.start(source)
        report = await worked(kb)
        assert (report.source, report.state, report.new) == ("theirs", "failed", 0)


async def test_S3_ssh_is_refused_from_callers_unless_the_host_is_allowed(store: Path, tmp_path: Path) -> None:
    target = "git@git.internal:acme/docs.git"
    async with opened(store) as kb:
        for ask in (kb.sources.preview(target), kb.sources.add(target, name=None, version=None, settings={})):
            with pytest.raises(UsageError, match=r"access\.credentials_for"):
                await ask
    async with opened(store, {"access.credentials_for": ["git.internal/acme"]}) as kb:
        assert (await kb.sources.add(target, name="docs", version=None, settings={}))[1]
    async with opened(store) as kb:  # taken back
        await kb.runs.refresh(["docs"], queue=True)
        report = await worked(kb)
        assert (report.state, "ssh needs a key" in str(report.error)) == ("failed", True)


def test_S3_git_without_keys_finds_no_place_where_keys_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "XDG_CONFIG_HOME", "USER", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "/home/operator")
    options = GitOptions(anonymous=True, token="hush", token_host="git.internal", credential_helper="/home/operator")
    made = environment(parse_git("git+https://git.internal/acme/docs.git"), options, (), os.devnull)
    assert not [name for name, value in made.items() if "/home/operator" in value or "hush" in value]
    assert made["HOME"] == os.devnull, "without one curl would look into the home of the account"
    assert made["GIT_SSH_COMMAND"] == "false"
