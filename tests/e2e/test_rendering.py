"""Pages that need a browser, from outside: crawled with the Chromium of this machine."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import counts, found, opened

from afresh.testing.script_site import ScriptSite, WalledSite

AUTO = {"crawl.render": "auto", "crawl.probe": False}


async def test_C21_a_site_made_by_script_is_crawled_and_again_without_a_change(
    store: Path, work: type[InProcess]
) -> None:
    with ScriptSite.guide() as site:
        async with opened(store, AUTO) as kb:
            first = await kb.crawl(site.url, name="docs")
            second = await kb.refresh(["docs"])
            hits = await found(kb, "harbors")
    assert counts(first) == {"new": 4}
    assert first.rendered == 4
    assert any("shown in chromium" in note for note in first.notes)
    assert hits == {site.at(f"/guide/{number}") for number in (1, 2, 3)}
    assert counts(second[0]) == {"unchanged": 4}
