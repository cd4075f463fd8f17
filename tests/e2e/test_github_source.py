"""A GitHub repository and its wiki through the whole walk, on a loopback server that counts requests."""

import json
import tarfile
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened
from tests.fakes.git_objects import Submodule, Symlink
from tests.fakes.github_server import GithubServer

from afresh.kb import KnowledgeBase
from afresh.testing.script import Answer

FILES = {
    "README.md": b"# Harbor\n\nHarbor moves wordharbor about.\n\nSee [the guide](docs/guide.md).\n",
    "docs/guide.md": b"# Guide\n\nHow to moor wordguide.\n",
    "docs/api.md": b"# API\n\nCalls of wordapi.\n",
}
WIKI = {
    "Home": '<p>Welcome to wordhome. Read <a href="/octo/docs/wiki/Set-up">how to set it up</a>.</p>',
    "Set-up": "<p>Install wordsetup with care, then look around in the harbor.</p>",
}


@pytest.fixture
def server() -> Iterator[GithubServer]:
    with GithubServer() as server:
        server.push(FILES)
        yield server


@pytest.fixture
async def hub(server: GithubServer, store: Path, work: type[InProcess]) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base that knows the server."""
    async with opened(store, server.settings) as kb:
        yield kb


async def refreshed(kb: KnowledgeBase, **how: Any) -> dict[str, int]:
    (report,) = await kb.runs.refresh(["docs"], **how)
    assert report.state == "completed", (report.error, report.notes)
    return counts(report)


async def test_A19_A27_a_repository_is_read_and_found(hub: KnowledgeBase, server: GithubServer, store: Path) -> None:
    server.push({**FILES, "logo.png": b"\x89PNG", "to.md": Symlink("README.md"), "lib": Submodule()})
    report = await hub.runs.crawl("octo/docs", name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 3})
    assert report.notes == ("github: 3 files left out: 1 binary, 1 submodules, 1 symbolic links",)
    assert set(index_of(store)) == {server.page(path) for path in FILES}
    assert await found(hub, "wordguide") == {server.page("docs/guide.md")}
    (source,) = await hub.sources.views()
    assert (source.kind, source.url) == ("github", f"{server.web_url}/octo/docs")
    assert_sound(store)


async def test_a_preview_of_a_repository_lists_its_files(hub: KnowledgeBase, server: GithubServer) -> None:
    server.push({**FILES, "logo.png": b"\x89PNG"})
    preview = await hub.sources.preview("octo/docs")
    assert (preview.kind, preview.listed, preview.trouble) == ("github", len(FILES), None)
    assert set(preview.belong) == {server.page(path) for path in FILES}
    assert preview.dropped == {"binary": 1}
    missing = await hub.sources.preview("octo/nothing")
    assert (missing.listed, bool(missing.trouble)) == (None, True)
    assert await hub.sources.views() == []


async def test_A19_an_unchanged_refresh_is_one_request(hub: KnowledgeBase, server: GithubServer) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    server.forget()
    used = server.used
    assert await refreshed(hub) == {"not_modified": 3}
    assert (dict(server.kinds), server.used) == ({"tree": 1}, used)


async def test_A19_A27_new_changed_and_deleted_files(hub: KnowledgeBase, server: GithubServer) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    server.push({**FILES, "docs/api.md": b"# API\n\nCalls of wordother.\n", "docs/new.md": b"# New\n\nwordnew\n"})
    server.forget()
    assert await refreshed(hub) == {"new": 1, "changed": 1, "not_modified": 2}
    assert server.kinds == {"tree": 1, "repo": 1, "raw": 2, "robots": 1, "wiki": 1}
    assert await found(hub, "wordother") == {server.page("docs/api.md")}
    server.push({path: data for path, data in FILES.items() if path != "docs/api.md"})
    assert await refreshed(hub) == {"deleted": 2, "not_modified": 2}
    assert await found(hub, "wordother") == set()
    server.push(FILES)
    assert await refreshed(hub) == {"new": 1, "not_modified": 2}


async def test_a_file_that_the_rules_leave_out_leaves_the_index(
    server: GithubServer, store: Path, work: type[InProcess]
) -> None:
    async with opened(store, server.settings) as kb:
        await kb.runs.crawl("octo/docs", name="docs")
    async with opened(store, server.settings) as kb:
        report = await kb.runs.crawl("octo/docs", name="docs", rules={"exclude": ["docs/api*"]})
        assert counts(report) == {"deleted": 1, "not_modified": 2}
        server.forget()
        assert await refreshed(kb) == {"not_modified": 2}
        assert server.kinds == {"tree": 1}


async def test_A19_the_wiki_is_read_by_its_links_and_its_etags(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    server.set_wiki(WIKI)
    report = await hub.runs.crawl("octo/docs", name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 5})
    pages = {*(server.page(path) for path in FILES), server.wiki(), server.wiki("Set-up")}
    assert set(index_of(store)) == pages
    assert await found(hub, "wordsetup") == {server.wiki("Set-up")}
    assert (server.kinds["wiki"], server.kinds["robots"]) == (2, 1)
    server.forget()
    assert await refreshed(hub) == {"not_modified": 5}
    assert server.kinds == {"tree": 1, "wiki": 2, "robots": 1}
    server.set_wiki({**WIKI, "Set-up": "<p>Install wordlater some other day, and look around.</p>", "More": "<p>x</p>"})
    server.forget()
    assert await refreshed(hub) == {"new": 1, "changed": 1, "unchanged": 1, "not_modified": 3}
    assert server.kinds == {"tree": 1, "wiki": 3, "robots": 1}
    assert await found(hub, "wordlater") == {server.wiki("Set-up")}
    server.set_wiki({"Home": WIKI["Home"], "More": "<p>x</p>"})
    server.push({**FILES, "docs/api.md": b"# API\n\nNothing.\n"})
    reported = await refreshed(hub)
    assert (reported["deleted"], set(index_of(store))) == (1, pages - {server.wiki("Set-up")} | {server.wiki("More")})
    assert_sound(store)


async def test_only_the_wiki_of_a_repository(hub: KnowledgeBase, server: GithubServer, store: Path) -> None:
    server.set_wiki(WIKI)
    report = await hub.runs.crawl(f"{server.web_url}/octo/docs/wiki", name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 2})
    assert await refreshed(hub) == {"not_modified": 2}
    assert set(index_of(store)) == {server.wiki(), server.wiki("Set-up")}


async def test_a_folder_of_a_repository_and_what_a_refresh_of_it_would_do(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    await hub.runs.crawl(f"{server.web_url}/octo/docs/tree/main/docs", name="docs")
    assert set(index_of(store)) == {server.page("docs/guide.md"), server.page("docs/api.md")}
    server.forget()
    plan = await hub.sources.plan("docs")
    assert (plan.conditional, plan.not_looked_at, len(server.requests)) == (2, 0, 0)


async def test_F30_P4_a_server_that_is_down_takes_nothing_away(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    before = index_of(store)
    server.push({"only.md": b"# Only\n"})
    server.down()
    (report,) = await hub.runs.refresh(["docs"])
    assert report.state == "failed"
    assert "no connection to" in (report.error or "")
    server.up()
    for status in (403, 404, 451, 500):
        server.script = [Answer(status=status, body=b"{}") for _ in range(3)]
        (report,) = await hub.runs.refresh(["docs"])
        assert report.state == "failed", status
        assert report.error
    server.script = []
    assert index_of(store) == before


async def test_F75_a_rate_limit_stops_the_run_with_its_end(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    before = index_of(store)
    server.push({**FILES, "README.md": b"# Other\n"})
    server.limit = server.used
    (report,) = await hub.runs.refresh(["docs"])
    assert report.state == "failed"
    assert "rate limit is used up until" in (report.error or "")
    assert "set a token for a higher limit" in (report.error or "")
    assert index_of(store) == before
    server.limit = 60 + server.used
    assert await refreshed(hub) == {"changed": 1, "not_modified": 2}


async def test_P5_a_repository_that_lost_nearly_all_waits_for_a_confirmation(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    server.push({f"{number}.md": f"# Page {number}\n".encode() for number in range(30)})
    await hub.runs.crawl("octo/docs", name="docs")
    server.push({"0.md": b"# Page 0\n"})
    (report,) = await hub.runs.refresh(["docs"])
    assert (report.state, report.held, len(index_of(store))) == ("needs_confirmation", 29, 30)
    report = await hub.runs.confirm(report.run)
    assert (report.state, len(index_of(store))) == ("completed", 1)
    assert await refreshed(hub) == {"not_modified": 1}


async def test_F84_a_renamed_default_branch_moves_pages_and_makes_no_vector(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    server.rename_branch("main", "trunk")
    server.push({**FILES, "note.md": b"# Note\n\nwordnote\n"})
    (report,) = await hub.runs.refresh(["docs"])
    assert (report.state, counts(report)) == ("completed", {"new": 1, "moved": 3})
    assert report.chunks_reused == 3
    assert set(index_of(store)) == {server.page(path) for path in (*FILES, "note.md")}
    assert_sound(store)


async def test_a_renamed_repository_goes_on_under_its_pages_addresses(
    hub: KnowledgeBase, server: GithubServer, store: Path
) -> None:
    server.set_wiki(WIKI)
    await hub.runs.crawl("octo/docs", name="docs")
    files = {server.page(path) for path in FILES}
    server.rename("octo/handbook")
    (report,) = await hub.runs.refresh(["docs"])
    assert counts(report) == {"moved": 2, "not_modified": 3}
    assert report.notes == ("octo/docs is called octo/handbook now",)
    assert set(index_of(store)) == {*files, server.wiki(), server.wiki("Set-up")}
    server.forget()
    assert await refreshed(hub) == {"not_modified": 5}
    assert server.kinds == {"tree": 1, "wiki": 2, "robots": 1}


async def test_unreadable_files_are_left_alone_until_they_change(hub: KnowledgeBase, server: GithubServer) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n"
    server.push({**FILES, "big.md": pointer, "odd.md": b"\x00\x01\x02" * 200})
    report = await hub.runs.crawl("octo/docs", name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 3, "refused": 2})
    server.forget()
    await refreshed(hub)
    assert server.kinds == {"tree": 1}
    server.push({**FILES, "big.md": b"# Small\n", "odd.md": b"\x00\x01\x02" * 200})
    assert (await refreshed(hub))["new"] == 1


async def test_a_check_before_a_search_asks_once_for_all_pages(hub: KnowledgeBase, server: GithubServer) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    server.push({**FILES, "docs/guide.md": b"# Guide\n\nHow to moor wordguide anew.\n"})
    server.forget()
    answer = await hub.search.search("wordguide", within=["docs"], mode="text", max_age=timedelta(0))
    assert "anew" in answer.hits[0].text
    assert server.kinds == {"tree": 1, "repo": 1, "raw": 1}
    assert await refreshed(hub) == {"not_modified": 3}


async def test_what_is_due_is_asked_with_one_question(hub: KnowledgeBase, server: GithubServer) -> None:
    await hub.runs.crawl("octo/docs", name="docs")
    server.push({**FILES, "docs/guide.md": b"# Guide\n\nAnother guide.\n"})
    server.forget()
    (report,) = await hub.runs.refresh(["docs"], due=True)
    assert report.changed == 1
    assert (server.kinds["tree"], server.kinds["raw"]) == (1, 1)


async def test_P19_a_private_repository_by_the_token_of_the_environment(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    with GithubServer(private=True, token="ghp_hush") as server:
        server.push(FILES)
        async with opened(store, server.settings) as kb:
            report = await kb.runs.crawl("octo/docs", name="docs")
            assert (report.state, report.new) == ("failed", 0)
            assert "needs a token" in (report.error or "")
            monkeypatch.setenv("GITHUB_TOKEN", "ghp_hush")
            assert await refreshed(kb) == {"new": 3}
        assert b"ghp_hush" not in b"".join(each.read_bytes() for each in store.parent.iterdir() if each.is_file())


# ---- a real documentation through four of its versions -------------------------------------------


@pytest.fixture(scope="module")
def manifest(shared: Path) -> Mapping[str, Any]:
    """What changed from each version to the next."""
    loaded: Mapping[str, Any] = json.loads((shared / "data/docs-refresh/fastapi.json").read_text("utf-8"))
    return loaded


@pytest.fixture(scope="module")
def versions(shared: Path) -> Mapping[str, Mapping[str, bytes]]:
    """The files of each version."""
    trees: dict[str, dict[str, bytes]] = {}
    with tarfile.open(shared / "data/docs-refresh/fastapi.tar.xz") as archive:
        for member in archive:
            if (file := archive.extractfile(member)) and member.name.endswith(".md"):
                version, _, name = member.name.removeprefix("./").partition("/")
                trees.setdefault(version, {})[name] = file.read()
    return trees


@pytest.mark.slow
async def test_P6_P7_four_pushed_versions_are_followed_exactly_as_the_manifest_says(
    manifest: Mapping[str, Any], versions: Mapping[str, Mapping[str, bytes]], tmp_path: Path, work: type[InProcess]
) -> None:
    store = tmp_path / "kept.db"
    with GithubServer("fastapi/fastapi") as server:
        server.repository.has_wiki = False
        plain = {**server.settings, "embedding.provider": "none"}  # vectors are counted elsewhere
        async with opened(store, plain) as kb:
            server.push(versions["s1"])
            first = await kb.runs.crawl("fastapi/fastapi", name="docs")
            assert (first.state, counts(first)) == ("completed", {"new": len(versions["s1"])})
            for step in manifest["steps"]:
                await _step(kb, server, step, versions, work)
                assert set(index_of(store)) == {server.page(name) for name in versions[step["to"]]}
        async with opened(tmp_path / "fresh.db", plain) as kb:
            await kb.runs.crawl("fastapi/fastapi", name="docs")
    assert index_of(store) == index_of(tmp_path / "fresh.db")
    assert_sound(store)


async def _step(
    kb: KnowledgeBase,
    server: GithubServer,
    step: Mapping[str, Any],
    versions: Mapping[str, Mapping[str, bytes]],
    work: type[InProcess],
) -> None:
    server.push(versions[step["to"]])
    server.forget()
    (report,) = await kb.runs.refresh(["docs"])
    if report.state == "needs_confirmation":
        report = await kb.runs.confirm(report.run)
    assert report.state == "completed"
    fetched = len(step["added"]) + len(step["modified"])
    assert server.kinds == {"tree": 1, "repo": 1, "raw": fetched}
    reported = counts(report)
    assert reported.get("changed", 0) + reported.get("unchanged", 0) == len(step["modified"])
    assert reported.get("unchanged", 0) <= 4, "edits that no reader sees"
    assert (reported.get("new", 0), reported.get("deleted", 0)) == (len(step["added"]), len(step["removed"]))
    assert reported["not_modified"] == step["unchanged"]
    listed = {each.url: each.kind.value for each in await kb.pages.changes("docs", run=report.run, limit=999)}
    changed = {url for url, kind in listed.items() if kind == "changed"}
    assert changed <= {server.page(name) for name in step["modified"]}
    assert {url for url, kind in listed.items() if kind == "new"} == {server.page(n) for n in step["added"]}
    assert {url for url, kind in listed.items() if kind == "deleted"} == {server.page(name) for name in step["removed"]}
    server.forget()
    made = work.calls
    assert await refreshed(kb) == {"not_modified": len(versions[step["to"]])}
    assert (dict(server.kinds), work.calls) == ({"tree": 1}, made)
