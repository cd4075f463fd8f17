"""Several sources in one library: a site and a folder, refreshed together and searched as one."""

import os
from pathlib import Path

import pytest
from tests.e2e.library import counts
from tests.e2e.sites import page

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.testing import TinySite


@pytest.fixture
async def library(kb: KnowledgeBase, tiny: TinySite, tmp_path: Path) -> KnowledgeBase:
    """`quarry@2` from a site and a folder, `quarry@1` from a folder alone."""
    tiny.put("/", page("The granite site", []))
    for version in ("1", "2"):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "notes.md").write_text(f"# Notes of version {version}\n\nAll about granite.\n")
        os.utime(folder / "notes.md", (1_700_000_000, 1_700_000_000))
        await kb.runs.crawl(str(folder), name="quarry/notes", version=version)
    await kb.runs.crawl(tiny.url, name="quarry/site", version="2")
    return kb


async def test_A28_a_library_is_searched_as_one(library: KnowledgeBase, tiny: TinySite) -> None:
    answer = await library.search.search("granite", within=["quarry@2"])
    assert {(hit.source, hit.version) for hit in answer.hits} == {("quarry/site", "2"), ("quarry/notes", "2")}
    newest = await library.search.search("granite", within=["quarry"])
    assert {hit.version for hit in newest.hits} == {"2"}
    (hit,) = (await library.search.search("granite", within=["quarry@1"])).hits
    assert (hit.source, hit.version) == ("quarry/notes", "1")
    found = await library.sources.find_version("quarry@^1")
    assert (found.version, found.versions) == ("1", ("2", "1"))
    assert (await library.pages.open(tiny.url, within="quarry")).url == tiny.url


async def test_A28_a_library_is_refreshed_together(library: KnowledgeBase) -> None:
    reports = await library.runs.refresh(["quarry@2"])
    assert [(report.source, counts(report)) for report in reports] == [
        ("quarry/notes", {"not_modified": 1}),
        ("quarry/site", {"not_modified": 1}),
    ]


async def test_what_wants_one_source_names_those_of_the_library(library: KnowledgeBase, tiny: TinySite) -> None:
    with pytest.raises(UsageError, match="there is no source quarry; did you mean quarry@2 or quarry@1"):
        await library.sources.remove("quarry")
    with pytest.raises(
        UsageError, match="quarry@2 is a library; name one of its sources: quarry/notes@2, quarry/site@2"
    ):
        await library.pages.of_source("quarry@2")
    with pytest.raises(UsageError, match="there is no source quarry@9; did you mean quarry@2 or quarry@1"):
        await library.runs.refresh(["quarry@9"])
    with pytest.raises(UsageError, match="--name quarry/site/docs puts both into the library"):
        await library.runs.crawl(tiny.at("/other/"), name="quarry/site", version="2")
