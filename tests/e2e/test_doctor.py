"""`afresh doctor` on stores and settings that are well, and on those that are not."""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened, settings
from tests.e2e.sites import lay, star
from tests.store.powerless import powerless

from afresh.app import build
from afresh.errors import StoreDamaged, StoreMissing
from afresh.model.reports import Finding
from afresh.ports import StoreAccess
from afresh.services.doctor import without_store
from afresh.testing import TinySite

CHECKS = [
    "python",
    "settings",
    "network",
    "disk",
    "browser",
    "model",
    "store",
    "integrity",
    "workers",
    "runs",
    "content",
    "vectors",
    "clock",
]


@pytest.fixture
async def filled(tiny: TinySite, store: Path, work: type[InProcess]) -> Path:
    """A store with a small site."""
    lay(tiny, star(5))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
    return store


async def examined(store: Path, flags: Mapping[str, object] | None = None) -> dict[str, Finding]:
    """What the doctor finds."""
    kb = await build(settings(store, flags), access=StoreAccess.READ)
    findings = await kb.status.doctor()
    await kb.close()
    assert [finding.check for finding in findings] == CHECKS
    assert all(finding.fix for finding in findings if not finding.ok), "what is wrong can be put right"
    return {finding.check: finding for finding in findings}


def change(store: Path, *statements: str) -> None:
    """Write to a store behind the program's back."""
    with closing(sqlite3.connect(store)) as connection:
        for sql in statements:
            connection.execute(sql)
        connection.commit()


async def wrong(store: Path, flags: Mapping[str, object] | None = None) -> list[str]:
    """The checks that did not go well."""
    return [name for name, finding in (await examined(store, flags)).items() if not finding.ok]


async def test_all_is_well_after_a_crawl(filled: Path) -> None:
    assert await wrong(filled) == []


async def test_F16_a_store_that_cannot_be_written_to_is_found(filled: Path) -> None:
    filled.chmod(0o444)
    filled.parent.chmod(0o555)
    with powerless():
        found = await examined(filled)
    assert [name for name, finding in found.items() if not finding.ok] == ["store"]
    assert "can only be read" in found["store"].detail


async def test_F14_a_lock_of_another_process_is_found(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.app.TRY_SECONDS", 0.0)
    with closing(sqlite3.connect(filled, isolation_level=None)) as other:
        other.execute("begin exclusive")
        found = await examined(filled)
    assert "locked by another process" in found["store"].detail


async def test_F17_damage_is_found_with_the_way_back(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        [root] = connection.execute("select rootpage from sqlite_master where name = 'changes'").fetchone()
    with filled.open("r+b") as stream:
        stream.seek((root - 1) * 4096)
        stream.write(b"\xa5" * 4096)
    found = await examined(filled)
    assert not found["integrity"].ok
    assert "restore the file from a backup" in (found["integrity"].fix or "")


async def test_a_text_index_that_disagrees_is_found(filled: Path) -> None:
    change(filled, "insert into chunks_english (chunks_english) values ('delete-all')")
    found = await examined(filled)
    assert "has missing or extra passages" in found["integrity"].detail


async def test_F12_a_disk_that_is_nearly_full_is_found(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=10 * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    assert await wrong(filled) == ["disk"]


async def test_workers_that_are_gone_and_runs_that_were_interrupted_are_found(filled: Path) -> None:
    change(
        filled,
        "insert into workers (name, host, pid, started_at, heartbeat_at) "
        "values ('gone', 'elsewhere', 1, '2026-01-05T09:00:00.000000Z', '2026-01-05T09:00:00.000000Z')",
        "update runs set state = 'running', worker = 'gone'",
    )
    found = await examined(filled)
    assert [name for name, finding in found.items() if not finding.ok] == ["workers", "runs"]
    assert "`afresh refresh docs` continues it" in (found["runs"].fix or "")


async def test_a_run_that_waits_for_a_confirmation_is_found(filled: Path) -> None:
    change(filled, "update runs set state = 'needs_confirmation'")
    assert "afresh confirm 1" in ((await examined(filled))["runs"].fix or "")


async def test_F42_pages_in_doubt_are_found(filled: Path) -> None:
    change(filled, "update pages set doubt = 'the page is empty now' where depth = 1")
    found = (await examined(filled))["content"]
    assert found.detail.startswith("5 pages look like an error, login or empty page")
    assert "`afresh pages docs --doubtful`" in (found.fix or "")


async def test_F28_a_clock_that_went_back_is_found(filled: Path) -> None:
    future = datetime(2126, 1, 5, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    change(filled, f"update runs set started_at = '{future}'")
    found = await examined(filled)
    assert not found["clock"].ok
    assert "2126-01-05" in found["clock"].detail


@pytest.mark.parametrize(
    ("allowed", "well"),
    [
        (["127.0.0.1/32"], True),
        (["192.168.1.0/24", "docs.internal", "127.0.0.1:8000"], True),
        (["10.0.0.0/8"], False),
        (["::/0"], False),
    ],
)
async def test_an_address_policy_that_is_wide_open_is_found(filled: Path, allowed: list[str], well: bool) -> None:
    assert (await examined(filled, {"network.allow": allowed}))["network"].ok is well


def test_F16_without_a_store_the_surroundings_are_still_checked(tmp_path: Path) -> None:
    config = settings(tmp_path / "none" / "kb.db")
    missing = without_store(config, StoreMissing("there is no store yet"))
    assert [finding.check for finding in missing] == [
        "python",
        "settings",
        "network",
        "disk",
        "browser",
        "model",
        "store",
    ]
    assert all(finding.ok for finding in missing)
    [broken] = [finding for finding in without_store(config, StoreDamaged("damaged")) if not finding.ok]
    assert (broken.check, broken.detail) == ("store", "damaged")


async def test_a_browser_that_is_wanted_and_not_there_is_found(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = {"browser.executable_path": "/nowhere/chromium", "browser.engines": ["chromium"]}
    found = await examined(filled, {**nowhere, "crawl.render": "always"})
    assert "no program at /nowhere/chromium" in (found["browser"].fix or "")
    assert await wrong(filled, nowhere) == [], "auto does without"
    assert "may lack content" in (await examined(filled, nowhere))["browser"].detail
    change(filled, """update sources set policy = '{"render": "always"}'""")
    assert await wrong(filled, nowhere) == ["browser"]
    assert await wrong(filled) == []
    monkeypatch.setattr("afresh.sources.web.browser.launch.find_spec", lambda name: None)
    assert "afresh[browser]" in ((await examined(filled))["browser"].fix or "")


@pytest.mark.parametrize(
    ("flags", "fix"),
    [
        ({"links.scorer": "model"}, "set ai.provider to openai"),
        ({"links.prompt_file": "/nowhere/links.md"}, "set it to another file"),
    ],
)
async def test_a_model_that_cannot_be_asked_is_found(filled: Path, flags: Mapping[str, object], fix: str) -> None:
    found = await examined(filled, flags)
    assert fix in (found["model"].fix or "")
    assert await wrong(filled, flags) == ["model"]
    whole = {"ai.provider": "openai", "ai.model": "small", "ai.base_url": "http://127.0.0.1:9/v1"}
    assert "small at 127.0.0.1" in (await examined(filled, whole))["model"].detail
