"""What can be asked afterwards: why, changes, history, plan."""

import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from tests.e2e.library import rows
from tests.e2e.sites import lay, page, star

from afresh.cli.details import _freshness as freshness
from afresh.dataclass import replace
from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind
from afresh.testing import TinySite


async def test_why_says_the_evidence_of_each_kind_of_look(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(5))
    tiny.robots("User-agent: *\n\nDisallow: /p4\n")
    await kb.runs.crawl(tiny.url, name="docs")
    assert (await kb.pages.explain(tiny.at("/p0"))).summary == "200, first content"
    etag = {view.url: view.etag for view in await kb.pages.of_source("docs")}[tiny.at("/p0")]
    tiny.edit("/p1", add_paragraph="changed")
    tiny.delete("/p2")
    await kb.runs.refresh(["docs"])
    message = {path: (await kb.pages.explain(tiny.at(path))).summary for path in ("/p0", "/p1", "/p2", "/p4")}
    assert message["/p0"] == f"304 by ETag {etag}"
    assert message["/p1"].startswith("200, content hash changed from ")
    assert message["/p2"] == "the server answers 404: the page does not exist"
    assert message["/p4"].startswith("not fetched: robots.txt line 3")
    why = await kb.pages.explain(tiny.at("/p1"), within="docs")
    assert (why.linked_from, why.attempts) == ((tiny.url,), 2)
    assert why.next_look is not None
    assert why.page.checked_at is not None
    assert why.next_look > why.page.checked_at


async def test_why_says_when_the_page_is_really_checked_next(kb: KnowledgeBase, tiny: TinySite) -> None:
    names = ["/a", "/b", "/c", "/d", "/e", "/f", "/g"]
    lay(tiny, {"/": [*names, "/gone"], **{name: ["/", "/gone"] for name in names}})
    tiny.delete("/gone")
    await kb.runs.crawl(tiny.url, name="docs")
    whys = [await kb.pages.explain(tiny.at(path)) for path in ("/a", "/gone")]
    unplanned = [(None, "no schedule: with the next refresh")] * 2
    assert [(why.next_check, why.next_check_note) for why in whys] == unplanned
    assert (len(whys[1].linked_from), whys[1].linked_from_count) == (5, 8)
    [source] = await kb.sources.all()
    await kb.schedules.set_rule([source], "every 6h")
    run_at = (await kb.sources.view("docs")).next_time
    assert run_at is not None
    assert [(await kb.pages.explain(tiny.at(path))).next_check for path in ("/a", "/gone")] == [run_at] * 2
    for name in ["/", *names]:
        tiny.put(name, page(name, names if name == "/" else []))
    await kb.runs.refresh(["docs"])
    gone = await kb.pages.explain(tiny.at("/gone"))
    assert (gone.next_check, gone.next_check_note) == (None, "when a page links to it again")


