"""The loopback GitHub server is one: its ids are git's, its answers have GitHub's form and rules."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.git_objects import Objects, Pushed, Symlink
from tests.fakes.github_server import GithubServer
from tests.fakes.servers import fetching

from afresh.model.fetch import Body, Moved, Request
from afresh.ports import ApiResponse
from afresh.sources.web.api_client import ApiClient

FILES = {"a.md": b"# A\n", "a/b.md": b"# B\n", "a.b/c.md": b"c", "a-b": b"", "z/deep/er/d.md": b"d\n", "ü.md": b"u"}


@pytest.fixture
def server() -> Iterator[GithubServer]:
    with GithubServer() as server:
        server.push(FILES)
        yield server


async def ask(server: GithubServer, path: str, **headers: str) -> tuple[ApiResponse, Any]:
    client = ApiClient([server.web_url])
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await client.get(f"{server.web_url}{path}", named, 5)
    finally:
        await client.close()
    return answer, json.loads(answer.data) if answer.data[:1] in (b"{", b"[") else None


def test_ids_of_trees_are_those_of_git(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *arguments], cwd=tmp_path, env=home, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    files: dict[str, Pushed] = {**FILES, "link": Symlink("a/b.md")}
    for path, data in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "link").symlink_to("a/b.md")
    git("add", ".")
    assert Objects({}, {}).add(files) == git("write-tree")


async def test_one_tree_by_branch_by_head_and_by_id(server: GithubServer) -> None:
    commit = server.repository.refs["main"]
    trees = [(await ask(server, f"/api/v3/repos/octo/docs/git/trees/{ref}"))[1] for ref in ("main", "HEAD", commit)]
    assert trees[0] == trees[1] == trees[2]
    assert [entry["path"] for entry in trees[0]["tree"]] == ["a-b", "a.b", "a.md", "a", "z", "ü.md"]
    assert trees[0]["sha"] == commit
    folder = next(entry for entry in trees[0]["tree"] if entry["path"] == "z")
    _, below = await ask(server, f"/api/v3/repos/octo/docs/git/trees/{folder['sha']}?recursive=1")
    assert [entry["path"] for entry in below["tree"]] == ["deep", "deep/er", "deep/er/d.md"]
    server.most_entries = 2
    _, cut = await ask(server, "/api/v3/repos/octo/docs/git/trees/main?recursive=1")
    assert (len(cut["tree"]), cut["truncated"]) == (2, True)
    missing, _ = await ask(server, "/api/v3/repos/octo/docs/git/trees/other")
    assert missing.status == 404


async def test_a_conditional_question_costs_nothing(server: GithubServer) -> None:
    path = "/api/v3/repos/octo/docs/git/trees/HEAD?recursive=1"
    first, _ = await ask(server, path)
    again, _ = await ask(server, path, if_none_match=first.headers["etag"])
    assert first.headers["etag"].startswith('W/"')
    assert (again.status, again.data) == (304, b"")
    assert first.headers["x-ratelimit-remaining"] == again.headers["x-ratelimit-remaining"] == "59"
    server.push({**FILES, "a.md": b"# New\n"})
    changed, _ = await ask(server, path, if_none_match=first.headers["etag"])
    assert (changed.status, changed.headers["x-ratelimit-remaining"]) == (200, "58")
    server.limit = 2
    refused, reply = await ask(server, path)
    assert refused.status == 403
    assert "rate limit" in reply["message"]
    assert refused.headers["x-ratelimit-remaining"] == "0"


async def test_raw_files_blobs_and_what_lags(server: GithubServer) -> None:
    old = server.repository.refs["main"]
    server.push({**FILES, "z/deep/er/d.md": b"new\n"})
    for ref, data in (("main", b"new\n"), (old, b"d\n"), ("HEAD", b"new\n")):
        assert (await ask(server, f"/raw/octo/docs/{ref}/z/deep/er/d.md"))[0].data == data
    server.raw_lags = True
    assert (await ask(server, "/raw/octo/docs/main/z/deep/er/d.md"))[0].data == b"d\n"
    blob = next(name for name, data in server.repository.objects.blobs.items() if data == b"new\n")
    path = f"/api/v3/repos/octo/docs/git/blobs/{blob}"
    assert (await ask(server, path))[1]["content"] == "bmV3Cg=="
    assert (await ask(server, path, accept="application/vnd.github.raw+json"))[0].data == b"new\n"


async def test_a_former_name_leads_to_the_number_of_the_repository(server: GithubServer) -> None:
    server.rename("octo/handbook")
    moved, _ = await ask(server, "/api/v3/repos/octo/docs/git/trees/HEAD?recursive=1")
    assert moved.status == 301
    target = moved.headers["location"].removeprefix(server.web_url)
    assert (await ask(server, target))[0].status == 200
    assert (await ask(server, "/api/v3/repos/octo/docs"))[0].status == 301
    assert (await ask(server, "/api/v3/repositories/1296269"))[1]["full_name"] == "octo/handbook"
    server.set_wiki({"Home": "<p>x</p>"})
    async with fetching() as fetcher:
        seen = await fetcher.fetch(Request(url=f"{server.web_url}/octo/docs/wiki"))
    assert isinstance(seen, Moved)
    assert seen.to == server.wiki()


async def test_private_things_are_hidden() -> None:
    with GithubServer(private=True, token="good") as server:
        server.push(FILES)
        path = "/api/v3/repos/octo/docs"
        assert (await ask(server, path))[0].status == 404
        assert (await ask(server, path, authorization="Bearer bad"))[0].status == 401
        assert (await ask(server, path, authorization="Bearer good"))[1]["private"] is True
        assert (await ask(server, "/raw/octo/docs/main/a.md"))[0].status == 404
        assert (await ask(server, "/octo/docs/wiki"))[0].status == 404


async def test_the_wiki_looks_like_one(server: GithubServer) -> None:
    server.set_wiki({"Home": "<p>Hello</p>", "Set-up": "<p>Install</p>"})
    async with fetching() as fetcher:
        home = await fetcher.fetch(Request(url=server.wiki()))
        assert isinstance(home, Body)
        again = await fetcher.fetch(Request(url=server.wiki(), validators=home.validators))
        assert type(again).__name__ == "NotModified"
        lost = await fetcher.fetch(Request(url=server.wiki("Nothing")))
    assert b'href="/octo/docs/wiki/Set-up"' in home.data
    assert b'href="/octo/docs/wiki/Home/_history"' in home.data
    assert not home.index, "X-Robots-Tag: none"
    assert isinstance(lost, Body)
    assert lost.url == server.wiki()
