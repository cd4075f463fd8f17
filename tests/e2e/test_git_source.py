"""Git repositories through the knowledge base: real git over loopback, real files, requests counted."""

import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened
from tests.sources.git.repositories import GitServer, Repo

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase

FOLDER = "docs/en/docs"
ASK = ["GET /r.git/info/refs"]  # the one question of every refresh
WORDS = {"embedding.provider": "none"}
FETCH = ["GET /r.git/info/refs", "POST /r.git/git-upload-pack"]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "served" / "r.git")


@pytest.fixture
def server(repo: Repo) -> Iterator[GitServer]:
    with GitServer(repo.path.parent).running() as server:
        yield server


def versions(shared: Path) -> Mapping[str, Mapping[str, bytes]]:
    """The files of each version of fastapi's documentation, and a file that nobody asks for."""
    trees: dict[str, dict[str, bytes]] = {}
    with tarfile.open(shared / "data" / "docs-refresh" / "fastapi.tar.xz") as archive:
        for member in archive:
            if file := archive.extractfile(member):
                version, _, name = member.name.removeprefix("./").partition("/")
                tree = trees.setdefault(version, {"src/main.md": b"# Elsewhere"})
                tree[f"{FOLDER}/{name}"] = file.read()
    return trees


def manifest(shared: Path) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads((shared / "data" / "docs-refresh" / "fastapi.json").read_text("utf-8"))
    return loaded


@pytest.mark.slow
async def test_P6_P7_four_versions_of_a_repository_are_followed_exactly(
    shared: Path, repo: Repo, server: GitServer, tmp_path: Path, work: type[InProcess]
) -> None:
    trees, steps = versions(shared), manifest(shared)["steps"]
    target = f"{server.at('r.git')}#{FOLDER}"
    prefix = f"{server.at('r.git')}@HEAD/{FOLDER}/"
    store = tmp_path / "kept.db"
    async with opened(store, WORDS) as kb:
        repo.commit(trees["s1"])
        first = await kb.runs.crawl(target, name="docs")
        assert (first.state, counts(first)) == ("completed", {"new": len(trees["s1"]) - 1})
        for step in steps:
            repo.commit(trees[step["to"]])
            server.requests.clear()
            made = work.calls
            (report,) = await kb.runs.refresh(["docs"])
            assert server.requests == [*ASK, *FETCH, *FETCH]  # the commit and its trees; the changed files
            if report.state == "needs_confirmation":
                report = await kb.runs.confirm(report.run)
            assert report.state == "completed"
            reported = {each.url: each.kind.value for each in await kb.pages.changes("docs", run=report.run, limit=999)}
            changed = {url.removeprefix(prefix) for url, kind in reported.items() if kind == "changed"}
            assert {url: kind for url, kind in reported.items() if kind != "changed"} == {
                **{prefix + name: "new" for name in step["added"]},
                **{prefix + name: "deleted" for name in step["removed"]},
            }
            assert changed <= set(step["modified"])
            assert len(changed) + report.unchanged == len(step["modified"])  # spaces at the end of a line
            assert report.unchanged <= 4
            assert (report.new, report.deleted) == (len(step["added"]), len(step["removed"]))
            assert report.not_modified == step["unchanged"]
            bodies = report.new + report.changed + report.unchanged
            assert work.calls - made == bodies + report.changed  # read; compared
            server.requests.clear()
            (again,) = await kb.runs.refresh(["docs"])
            assert (again.state, counts(again)) == ("completed", {"not_modified": len(trees[step["to"]]) - 1})
            assert server.requests == ASK
    async with opened(tmp_path / "fresh.db", WORDS) as kb:
        await kb.runs.crawl(target, name="docs")
    assert index_of(store) == index_of(tmp_path / "fresh.db")
    assert_sound(store)


async def test_F84_a_file_that_was_renamed_embeds_nothing(repo: Repo, kb: KnowledgeBase) -> None:
    repo.commit({"old.md": "# Anchor\n\nhold fast", "b.md": "# B"})
    assert (await kb.runs.crawl(repo.url, name="docs")).chunks_embedded == 2
    repo.commit({"new/name.md": "# Anchor\n\nhold fast", "b.md": "# B"})
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"new": 1, "deleted": 1, "not_modified": 1}
    assert report.chunks_embedded == 0
    assert await found(kb, "anchor") == {f"{repo.url}@HEAD/new/name.md"}


