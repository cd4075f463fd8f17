"""An archive through `kb`: read like a folder, known by its size and time, kept when it is broken."""

import os
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import counts, found, index_of

from afresh.kb import KnowledgeBase
from afresh.urls.files import file_url

OLD = 1_700_000_000
FILES = {
    "index.md": "# Start\n\nThe granite notes.",
    "guide/install.md": "# Install\n\nThe basalt installer.",
    "guide/use.md": "# Use\n\nThe marble oracle.",
    "logo.png": "no picture",
}


def pack(archive: Path, files: Mapping[str, str], at: int = OLD) -> None:
    """Write an archive whose time lies back."""
    folder = archive.parent / "packed"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for name in files:
                packed.write(folder / name, name)
    else:
        with tarfile.open(archive, "w:gz") as tarred:
            for name in files:
                tarred.add(folder / name, name)
    os.utime(archive, (at, at))


async def refreshed(kb: KnowledgeBase) -> dict[str, int]:
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "completed", report.error
    return counts(report)


@pytest.mark.parametrize("name", ["docs.zip", "docs.tar.gz"])
async def test_A18_an_archive_is_followed_like_a_folder(
    kb: KnowledgeBase, tmp_path: Path, work: type[InProcess], name: str
) -> None:
    archive = tmp_path / name
    pack(archive, FILES)
    report = await kb.runs.crawl(str(archive), name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 3})
    assert report.notes == ("archive: 1 file left out: 1 binary",)
    assert await found(kb, "basalt") == {f"{file_url(str(archive))}!/guide/install.md"}
    done = work.calls
    assert await refreshed(kb) == {"not_modified": 3}
    assert work.calls == done
    later = {**FILES, "guide/use.md": "# Use\n\nThe slate oracle.", "new.md": "# New\n\nPumice."}
    del later["index.md"]
    pack(archive, later, OLD + 60)
    assert await refreshed(kb) == {"new": 1, "changed": 1, "not_modified": 1, "deleted": 1}


async def test_F80_a_broken_archive_keeps_everything(kb: KnowledgeBase, tmp_path: Path, store: Path) -> None:
    archive = tmp_path / "docs.zip"
    pack(archive, FILES)
    await kb.runs.crawl(str(archive), name="docs")
    before = index_of(store)
    archive.write_bytes(archive.read_bytes()[:-40])
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    archive.unlink()
    (report,) = await kb.runs.refresh(["docs"])
    assert report.state == "failed"
    assert index_of(store) == before
    pack(archive, FILES, OLD + 9)
    assert await refreshed(kb) == {"not_modified": 3}
