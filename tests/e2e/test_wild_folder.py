"""A folder through a wild life: after any edits, moves, restores and rules its index equals a fresh one."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, index_of, opened

from afresh.kb import KnowledgeBase
from afresh.ops import failpoints

NAMES = [f"{folder}f{number}.md" for folder in ("", "a/", "a/b/", "c/") for number in range(3)]
RULES = ["", "a/\n", "f1.md\n", "/f*\n!f2.md\n", "c/\n"]


class Life:
    """What happens to a folder; what was there once may come back with its old time."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.chance = random.Random(seed)
        self.time = 1_600_000_000_000_000_001
        self.number = 0
        self.past: list[tuple[Path, bytes, int]] = []
        for name in NAMES[:4]:
            self.write(root / name)

    def write(self, file: Path, data: bytes | None = None, at: int | None = None) -> None:
        """Put a file in place at once, as editors and `git` do."""
        self.number += 1
        self.time += self.chance.randrange(1, 10**9)
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new~")
        fresh.write_bytes(data or f"# Title {self.number:03}\n\nbody number {self.number:03}\n".encode())
        os.utime(fresh, ns=(at or self.time, at or self.time))
        fresh.replace(file)

    def happen(self) -> None:
        """Something, to some file."""
        file = self.root / self.chance.choice(NAMES)
        if file.exists():
            self.past.append((file, file.read_bytes(), file.stat().st_mtime_ns))
        acts: list[Callable[[], object]] = [
            lambda: self.write(file),
            lambda: self.write(file),
            lambda: file.unlink(missing_ok=True),
            lambda: file.exists() and file.replace(self.root / "moved.md"),
            lambda: self.write(*self.chance.choice(self.past)) if self.past else None,
            lambda: (self.root / ".gitignore").write_text(self.chance.choice(RULES)),
        ]
        self.chance.choice(acts)()
        if not list(self.root.rglob("f?.md")):
            self.write(self.root / "f0.md")


async def unchanged(kb: KnowledgeBase) -> None:
    (report,) = await kb.runs.refresh(["docs"])
    if report.state == "needs_confirmation":
        report = await kb.runs.confirm(report.run)
    assert report.state == "completed", report.error


@pytest.mark.parametrize("seed", range(6))
async def test_P6_F82_F84_a_wild_folder_ends_like_a_fresh_crawl(
    tmp_path: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    life = Life(tmp_path / "docs", seed)

    def hit(name: str) -> None:
        if name in ("run.filled", "page.fetched", "commit.done") and life.chance.random() < 0.2:
            life.happen()

    away = tmp_path / "away.md"

    def hide(name: str) -> None:
        if name == "run.filled":
            (life.root / "late.md").replace(away)

    async with opened(tmp_path / "kept.db") as kb:
        monkeypatch.setitem(failpoints._armed, "listening", failpoints._Armed("raise", 1))
        await kb.runs.crawl(str(life.root), name="docs")
        for _ in range(8):
            for _ in range(life.chance.randrange(4)):
                life.happen()
            with monkeypatch.context() as during:
                during.setattr(failpoints, "_hit", hit)  # the folder lives on while it is read
                await kb.runs.refresh(["docs"])
        life.write(life.root / "late.md")
        with monkeypatch.context() as during:
            during.setattr(failpoints, "_hit", hide)
            await kb.runs.refresh(["docs"])
        away.replace(life.root / "late.md")  # as it was listed, and yet not what was read
        await unchanged(kb)
    async with opened(tmp_path / "fresh.db") as kb:
        await kb.runs.crawl(str(life.root), name="docs")
    assert index_of(tmp_path / "kept.db") == index_of(tmp_path / "fresh.db")
    assert_sound(tmp_path / "kept.db")
