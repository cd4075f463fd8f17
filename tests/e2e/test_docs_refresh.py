"""A real documentation through four of its versions: the report equals the manifest, the index a fresh one.

The trees are Markdown from the history of fastapi's documentation (../shared/data/docs-refresh); here they
are rendered to plain HTML pages below an index page that links to all of them.
"""

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, index_of, opened
from tests.e2e.real_docs import Tree, at, serve, versions_in
from tests.e2e.sites import looks
from tests.e2e.stores import attached, texts
from tests.fakes.gemini_server import GeminiServer

from afresh.crawl.tools import RunTools
from afresh.crawl.visit import PendingVisit, process_pending
from afresh.kb import KnowledgeBase
from afresh.model.records import Visit
from afresh.testing import TinySite


@pytest.fixture(scope="module")
def manifest(shared: Path) -> Mapping[str, Any]:
    """What changed from each version to the next."""
    text = (shared / "data" / "docs-refresh" / "fastapi.json").read_text("utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@pytest.fixture(scope="module")
def versions(shared: Path) -> Mapping[str, Tree]:
    """The pages of each version, by their file."""
    return versions_in(shared)


def reworded(name: str, old: Tree, new: Tree) -> bool:
    """Whether a reader sees a difference; some edits only write the same link in another notation."""
    return _visible(old[name]) != _visible(new[name])


def _visible(text: str) -> str:
    return unescape(re.sub(r'<a [^>]*?(href="[^"]*")[^>]*>', r"<a \1>", text))


@pytest.mark.slow
async def test_P6_P7_four_versions_are_followed_exactly_as_the_manifest_says(
    manifest: Mapping[str, Any],
    versions: Mapping[str, Tree],
    tmp_path: Path,
    tiny: TinySite,
    work: type[InProcess],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = tmp_path / "kept.db"
    pending: list[PendingVisit] = []

    async def counted(waiting: PendingVisit, tools: RunTools) -> Visit:
        pending.append(waiting)
        return await process_pending(waiting, tools)

    monkeypatch.setattr("afresh.crawl.worker.process_pending", counted)
    with GeminiServer() as gemini:
        async with attached(store, gemini) as kb:
            serve(tiny, versions["s1"])
            first = await kb.runs.crawl(tiny.url, name="docs")
            assert (first.state, counts(first)) == ("completed", {"new": len(versions["s1"]) + 1})
            assert await _sent(kb, gemini) == (first.new, 0)
            for step in manifest["steps"]:
                serve(tiny, versions[step["to"]])
                tiny.requests.clear()
                work.of.clear()
                pending.clear()
                (report,) = await kb.runs.refresh(["docs"])
                if report.state == "needs_confirmation":
                    report = await kb.runs.confirm(report.run)
                assert report.state == "completed"
                old, new = versions[step["frm"]], versions[step["to"]]
                changed = [name for name in step["modified"] if reworded(name, old, new)]
                assert len(step["modified"]) - len(changed) <= 4
                listed = {
                    each.url: each.kind.value for each in await kb.pages.changes("docs", run=report.run, limit=999)
                }
                assert listed == {
                    tiny.url: "changed",
                    **{tiny.at(at(name)): "new" for name in step["added"]},
                    **{tiny.at(at(name)): "changed" for name in changed},
                    **{tiny.at(at(name)): "deleted" for name in step["removed"]},
                }
                reported = counts(report)
                reported.pop("missing", None)  # what a dead page alone had linked to
                assert reported == {
                    "new": len(step["added"]),
                    "changed": len(changed) + 1,
                    "not_modified": step["unchanged"],
                    **_unless_none("unchanged", len(step["modified"]) - len(changed)),
                    **_unless_none("deleted", len(step["removed"])),
                }
                assert set(index_of(store)) == {tiny.url, *(tiny.at(at(name)) for name in new)}
                assert max(looks(tiny).values()) == 1
                bodies = report.new + report.changed + report.unchanged
                assert work.of == {
                    "extract_and_chunk": bodies,
                    "markdown_diff": report.changed,
                    **_unless_none("chunk", len(pending)),  # decided after the others, their chunks not kept meanwhile
                }
                uploads = len(step["added"]) + len(changed) + 1
                assert await _sent(kb, gemini) == (uploads, len(step["removed"]) + len(changed) + 1)
                assert texts(gemini) == {url: each.markdown for url, each in index_of(store).items()}
                (again,) = await kb.runs.refresh(["docs"])
                assert counts(again) == {"not_modified": len(new) + 1}
    async with opened(tmp_path / "fresh.db") as kb:
        await kb.runs.crawl(tiny.url, name="docs")
    assert index_of(store) == index_of(tmp_path / "fresh.db")
    assert_sound(store)


async def _sent(kb: KnowledgeBase, gemini: GeminiServer) -> tuple[int, int]:
    """What a sync uploads to Gemini File Search, and what it deletes there."""
    gemini.forget()
    (report,) = await kb.sinks.sync()
    assert report.state == "completed"
    return gemini.kinds["upload.start"], gemini.kinds["documents.delete"]


def _unless_none(name: str, number: int) -> dict[str, int]:
    return {name: number} if number else {}
