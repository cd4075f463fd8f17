"""Decode bytes to text as browsers do, without errors, and parse JSON."""

import codecs
import json
import re
from typing import Any

from afresh.errors import ExtractError

USUAL_BYTES = 1_024
PRESCAN_BYTES = 16_384  # start of a page in which a meta charset is found; browsers also find it later

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(rb"""<(?:[!/?][^>]*|([a-z]+)((?:[\s/](?:[^>"']|"[^"]*"|'[^']*')*)?))>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s/=>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*)))?""")
_CHARSET = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
# Browsers decode these labels with an encoding that has more characters than the standard says.
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "latin-1": "cp1252", "iso8859-9": "cp1254",
    "iso8859-11": "cp874", "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030",
    "euc_kr": "cp949", "ks_c-5601-1987": "cp949", "shift_jis": "cp932", "big5": "big5hkscs",
}  # fmt: skip
_NEEDLESS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufdd0\ufffe\uffff]")
_LABEL = re.compile(r"[a-z0-9._:+-]{1,40}")
_FOR_PAGES = re.compile(
    r"utf-8|utf-16(-[bl]e)?|ascii|iso8859-\d+|cp(125\d|866|874|932|949)|koi8-[rtu]|mac-\w+|tis-620"
    r"|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_jp|ks_c-5601-1987"
)
_ALIASES = {
    "x-sjis": "cp932", "x-user-defined": "cp1252", "unicode-1-1-utf-8": "utf-8", "windows-31j": "cp932",
}  # fmt: skip


def codec_of(label: str | None) -> str | None:
    """Return the Python codec for a charset label as browsers interpret it; None if the label is unknown."""
    name = (label or "").strip().lower()
    if not _LABEL.fullmatch(name):  # unlike browsers, Python would accept quotes
        return None
    try:
        found = codecs.lookup(_ALIASES.get(name, name))
    except (LookupError, ValueError):
        return None
    return _WIDER.get(found.name, found.name) if _FOR_PAGES.fullmatch(found.name) else None


def sniff_encoding(data: bytes, charset: str | None = None, *, html: bool = True) -> str:
    """Return the codec of a body, as named by its BOM, the HTTP header (`charset`) or, with `html`, a meta element.

    If none of these names a codec, return UTF-8 if the body is valid UTF-8, else windows-1252.
    """
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return codec
    declared = codec_of(charset)
    if declared is None and html:  # WHATWG prescan
        declared = _declared_in(data[:USUAL_BYTES]) or _declared_in(data[:PRESCAN_BYTES])
    return declared or ("utf-8" if _is_utf8(data) else "cp1252")


def decode(data: bytes, charset: str | None = None, *, html: bool = False) -> str:
    """Return the text of a body without BOM, with U+FFFD in place of NUL and invalid bytes."""
    text = data.decode(sniff_encoding(data, charset, html=html), "replace")
    return text.removeprefix("\ufeff").replace("\0", "\ufffd")


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _declared_in(head: bytes) -> str | None:
    if b"charset" not in head.lower():
        return None
    for tag in _TAG.finditer(_COMMENT.sub(b"", head)):
        if (tag[1] or b"").lower() == b"meta":
            codec = codec_of(_meta_charset(tag[2]))
            if codec is not None:  # the element was readable as ASCII, so the encoding is not UTF-16
                return "utf-8" if codec.startswith("utf-16") else codec
    return None


def _meta_charset(raw_attributes: bytes) -> str | None:
    attributes: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTE.findall(raw_attributes):
        attributes.setdefault(name.lower(), b"".join(values))
    if b"charset" in attributes:
        return attributes[b"charset"].decode("latin-1")
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    found = _CHARSET.search(attributes.get(b"content", b""))
    return b"".join(group or b"" for group in found.groups()).decode("latin-1") if found else None


def storable(text: str) -> str:
    """Return the text without control characters and lone surrogates, which databases reject."""
    text = text.encode("utf-8", "replace").decode() if not text.isascii() else text
    return _NEEDLESS.sub("\ufffd" if "\0" in text else "", text)


class DecimalText(str):
    """A decimal number as written in the JSON text, so that `1.10` does not become `1.1`."""

    __slots__ = ()


def parse_json_text(text: str) -> Any:
    try:
        return json.loads(text, parse_float=DecimalText)
    except RecursionError:
        raise ExtractError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise ExtractError(f"broken JSON ({error})") from error


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def words(value: Any) -> str:
    """Return the value if it is a string, or the digits of an integer; "" for other values."""
    if isinstance(value, str):
        return value
    return f"{value}" if isinstance(value, int) and not isinstance(value, bool) else ""
