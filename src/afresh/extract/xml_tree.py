"""XML read without anything that XML can do beyond holding text: no entities, no DTD, no network."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lxml import etree

from afresh.errors import ExtractError

MEGABYTE = 1024 * 1024
LARGEST_TREE = 24 * MEGABYTE  # a tree takes some ten times the memory of its text
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


def parse_xml(data: bytes, *, mend: bool = False) -> Any:
    """The root element; `mend` overlooks small mistakes, for formats that people write by hand."""
    _refuse(data)
    if len(data) > LARGEST_TREE:
        raise ExtractError(f"XML of more than {LARGEST_TREE // MEGABYTE} MB")
    try:
        root = etree.fromstring(data, etree.XMLParser(recover=mend, **_OPTIONS))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ExtractError(f"broken XML ({error})") from error
    if root is None:
        raise ExtractError("broken XML")
    return root


def elements(data: bytes, *names: str) -> Iterator[Any]:
    """Each element of these names at its end, forgotten once the next is asked for: for large files."""
    _refuse(data)
    try:
        for _, element in etree.iterparse(BytesIO(data), events=("end",), tag=names, **_OPTIONS):
            yield element
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ExtractError(f"broken XML ({error})") from error


def name_of(element: Any) -> str:
    """The name of an element without its namespace; "" for what is none."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Any, name: str) -> str:
    """The value of an attribute whatever its namespace; "" without one."""
    for key, value in element.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def _refuse(data: bytes) -> None:
    head = data[:200]
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head
    if b"<!ENTITY" in data or (wide and b"<!ENTITY" in data.replace(b"\0", b"")):
        raise ExtractError("XML that declares entities")