async def test_F30_a_server_that_is_down_keeps_everything(
    repo: Repo, tmp_path: Path, kb: KnowledgeBase, store: Path
) -> None:
    repo.commit({"a.md": "# Anchor\n\nhold fast"})
    with GitServer(repo.path.parent).running() as server:
        await kb.runs.crawl(server.at("r.git"), name="docs")
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    assert "no connection" in (report.error or "")
    assert len(await found(kb, "anchor")) == 1


async def test_F80_a_deleted_branch_and_an_emptied_repository_keep_everything(repo: Repo, kb: KnowledgeBase) -> None:
    repo.commit({"a.md": "# Anchor"}, "side")
    await kb.runs.crawl(f"{repo.url}@side", name="docs")
    repo.git("update-ref", "-d", "refs/heads/side")
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    assert "no branch or tag side" in (report.error or "")
    repo.commit({}, "side")
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    assert len(await found(kb, "anchor")) == 1
    repo.commit({"a.md": "# Anchor again"}, "side")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, counts(report)) == ("completed", {"changed": 1})


async def test_F34_a_branch_that_lost_most_files_waits_for_a_word(repo: Repo, kb: KnowledgeBase) -> None:
    many = {f"{number}.md": f"# Anchor {number}" for number in range(20)}
    repo.commit(many)
    await kb.runs.crawl(repo.url, name="docs")
    repo.commit({"0.md": "# Anchor 0"})
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "needs_confirmation"
    assert len(await found(kb, "anchor")) == 20
    assert (await kb.runs.confirm(report.run)).deleted == 19
    (again,) = await kb.runs.refresh(["docs"])
    assert counts(again) == {"not_modified": 1}


async def test_a_repository_is_named_displayed_and_opened(repo: Repo, kb: KnowledgeBase) -> None:
    repo.commit({"guide/é t.md": b"# Anchor\n\nhold fast", "logo.png": b"\x89PNG", ".env.md": b"# Secret"})
    report = await kb.runs.crawl(str(repo.path))
    assert counts(report) == {"new": 1}
    (displayed,) = await kb.sources.views()
    assert (displayed.name, displayed.kind, displayed.url) == ("r", "git", repo.url)
    page = await kb.pages.open(f"{repo.url}@HEAD/guide/é t.md")
    assert "hold fast" in page.markdown
    assert page.url == f"{repo.url}@HEAD/guide/%C3%A9%20t.md"
    assert (await kb.pages.history(page.url))[0].url == page.url


async def test_a_full_refresh_reads_every_file_again(repo: Repo, kb: KnowledgeBase) -> None:
    repo.commit({"a.md": "# A", "b.md": "# B"})
    await kb.runs.crawl(repo.url, name="docs")
    (report,) = await kb.runs.refresh(["docs"], full=True)
    assert counts(report) == {"unchanged": 2}


async def test_a_file_that_was_refused_is_not_asked_for_again_until_it_changes(
    repo: Repo, store: Path, work: type[InProcess]
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    repo.commit({"a.md": "# A", "film.md": pointer})
    async with opened(store) as kb:
        first = await kb.runs.crawl(repo.url, name="docs")
        assert counts(first) == {"new": 1, "refused": 1}
        repo.commit({"a.md": "# A2", "film.md": pointer})
        (then,) = await kb.runs.refresh(["docs"])
        assert then.changed == 1
        assert then.refused == 0
        repo.commit({"a.md": "# A2", "film.md": "# Film"})
        (last,) = await kb.runs.refresh(["docs"])
        assert last.new == 1


async def test_P19_a_password_in_an_address_reaches_no_store(kb: KnowledgeBase, store: Path) -> None:
    with pytest.raises(UsageError, match="credential_helper") as refused:
        await kb.runs.crawl("git+https://ana:hunter2@host.org/r.git")
    assert "hunter2" not in str(refused.value)
    assert b"hunter2" not in bytes_of(store)


def bytes_of(store: Path) -> bytes:
    return b"".join(file.read_bytes() for file in store.parent.glob(f"{store.name}*"))


async def test_a_preview_of_a_repository_lists_its_files(
    repo: Repo, server: GitServer, tmp_path: Path, work: type[InProcess]
) -> None:
    repo.commit({"a.md": b"# A", "docs/b.md": b"# B", "logo.png": b"\x89PNG\0"})
    async with opened(tmp_path / "kept.db", WORDS) as kb:
        preview = await kb.sources.preview(server.at("r.git"))
        assert (preview.kind, preview.listed, preview.trouble) == ("git", 2, None)
        assert [url.rpartition("/")[2] for url in preview.belong] == ["a.md", "b.md"]
        missing = await kb.sources.preview(server.at("nothing.git"))
        assert (missing.listed, bool(missing.trouble)) == (None, True)
        assert await kb.sources.views() == []
