"""Compare the time of a refresh of an unchanged folder with a bare walk of the same tree."""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from afresh.app import build
from afresh.config import load

PER_FOLDER = 100
MOST = 3.0  # times a bare walk


def main(arguments: Sequence[str]) -> int:
    """Create the files, crawl them, and time refreshes and bare walks in turns."""
    parser = argparse.ArgumentParser(prog="python -m soak folder", description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "docs"
        _grow(root, given.files)
        ratio = asyncio.run(_measure(root, Path(place) / "kb.db", given.files, given.rounds))
    print("as expected" if ratio <= MOST else f"breach: more than {MOST:.0f} times a bare walk")
    return int(ratio > MOST)


def _grow(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"part{number // PER_FOLDER // 20}" / f"folder{number // PER_FOLDER}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        text = f"# Page {number}\n\nWhat there is to say about the topic {number}.\n"
        (folder / f"page{number}.md").write_text(text)


async def _measure(root: Path, store: Path, files: int, rounds: int) -> float:
    kb = await build(load(None, {}, {"store.url": f"sqlite:///{store}"}, store.parent))
    began = time.perf_counter()
    report = await kb.runs.crawl(str(root), name="docs")
    print(f"first crawl: {report.new} files in {time.perf_counter() - began:.1f} s, {report.state}")
    bare, refresh = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        bare_walk(str(root))
        between = time.perf_counter()
        (report,) = await kb.runs.refresh(["docs"])
        refresh.append(time.perf_counter() - between)
        bare.append(between - began)
        if report.not_modified != files:
            raise SystemExit(f"{report.not_modified} of {files} files were found unchanged")
    await kb.close()
    ratio = statistics.median(refresh) / statistics.median(bare)
    print(
        f"{files} files: bare walk {1000 * statistics.median(bare):.0f} ms, "
        f"unchanged refresh {1000 * statistics.median(refresh):.0f} ms: {ratio:.2f} times"
    )
    return ratio


def bare_walk(root: str) -> int:
    """List each folder and read size and time of each file, which every program has to do."""
    files, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    files += 1
    return files
