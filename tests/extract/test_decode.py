"""Bytes to text."""

import base64
import codecs
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.extract.decode import codec_of, decode, sniff_encoding


def test_F60_encodings_are_sniffed_as_browsers_do(shared: Path) -> None:
    table = shared / "data" / "naughty" / "html_encoding_sniff.jsonl"
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    wrong: list[str] = []
    for row in rows:
        data = base64.b64decode(row["data_b64"])
        wanted = codecs.lookup(row["encoding"]).name
        got = codecs.lookup(sniff_encoding(data)).name
        # The table has windows-1252 where nothing is said; for pure ASCII our UTF-8 reads the same.
        if got != wanted and not (data.isascii() and wanted == "cp1252" and got == "utf-8"):
            wrong.append(f"{data[:80]!r}: {got}, not {wanted}")
    assert len(rows) >= 82
    assert wrong == []


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        (b"\xef\xbb\xbf\xc3\xa4", "latin-1", "ä"),
        ("ä".encode("utf-16"), None, "ä"),
        (codecs.BOM_UTF16_BE + "ä".encode("utf-16-be"), "utf-8", "ä"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        (b"\xe4 \x80", "ISO-8859-1", "ä €"),
        (b"<meta charset=windows-1251>\xc4", None, "<meta charset=windows-1251>Д"),
        (b"<meta charset=windows-1251>\xc3\xa4", "utf-8", "<meta charset=windows-1251>ä"),
        (b"<!-- <meta charset=koi8-r> -->\xc3\xa4", None, "<!-- <meta charset=koi8-r> -->ä"),
        (b"<meta charset=utf-16>\xc3\xa4", None, "<meta charset=utf-16>ä"),
        (b"\xe4\xff", None, "äÿ"),
        (b"\xc3\xa4", "no-such-charset", "ä"),
        (b"a\0b", None, "a\ufffdb"),
        (b"\xff", "utf-8", "\ufffd"),
        (b"", None, ""),
    ],
)
def test_F60_mark_then_header_then_meta_then_utf8_then_windows_1252(
    data: bytes, charset: str | None, text: str
) -> None:
    assert decode(data, charset, html=True) == text


def test_plain_text_does_not_declare_its_encoding() -> None:
    assert decode(b"<meta charset=koi8-r>\xc3\xa4", None) == "<meta charset=koi8-r>ä"


@given(
    st.binary(max_size=300),
    st.one_of(st.none(), st.text(max_size=20), st.sampled_from(["utf-7", "hex", "idna", "rot13", "utf-16"])),
)
def test_F61_decoding_never_fails_and_gives_text_that_can_be_stored(data: bytes, charset: str | None) -> None:
    for html in (True, False):
        text = decode(data, charset, html=html)
        assert "\0" not in text
        text.encode("utf-8")


@pytest.mark.parametrize(
    "label", ["utf-7", "hex", "base64", "rot13", "idna", "unicode_escape", "raw_unicode_escape", "x" * 100, "", "a\0b"]
)
def test_codecs_that_are_not_for_pages_are_unknown(label: str) -> None:
    assert codec_of(label) is None
