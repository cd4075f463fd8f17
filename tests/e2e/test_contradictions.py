"""Settings of a source that cannot be meant together: refused, and where they are on record harm no other."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.e2e.library import opened

from afresh.errors import ConfigError, UsageError
from afresh.events import Event, Notice
from afresh.kb import KnowledgeBase
from afresh.model.records import Source

WORDS: dict[str, object] = {"embedding.provider": "none"}
SITE, OTHER = "https://docs.example.org/", "https://other.example.org/"
WHY = "policy.heartbeat_seconds (25) must be at most half of policy.lease_seconds (10)"


async def added(kb: KnowledgeBase, target: str, name: str, **settings: object) -> Source:
    source, _ = await kb.sources.add(target, name=name, version=None, settings=settings)
    return source


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        ({"heartbeat_seconds": 25}, {"lease_seconds": 10}, "heartbeat_seconds"),
        ({"keywords": {"budget": 1.0}}, {"scorer": "model"}, "links.scorer"),
        ({"backoff_base_seconds": 0.02}, {"backoff_max_seconds": 0.01}, "backoff_base_seconds"),
    ],
)
async def test_a_setting_that_contradicts_what_the_source_has_is_refused_wherever_it_is_given(
    tmp_path: Path, first: Mapping[str, object], then: Mapping[str, object], why: str
) -> None:
    async with opened(tmp_path / "kb.db", WORDS) as kb:
        source = await added(kb, SITE, "docs", **first)
        with pytest.raises(ConfigError, match=why):
            await kb.sources.change(source, settings=then)
        with pytest.raises(ConfigError, match=why):
            await kb.sources.add(SITE, name="docs", version=None, settings=then)
        with pytest.raises(ConfigError, match=why):
            await kb.runs.crawl(SITE, name="docs", policy=then)
        with pytest.raises(ConfigError, match=why):
            await kb.runs.crawl(SITE, name="docs", policy=then, queue=True)
        assert (await kb.sources.view("docs")).policy == first, "nothing was written"
        assert (await kb.sources.change(source, settings=then, reset=list(first)))[0].policy == then


async def test_a_source_that_contradicts_the_settings_of_the_machine_is_reported_of_and_the_others_work(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "kb.db", WORDS) as kb:
        for target, name in ((SITE, "docs"), (OTHER, "other")):
            await added(kb, target, name, schedule="every 1h")
        await kb.sources.change((await kb.sources.all())[0], settings={"heartbeat_seconds": 25})
    reported: list[Event] = []
    async with opened(tmp_path / "kb.db", {**WORDS, "policy.lease_seconds": 10}) as kb:
        views = {view.name: view.trouble for view in await kb.sources.views()}
        assert (views["other"], WHY in str(views["docs"])) == (None, True)
        assert WHY in str((await kb.sources.view("docs")).trouble)
        assert [bool(each.trouble) for each in (await kb.status.get()).freshness] == [True, False]
        single_fetches = await kb.sources.overviews(await kb.sources.all())
        assert [bool(each.view.trouble) for each in single_fetches] == [True, False]
        assert [WHY in finding.detail for finding in await kb.status.doctor() if not finding.ok].count(True) == 1
        assert [each.source for each in await kb.schedules.records()] == ["other"]
        assert (await kb.search.search('"retry"', context=True)).hits == ()
        for _ in range(2):
            assert await kb.schedules.keep(once=True, queues=True, listener=reported.append)
        assert [run.source for run in await kb.runs.records(None, below=None, limit=9)] == ["other"]
        assert [WHY in each.text for each in reported if isinstance(each, Notice)] == [True, True], "once each"
        assert [run.source for run in await kb.runs.refresh(due=True, queue=True)] == ["other"]
        docs = (await kb.sources.all())[0]
        with pytest.raises(ConfigError, match="heartbeat"):
            await kb.schedules.of_source(docs)
        await kb.sources.change(docs, reset=["heartbeat_seconds"])
        assert {view.trouble for view in await kb.sources.views()} == {None}


async def test_an_unknown_address_that_such_a_source_links_to_is_reported_of_too(tmp_path: Path) -> None:
    async with opened(tmp_path / "kb.db", WORDS) as kb:
        docs = await added(kb, SITE, "docs", heartbeat_seconds=25)
        page = await kb.pages.add(docs, f"{SITE}a")
        await kb.links.add(page.id, f"{SITE}b", "b")
    async with opened(tmp_path / "kb.db", {**WORDS, "policy.lease_seconds": 10}) as kb:
        for ask in (kb.pages.open, kb.pages.explain):
            with pytest.raises(UsageError, match=f"b is linked from {SITE}a, but the settings of docs are"):
                await ask(f"{SITE}b")
