"""Looking for what is wrong, and saying what to do about it."""

import shutil
import sqlite3
import sys
from pathlib import Path

from afresh.config import Config
from afresh.core.masking import mask_secrets
from afresh.core.views import Finding
from afresh.store.open import sqlite_path
from afresh.store.store import SqlStore

ENOUGH_BYTES = 500 * 2**20


async def examine(config: Config, store: SqlStore) -> list[Finding]:
    """Every check, the good ones too."""
    path = sqlite_path(config.store.url)
    return [
        Finding(check="python", ok=True, detail=f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"),
        _settings(config),
        Finding(
            check="store",
            ok=True,
            detail=f"{mask_secrets(str(path))}, {await store.size_bytes() / 2**20:.1f} MB",
        ),
        await _integrity(store),
        _room(path),
        await _stuck(store),
    ]


def _settings(config: Config) -> Finding:
    where = str(config.file) if config.file else "defaults, no file"
    return Finding(check="settings", ok=True, detail=where)


async def _integrity(store: SqlStore) -> Finding:
    trouble = await store.integrity()
    if trouble is None:
        return Finding(
            check="integrity", ok=True, detail="the file is sound and the text index agrees with it"
        )
    return Finding(
        check="integrity",
        ok=False,
        detail=trouble,
        fix="restore the file from a backup, or move it away and crawl again",
    )


def _room(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    detail = f"{free / 2**30:.1f} GB free beside the store"
    if free >= ENOUGH_BYTES:
        return Finding(check="disk", ok=True, detail=detail)
    return Finding(check="disk", ok=False, detail=detail, fix="make room or move the store with --store")


async def _stuck(store: SqlStore) -> Finding:
    runs = await store.live_runs()
    waiting = [run for run in runs if run.state == "needs_confirmation"]
    if not waiting:
        return Finding(check="runs", ok=True, detail=f"{len(runs)} under way or interrupted")
    return Finding(
        check="runs",
        ok=False,
        detail=f"{len(waiting)} wait for a confirmation",
        fix=f"look at `afresh status`, then `afresh confirm {waiting[0].id}`",
    )
