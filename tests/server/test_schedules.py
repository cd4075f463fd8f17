"""Schedules, syncs, folders and searches in parts, as those who call the server use them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened, settings
from tests.e2e.sites import lay, star
from tests.server.served import Client, served

from afresh.testing import FrozenClock, TinySite

API = "/api/v1"
WORDS = {"embedding.provider": "none"}


@asynccontextmanager
async def three_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """A server with the sources docs, other and docs/third of four pages; two of them have a sink."""
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    store = tmp_path / "kb.db"
    flags = {
        "sinks.out.kind": "folder",
        "sinks.out.path": str(tmp_path / "out"),
        "sinks.out.sources": ["docs", "docs/third"],
        **WORDS,
    }
    with TinySite() as site:
        lay(site, star(3))
        async with opened(store, WORDS, clock=FrozenClock()) as kb:
            for name in ("docs", "other", "docs/third"):
                await kb.runs.crawl(site.url, name=name)
    async with served(store, works=False, config=settings(store, flags)) as client:
        yield client


async def test_C1_F106_schedules_are_set_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with three_sources(tmp_path, monkeypatch) as client:
        assert (await client.get("/ready"))["schedules"] == "elsewhere"
        assert (await client.get(f"{API}/schedules"))["items"] == []
        assert (await client.ask("GET", f"{API}/sources/1/schedule"))[0] == 404
        rules = {
            1: {"schedule": "30 4 * * *", "time_zone": "Europe/Berlin"},
            2: {"schedule": "every 6h"},
            3: {"schedule": "auto", "budget": "20/d"},
        }
        for number, rule in rules.items():
            status, view = await client.ask("PUT", f"{API}/sources/{number}/schedule", json=rule)
            assert (status, view["source_id"]) == (200, number)
            assert rule.items() <= view.items()
            assert view == await client.get(f"{API}/sources/{number}/schedule")
        first = await client.get(f"{API}/schedules?limit=2")
        rest = await client.get(f"{API}/schedules", params={"cursor": first["next"]})
        assert [each["source"] for each in first["items"] + rest["items"]] == ["docs", "other", "docs/third"]
        assert (rest["next"], rest["items"][0]["next_time"] is not None) == (None, True)


async def test_F106_a_schedule_is_checked_replaced_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with three_sources(tmp_path, monkeypatch) as client:
        status, view = await client.ask("PUT", f"{API}/sources/1/schedule", json={"schedule": "@daily"})
        assert (status, view["time_zone"]) == (200, "UTC"), "what is not named is the default"
        for wrong, field in (
            ({"schedule": "61 * * * *"}, "schedule"),
            ({"schedule": "every 5s"}, "schedule"),
            ({"schedule": "@daily", "time_zone": "Mars/Base"}, "time_zone"),
            ({"schedule": "auto", "budget": "much"}, "budget"),
            ({"schedule": "@daily", "when": "now"}, "when"),
            ({}, "schedule"),
        ):
            status, content = await client.ask("PUT", f"{API}/sources/1/schedule", json=wrong)
            assert (status, field in content["detail"]) == (422, True), (wrong, content)
        assert (await client.get(f"{API}/sources/1/schedule"))["schedule"] == view["schedule"]
        assert (await client.ask("DELETE", f"{API}/sources/1/schedule"))[0] == 204
        assert (await client.ask("GET", f"{API}/sources/1/schedule"))[0] == 404


async def test_C1_F106_all_pages_wait_and_those_are_due_whose_time_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with three_sources(tmp_path, monkeypatch) as client:
        waiting, cursor = list[str](), None
        while cursor or not waiting:
            params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
            part = await client.get(f"{API}/sources/2/due", params=params)
            waiting += [each["url"] for each in part["items"]]
            assert all(each["due"] for each in part["items"])
            cursor = part["next"]
        assert len(set(waiting)) == len(waiting) == 4
        [page] = (await client.get(f"{API}/sources/2/pages", params={"url": waiting[0]}))["items"]
        late = {"next_look": "2999-01-01T00:00:00Z"}
        assert (await client.ask("PATCH", f"{API}/pages/{page['id']}", json=late))[0] == 200
        due = (await client.get(f"{API}/sources/2/due"))["items"]
        assert [each["url"] for each in due] == waiting[1:]
        last = (await client.get(f"{API}/sources/2/due?all=true"))["items"][-1]
        assert last == {"url": waiting[0], "due": False, "planned": late["next_look"], **late}
        for wrong_cursor in (
            "WyJ4Iiwi4oCmIl0",
            "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwgIiJd",
        ):  # no time, and one that no store can hold
            assert (await client.ask("GET", f"{API}/sources/2/due?cursor={wrong_cursor}"))[0] == 422


async def urls_of(client: Client, **asked: str) -> list[str]:
    """The pages of docs; the status of each is that of its copy."""
    found = (await client.get(f"{API}/sources/1/pages", params=asked))["items"]
    assert all(each["status"] == each["copies"][0]["state"] for each in found)
    return [each["url"] for each in found]


async def test_D22_pages_are_filtered_by_the_state_of_their_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with three_sources(tmp_path, monkeypatch) as client:
        waiting = await urls_of(client)
        assert await urls_of(client, status="ready_for_indexing") == waiting == await urls_of(client, language="EN")
        assert await urls_of(client, url=waiting[0], status="ready_for_indexing") == waiting[:1]
        assert await urls_of(client, url=waiting[0], status="active") == await urls_of(client, status="active") == []


async def test_D22_F106_copies_are_synced_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with three_sources(tmp_path, monkeypatch) as client:
        waiting = await urls_of(client)
        status, content = await client.ask("POST", f"{API}/sources/1/sync", json={"dry_run": True})
        assert (status, content["reports"][0]["uploaded"], (tmp_path / "out").exists()) == (200, 4, False), (
            "not docs/third"
        )
        assert (content["reports"][0]["dry_run"], content["reports"][0]["runs"]) == (True, [])
        status, content = await client.ask("POST", f"{API}/sources/1/sync", json={"verify": True})
        assert (status, content["reports"][0]["uploaded"]) == (200, 4)
        [number] = content["reports"][0]["runs"]
        await check_run_of_sync(client, number)
        assert sorted(await urls_of(client, status="active")) == sorted(waiting)
        [sink] = (await client.get(f"{API}/sources/1/copies"))["sinks"]
        assert (sink["sink"], sum(sink["states"].values())) == ("out", 4)
        copied, cursor = list[tuple[str, str]](), None
        while cursor or not copied:
            more = {"sink": "out", "limit": 3} | ({"cursor": cursor} if cursor else {})
            part = await client.get(f"{API}/sources/1/copies/pages", params=more)
            copied += [(each["url"], each["copy"]["state"]) for each in part["items"]]
            cursor = part["next"]
        assert sorted(copied) == sorted((url, "active") for url in waiting)
        rest = await client.get(f"{API}/sources/1/copies/pages", params={"sink": "out", "state": "error"})
        assert rest["items"] == []
        assert (await client.ask("GET", f"{API}/sources/1/copies/pages?sink=other"))[0] == 422
        for number, body in ((2, {}), (1, {"to": ["nowhere"]})):
            status, content = await client.ask("POST", f"{API}/sources/{number}/sync", json=body)
            assert (status, "sinks" in content["detail"] or "nowhere" in content["detail"]) == (422, True), content


async def check_run_of_sync(client: Client, number: int) -> None:
    """R9, D21: a sync is a run with the states of its documents."""
    run = await client.get(f"{API}/runs/{number}")
    assert (run["mode"], run["state"], run["documents"]["uploaded"]) == ("sync", "completed", 4)
    assert run["finished_at"] >= run["started_at"]
    assert (await client.get(f"{API}/sources/1/runs"))["items"][0] == run
    first = await client.get(f"{API}/runs/{number}/documents", params={"limit": 3})
    rest = await client.get(f"{API}/runs/{number}/documents", params={"cursor": first["next"]})
    found = [*first["items"], *rest["items"]]
    assert [(each["outcome"], each["state"], each["state_now"]) for each in found] == [
        ("uploaded", "active", "active")
    ] * 4
    assert all(each["remote_id"] and each["remote_name"] and each["sink"] == "out" for each in found)
    none = await client.get(f"{API}/runs/{number}/documents", params={"outcome": "failed"})
    assert none["items"] == []
    status, content = await client.ask("POST", f"{API}/runs/{number}/cancel")
    assert (status, "is a sync" in content["detail"]) == (422, True)


async def test_C15_hits_come_in_parts_without_repeats_while_pages_change(
    tmp_path: Path, site: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    store = tmp_path / "kb.db"
    async with opened(store, WORDS) as kb, served(store, works=False, config=settings(store, WORDS)) as client:
        await kb.runs.crawl(site.url, name="harbor")

        async def found(limit: int, **more: str) -> tuple[list[str], str | None]:
            params = {"q": "configuration", "mode": "text", "limit": str(limit), **more}
            content = await client.get(f"{API}/search", params=params)
            every = "all_passages" in more
            return [f"{hit['url']} {hit['text'] if every else ''}" for hit in content["hits"]], content["next"]

        for more in ({}, {"all_passages": "true"}):
            seen, cursor = await found(3, **more)
            while cursor:
                hits, cursor = await found(3, cursor=cursor, **more)
                seen += hits
            whole, none = await found(100, **more)
            assert none is None
            assert len(set(seen)) == len(seen) > 6
            assert set(seen) == set(whole)

        first, cursor = await found(3)
        assert cursor is not None
        site.edit("/" + first[0].strip().removeprefix(site.url), add_paragraph="Tea is no configuration.")
        await kb.runs.refresh(["harbor"])
        rest, _ = await found(100, cursor=cursor)
        assert set(first).isdisjoint(rest), "what was visible is not visible again in another form"
        assert len(rest) >= len((await found(100))[0]) - 3
        for wrong in ({"q": "another", "cursor": cursor}, {"cursor": "x"}, {"cursor": f"{cursor}AAAA"}):
            asked = {"q": "configuration", "mode": "text", **wrong}
            status, content = await client.ask("GET", f"{API}/search", params=asked)
            assert (status, "cursor" in content["detail"]) == (422, True)


async def test_F106_a_caller_names_folders_only_below_those_that_the_settings_open(tmp_path: Path) -> None:
    root, store = tmp_path / "open", tmp_path / "kb.db"
    for folder in (root / "notes", tmp_path / "open-not", tmp_path / "closed"):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("# A\n", "utf-8")
    (root / "way-out").symlink_to(tmp_path / "closed")
    (root / "way-in").symlink_to(root / "notes")
    config = settings(store, {"server.allowed_roots": [str(root)]})
    async with served(store, works=False, config=config) as client:

        async def add(target: str) -> tuple[int, str]:
            status, content = await client.ask("POST", f"{API}/sources", json={"target": target, "run": False})
            return status, content.get("kind") or content["detail"]

        for target in (str(root / "notes"), f"file://{root}", str(root / "closed" / ".." / "way-in")):
            assert await add(target) in ((201, "folder"), (200, "folder")), target
        for target in (
            *(str(tmp_path / "closed"), str(tmp_path / "open-not"), str(tmp_path), "/"),
            *(str(root / "way-out"), str(root / ".." / "closed"), f"file://{root}/../closed"),
            *("./open/notes", "~/notes", f"git+file://{root}/notes", f"file://{root}/%2e%2e/closed"),
        ):
            status, content = await add(target)
            assert (status, "allowed_roots" in content) == (422, True), (target, content)
