"""A folder of Markdown files as an external store: stable names, whole files, foreign ones untouched."""

from dataclasses import replace
from pathlib import Path

import pytest

from afresh.errors import SinkMissing, SinkRefused
from afresh.sync.copy import OwnerTag, Upload
from afresh.sync.sinks.folder import FolderSink, file_name

MARK = OwnerTag(store="me", source="react@18", page=7, hash="a" * 64)
PAGE = Upload(
    mark=MARK,
    url="https://docs.test/Guide/Retries?x=1",
    title='Retries: "how"',
    name="docs.test/Guide/Retries?x=1",
    markdown="# Retries\n\n---\n\nText – ünïcode.\n",
    language="en",
)


async def test_D1_F99_a_file_is_put_replaced_listed_and_dropped_in_place(tmp_path: Path) -> None:
    sink = FolderSink("out", tmp_path / "out")
    first = await sink.put(PAGE)
    path = tmp_path / "out" / file_name(PAGE)
    assert path.name.startswith("docs.test-guide-retries-x-1-")
    assert path.parent.name == "react-18"
    text = path.read_text("utf-8")
    assert text.startswith('---\ntitle: "Retries: \\"how\\""\n')
    assert text.endswith("---\n\n" + PAGE.markdown)
    assert (first.mark, first.name) == (MARK, PAGE.name)
    changed = replace(PAGE, mark=replace(MARK, hash="b" * 64), markdown="# Other\n")
    second = await sink.put(changed)
    assert [each async for each in sink.all()] == [second]
    await sink.drop(first.id)  # the version that is no longer there
    assert await sink.look(first.id) is None
    assert await sink.look(second.id) == second
    path.write_text(path.read_text("utf-8").replace("Other", "By hand"), "utf-8")
    [stale] = [each async for each in sink.all()]
    assert stale.mark is not None
    assert stale.mark.hash.startswith("changed by hand")
    await sink.drop(stale.id)
    await sink.drop(stale.id)
    assert list((tmp_path / "out").iterdir()) == []
    other = replace(PAGE, mark=replace(MARK, source="react@17"))
    assert file_name(other) != file_name(PAGE)


async def test_F97_F99_what_is_not_ours_is_listed_and_left_alone(tmp_path: Path) -> None:
    sink = FolderSink("out", tmp_path)
    place = tmp_path / file_name(PAGE)
    place.parent.mkdir()
    for file, text in ((place, "---\ntitle: x\n---\n\nmine"), (tmp_path / "notes.txt", "\xff")):
        file.write_text(text, "latin-1")
    (tmp_path / "broken.md").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SinkRefused, match="was not written by afresh and is not overwritten"):
        await sink.put(PAGE)
    assert place.read_text() == "---\ntitle: x\n---\n\nmine"
    assert {(each.name, each.mark) async for each in sink.all()} == {("notes.txt", None), (file_name(PAGE), None)}
    with pytest.raises(SinkRefused, match="is not the id of a file"):
        await sink.drop("../../etc/passwd#1-a")
    with pytest.raises(SinkMissing, match="nor the folder above it exists"):
        await FolderSink("out", tmp_path / "gone" / "out").put(PAGE)
    with pytest.raises(SinkMissing, match=r"sinks\.out\.path has to be a folder"):
        await FolderSink("out", tmp_path / "notes.txt").put(PAGE)
    with pytest.raises(SinkMissing, match="has to be a folder"):
        [each async for each in FolderSink("out", tmp_path / "notes.txt").all()]
