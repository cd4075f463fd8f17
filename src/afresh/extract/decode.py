"""Bytes to text: the encoding is sniffed as browsers do it, and decoding never fails."""

import codecs
import re

USUAL_BYTES = 1_024
PRESCAN_BYTES = 16_384  # browsers start over when they find a late meta element; we look far at once

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(rb"""<(?:[!/?][^>]*|([a-z]+)((?:[\s/](?:[^>"']|"[^"]*"|'[^']*')*)?))>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s/=>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*)))?""")
_CHARSET = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
# What browsers read under a name that means something narrower elsewhere.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "latin-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "ks_c-5601-1987": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
_NEEDLESS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufdd0\ufffe\uffff]")
_LABEL = re.compile(r"[a-z0-9._:+-]{1,40}")
_FOR_PAGES = re.compile(
    r"utf-8|utf-16(-[bl]e)?|ascii|iso8859-\d+|cp(125\d|866|874|932|949)|koi8-[rtu]|mac-\w+|tis-620"
    r"|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_jp|ks_c-5601-1987"
)
_ALIASES = {
    "x-sjis": "cp932",
    "x-user-defined": "cp1252",
    "unicode-1-1-utf-8": "utf-8",
    "windows-31j": "cp932",
}


def codec_of(label: str | None) -> str | None:
    """The Python codec for a charset label as browsers understand it, or None for an unknown one."""
    name = (label or "").strip().lower()
    if not _LABEL.fullmatch(name):  # Python would overlook a quote, which browsers do not
        return None
    try:
        found = codecs.lookup(_ALIASES.get(name, name))
    except (LookupError, ValueError):
        return None
    return _WIDER.get(found.name, found.name) if _FOR_PAGES.fullmatch(found.name) else None


def sniff_encoding(data: bytes, charset: str | None = None) -> str:
    """The codec of an HTML body: mark at its start, header, meta element, UTF-8 if valid, windows-1252."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return codec
    return codec_of(charset) or _declared(data) or ("utf-8" if _is_utf8(data) else "cp1252")


def decode(data: bytes, charset: str | None = None, *, html: bool = False) -> str:
    """The text of a body, without a byte order mark, with U+FFFD for NUL and for what cannot be read."""
    codec = sniff_encoding(data, charset) if html else _plain_encoding(data, charset)
    text = data.decode(codec, "replace")
    return text.removeprefix("\ufeff").replace("\0", "\ufffd")


def _plain_encoding(data: bytes, charset: str | None) -> str:
    """Like `sniff_encoding`, but a text without markup declares nothing by itself."""
    marked = next((codec for mark, codec in _BOMS if data.startswith(mark)), None)
    return marked or codec_of(charset) or ("utf-8" if _is_utf8(data) else "cp1252")


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _declared(data: bytes) -> str | None:
    """The encoding that the first fitting meta element names (WHATWG prescan)."""
    return _declared_in(data[:USUAL_BYTES]) or _declared_in(data[:PRESCAN_BYTES])


def _declared_in(head: bytes) -> str | None:
    if b"charset" not in head.lower():
        return None
    for tag in _TAG.finditer(_COMMENT.sub(b"", head)):
        if (tag[1] or b"").lower() == b"meta":
            codec = codec_of(_meta_charset(tag[2]))
            if codec is not None:  # a page that shows an ASCII meta element cannot be UTF-16
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
    """The text without control characters and halves of surrogate pairs, which no store takes."""
    text = text.encode("utf-8", "replace").decode() if not text.isascii() else text
    return _NEEDLESS.sub("\ufffd" if "\0" in text else "", text)
