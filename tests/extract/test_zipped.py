"""ZIP files within limits: bombs, ways out, locks and lies."""

import struct
import zipfile
import zlib

import pytest
from tests.extract.files import docx, docx_members, paragraph, read, zipped

from afresh.errors import ExtractError
from afresh.extract.office.package import MOST_MEMBERS, TIGHTEST, ZipReader, is_inside

MEGABYTE = 1024 * 1024


def test_members_are_read() -> None:
    file = ZipReader(zipped({"a/": "", "a/b.txt": "words", "c.txt": b"\0\1"}))
    assert file.names == ["a/b.txt", "c.txt"]
    assert (file.read("a/b.txt"), file.read("c.txt")) == (b"words", b"\0\1")
    assert "c.txt" in file
    assert "d.txt" not in file


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "\\x", "C:\\x", "C:x", "a\\..\\x", "..", ""])
def test_names_that_lead_out_are_not_there(name: str) -> None:
    assert not is_inside(name)
    if name:
        assert ZipReader(zipped({name: "x", "ok..txt": "y"})).names == ["ok..txt"]


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    file = ZipReader(zipped({"bomb": bytes(8 * MEGABYTE), "fine": b"ab" * 400_000}))
    with pytest.raises(ExtractError, match="possible zip bomb: bomb unpacks to 8 MB"):
        file.read("bomb")
    assert len(file.read("fine")) == 800_000


def test_many_members_that_are_small_add_up() -> None:
    file = ZipReader(zipped({str(at): bytes(MEGABYTE) for at in range(6)}), most_bytes=4 * MEGABYTE)
    for at in range(4):
        file.read(str(at))
    with pytest.raises(ExtractError, match="more than 0 MB"):
        file.read("4")


def test_a_size_that_lies_brings_no_more_than_it_says() -> None:
    data = bytearray(zipped({"a": bytes(100_000)}))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(mark) + at, 10)
    with pytest.raises(ExtractError, match="ZIP file is broken"):
        ZipReader(bytes(data)).read("a")


def test_too_many_members_are_counted_before_any_is_made() -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *[0] * 15, 0)[:46] + b"x"
    data = entry * (MOST_MEMBERS + 1)
    with pytest.raises(ExtractError, match="more than 10,000 members"):
        ZipReader(data)


def test_locked_and_oddly_packed_members_are_refused() -> None:
    data = bytearray(zipped({"a": b"words"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ExtractError, match="encrypted"):
        ZipReader(bytes(data)).read("a")
    with pytest.raises(ExtractError, match="unsupported compression method"):
        ZipReader(zipped({"a": b"words"}, zipfile.ZIP_LZMA)).read("a")


@pytest.mark.parametrize("cut", [0, 1, 30, 60, -1, -10, -30])
def test_a_truncated_file_is_reported(cut: int) -> None:
    whole = zipped({"a": b"words" * 99})
    with pytest.raises(ExtractError, match="ZIP file is broken"):
        ZipReader(whole[:cut]).read("a")


# ---- as office files ------------------------------------------------------------------------

LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><w:document>&b;</w:document>',
    '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:document>&a;</w:document>',
)


@pytest.mark.parametrize("xml", [*LAUGHS, *[each.encode("utf-16") for each in LAUGHS]])
def test_entities_in_office_files_are_refused(xml: str | bytes) -> None:
    with pytest.raises(ExtractError, match="declares entities"):
        read(zipped({**docx_members(), "word/document.xml": xml}), "a.docx")


def test_a_bomb_in_an_office_file_is_refused() -> None:
    text = paragraph("a" * 20 * MEGABYTE)
    assert len(zlib.compress(text.encode())) * TIGHTEST < len(text)
    with pytest.raises(ExtractError, match="zip bomb"):
        read(docx(text), "a.docx")


def test_xml_that_is_nested_without_end_is_refused() -> None:
    deep = "<w:sdt>" * 10_000 + "</w:sdt>" * 10_000
    with pytest.raises(ExtractError, match="broken XML"):
        read(docx(deep), "a.docx")


def test_tables_in_tables_are_read_to_some_depth() -> None:
    inner = paragraph("core")
    for _ in range(30):
        inner = f"<w:tbl><w:tr><w:tc>{inner}</w:tc></w:tr></w:tbl>"
    assert read(docx(inner), "a.docx").markdown == "core"
