"""The whole walk on PostgreSQL: what one store tells of a site, the other tells, whatever happens."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import counts, opened
from tests.e2e.program import Program
from tests.e2e.sites import lay, star, word
from tests.postgres import Postgres

from afresh.cli.demo import SEARCHES, change
from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES
from afresh.testing import TinySite

QUESTIONS = (*SEARCHES, "queue priorities", '"dead letter"', "retries*", "how do I install harbor", "timeout")
LIVE = ("url", "status", "title", "depth", "language", "missing_count", "moved_to", "doubt")


async def reported(kb: KnowledgeBase, base: str) -> dict[str, object]:
    """All that a reader can see, without addresses, numbers and times that differ."""
    pages = [asdict(page) for page in await kb.pages.of_source("docs", ALL_PAGES)]
    links = await kb.links.of_source("docs")
    hits = {query: await kb.search.search(query, limit=100, mode="text") for query in QUESTIONS}
    seen: dict[str, object] = {
        "pages": [{name: page[name] for name in LIVE} for page in pages],
        "links": [(link.url, link.text, link.page_count, link.pages) for link in links],
        "changes": sorted((each.url, each.kind) for each in await kb.pages.changes("docs")),
        "found": {query: sorted(hit.url for hit in answer.hits) for query, answer in hits.items()},
        "best": {query: (await kb.search.search(query, limit=1)).hits[0].url for query in SEARCHES},
    }
    seen["hashes"] = len({page["content_hash"] for page in pages})
    return {key: repr(value).replace(base, "SITE") for key, value in seen.items()}


async def walked(store: Path, flags: Mapping[str, object]) -> list[dict[str, object]]:
    """What is told after each step of the demo."""
    steps: list[dict[str, object]] = []
    with TinySite.docs() as site:
        base = site.url.rstrip("/")
        async with opened(store, flags) as kb:
            steps += [dict(counts(await kb.runs.crawl(site.url, name="docs"))), await reported(kb, base)]
            steps += [dict(counts(report)) for report in await kb.runs.refresh(["docs"])]
            change(site)
            steps += [dict(counts(report)) for report in await kb.runs.refresh(["docs"])]
            steps.append(await reported(kb, base))
    return steps


async def test_A27_a_site_is_the_same_in_every_store_step_by_step(
    store: Path, work: type[InProcess], postgres: Postgres
) -> None:
    ours = await walked(store, {})
    theirs = await walked(store, {"store.url": await postgres.emptied()})
    for step, (here, there) in enumerate(zip(ours, theirs, strict=True)):
        for key in here:
            assert there[key] == here[key], f"{key} of step {step}"


async def test_P1_P2_a_crawl_killed_between_two_steps_of_a_commit_goes_on(
    tiny: TinySite, store: Path, postgres: Postgres
) -> None:
    lay(tiny, star(12))
    url = await postgres.emptied()
    program = Program(store, in_process=True, url=url)
    for point in ("commit.pages=kill", "sql.commit=kill@9", "sql.done=kill@9"):
        assert program.run("crawl", tiny.url, "--name", "docs", failpoints=point).code == -9
    last = program.run("crawl", tiny.url, "--name", "docs", "--json")
    assert (last.code, last.report["state"]) == (0, "completed"), last.err
    async with opened(store, {"store.url": url}) as kb:
        pages = await kb.pages.of_source("docs")
        assert sorted(page.url for page in pages) == sorted({page.url for page in pages})
        assert len(pages) == 13
        assert (await kb.status.get()).in_flight == 0
    status = program.run("status", "--json")
    assert (status.code, status.report["pages"]) == (0, 13)


async def test_without_pgvector_words_answer_and_the_first_command_says_so(
    tiny: TinySite, store: Path, work: type[InProcess], postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(connection: object) -> bool:
        return False

    monkeypatch.setattr("afresh.store.postgres.use_pgvector", missing)
    lay(tiny, star(3))
    message: list[object] = []
    async with postgres.bare() as url, opened(store, {"store.url": url}) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs", listener=message.append)
        assert (report.state, counts(report)) == ("completed", {"new": 4})
        assert any("no pgvector" in getattr(each, "text", "") for each in message)
        answer = await kb.search.search(word("/p1"))
        assert [hit.url for hit in answer.hits] == [tiny.at("/p1")]
        assert not answer.notes  # it was said once
        [finding] = [each for each in await kb.status.doctor() if each.check == "vectors"]
        assert (finding.ok, "create extension vector" in str(finding.fix)) == (False, True)