async def test_why_knows_what_was_never_looked_at(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs")
    with pytest.raises(UsageError, match="not indexed"):
        await kb.pages.explain(tiny.at("/never"))


async def test_changes_say_new_changed_deleted_with_a_diff(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(3))
    first = await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/p0", page("/p0", ["/"], "The old sentence went, a new one came."))
    tiny.delete("/p1")
    tiny.put("/p2", page("/p2", ["/", "/p9"]))
    tiny.put("/p9", page("/p9"))
    (second,) = await kb.runs.refresh(["docs"])
    assert {each.kind for each in await kb.pages.changes("docs", run=first.run)} == {ChangeKind.NEW}
    seen = {each.url: each for each in await kb.pages.changes("docs", run=second.run)}
    kinds = {url.removeprefix(tiny.url): each.kind.value for url, each in seen.items()}
    assert kinds == {"p0": "changed", "p1": "deleted", "p2": "changed", "p9": "new"}
    diff = seen[tiny.at("/p0")].diff or ""
    assert "+The old sentence went, a new one came." in diff
    assert "-This page speaks of wxp0 and of little else." in diff
    assert seen[tiny.at("/p0")].old_hash != seen[tiny.at("/p0")].new_hash
    assert [each.run for each in await kb.pages.changes(limit=2)] == [second.run] * 2
    assert len(await kb.pages.changes()) == 4 + 4


async def test_B3_B4_B13_every_attempt_is_a_row_and_can_be_listed(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.fail("/p0", 503)
    await kb.runs.refresh(["docs"])
    tiny.restore("/p0")
    await kb.runs.refresh(["docs"])
    history = await kb.pages.history(tiny.at("/p0"), within="docs")
    ended = [each.outcome for each in history if each.outcome]
    assert ended == [Outcome.NOT_MODIFIED, *[Outcome.BLOCKED_5XX] * 3, Outcome.SUCCESS]
    assert all(each.completed_at and not each.locked_by for each in history if each.outcome)
    waiting = [each for each in history if each.outcome is None]
    assert len(waiting) == 1  # the next look is there already, and only once
    assert history == await kb.pages.history(tiny.at("/p0"))


async def test_plan_writes_nothing_and_asks_nobody(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(6))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.delete("/p1")
    await kb.runs.refresh(["docs"])
    tiny.requests.clear()
    before = _prints(store)
    plan = await kb.sources.plan("docs")
    assert _prints(store) == before
    assert len(tiny.requests) == 0
    assert (plan.known, plan.conditional, plan.unconditional, plan.not_looked_at) == (6, 6, 0, 0)
    assert plan.root == tiny.url
    assert plan.estimated_seconds is not None


def _prints(store: Path) -> tuple[object, ...]:
    """Fingerprints of every file of the store and of every row."""
    files = {file.name: sha256(file.read_bytes()).hexdigest() for file in store.parent.glob("kb.db*")}
    files.pop("kb.db-shm", None)  # readers leave their marks in it
    tables = [name for (name,) in rows(store, "select name from sqlite_master where type = 'table'")]
    return files, {name: rows(store, f"select * from {name}") for name in tables}


async def test_plan_says_what_the_rules_now_leave_out(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/a", "/x/b"], "/a": [], "/x/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    await kb.runs.crawl(tiny.url, name="docs", rules={"exclude": ["/x/*"]})
    plan = await kb.sources.plan("docs")
    assert (plan.known, plan.not_looked_at) == (2, 1)


async def test_links_show_where_they_stand(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": ["/b"], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    views = {view.url: view for view in await kb.links.of_source("docs")}
    assert views[tiny.at("/b")].pages == (tiny.url, tiny.at("/a"))
    assert [view.url for view in await kb.links.of_source("docs", page=tiny.at("/a"))] == [tiny.at("/b")]


async def test_C14_links_of_pages_that_left_are_cleaned_up(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/only-here"]})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", []))
    for _ in range(3):
        await kb.runs.refresh(["docs"])
    assert [view.url for view in await kb.links.of_source("docs")] == []
    await kb.runs.refresh(["docs"])
    assert (await kb.sources.view("docs")).links == 0
    assert rows(store, "select url from links") == []


async def test_a_search_hit_is_fresh_and_marked(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs", version="2")
    hit, *_ = (await kb.search.search("wxp1", within=["docs@2"])).hits
    assert (hit.url, hit.title, hit.source, hit.version) == (tiny.at("/p1"), "/p1", "docs", "2")
    assert "\x02wxp1\x03" in hit.text
    assert hit.checked_at is not None
    assert hit.changed_at is not None
    for query in ('"', "a AND", "-x", "foo:bar", "(", "*", "NEAR/2", "", "''"):
        await kb.search.search(query)


async def test_status_says_the_reason_of_an_outage_once_per_host(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(7))
    await kb.runs.crawl(tiny.url, name="docs")
    for number in range(6):
        tiny.fail(f"/p{number}", 500 if number < 2 else 400 + number)
    await kb.runs.refresh(["docs"])
    [fresh] = (await kb.status.get()).freshness
    assert [(group.count, group.first.url) for group in fresh.backing_off_groups][:1] == [(2, tiny.at("/p0"))]
    assert fresh.backing_off_count == 5
    some = replace(fresh, backing_off_groups=fresh.backing_off_groups[:2])
    _, pages, one, more = (line.plain for line in freshness(some, datetime.now(UTC)))
    assert re.match(r"  127\.0\.0\.1:\d+: 2 pages failed, next check at .+ \(", pages)
    assert one.startswith(f"  {some.backing_off_groups[1].first.url} failed once, next check at ")
    assert more == "  and 2 more"
