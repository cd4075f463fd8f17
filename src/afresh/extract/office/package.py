"""Read the ZIP packages of office files and e-books, and the XML in them, within limits.

XML is parsed without entities, DTDs and network access. Members are limited in number, size and compression
ratio. Members with a path outside the package are ignored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from posixpath import join, normpath
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from lxml import etree

from afresh.errors import ExtractError
from afresh.sources.archive.readers import BROKEN_ZIP

MEGABYTE = 1024 * 1024
MOST_MEMBERS = 10_000
MOST_BYTES = 128 * MEGABYTE  # total size of the unpacked members that are read
LARGEST_MEMBER = 64 * MEGABYTE
TIGHTEST = 250  # maximum compression ratio; a sheet of equal rows may have a ratio of a hundred
SMALL = MEGABYTE  # up to this size, any compression ratio is accepted

_ENTRY = b"PK\x01\x02"
_ENCRYPTED = 0x1
LARGEST_TREE = 24 * MEGABYTE  # of XML; its tree takes about ten times as much memory
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False,
    "remove_comments": True, "remove_pis": True,
}  # fmt: skip


class ZipReader:
    """A ZIP archive in memory; raises ExtractError if it is broken or exceeds a limit."""

    def __init__(self, data: bytes, *, most_members: int = MOST_MEMBERS, most_bytes: int = MOST_BYTES) -> None:
        if data.count(_ENTRY) > most_members:  # checked first, because ZipFile creates an object for each member
            raise ExtractError(f"the ZIP file has more than {most_members:,} members")
        self._left = most_bytes
        with _translated("the ZIP file is broken", *BROKEN_ZIP):
            self._file = ZipFile(BytesIO(data))
        self._infos = {info.filename: info for info in self._file.infolist() if is_inside(info.filename)}

    @property
    def names(self) -> list[str]:
        """Return the names of files in archive order, without those with a path outside the package."""
        return [name for name, info in self._infos.items() if not info.is_dir()]

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def read(self, name: str, most: int = LARGEST_MEMBER) -> bytes:
        info = self._infos.get(name)
        if info is None:
            raise ExtractError(f"the ZIP file has no member {name}")
        _refuse_member(info, min(most, self._left))
        with _translated("the ZIP file is broken", *BROKEN_ZIP), self._file.open(info) as member:
            data = member.read(info.file_size)
        self._left -= len(data)
        return data


def is_inside(name: str) -> bool:
    """Return whether the path of a member stays inside the folder into which the archive would be unpacked."""
    if not name or name[0] in "/\\" or name[1:2] == ":" or "\0" in name:
        return False
    return ".." not in name.replace("\\", "/").split("/")


def _refuse_member(info: ZipInfo, most: int) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise ExtractError("the file is encrypted: it cannot be read without its password")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ExtractError("the ZIP file uses an unsupported compression method")
    if info.file_size > most:
        raise ExtractError(f"the ZIP file unpacks to more than {most // MEGABYTE} MB ({info.filename[:80]})")
    if info.file_size > SMALL and info.file_size > TIGHTEST * info.compress_size:
        raise ExtractError(f"possible zip bomb: {info.filename[:80]} unpacks to {info.file_size // MEGABYTE} MB")


@contextmanager
def _translated(what: str, *errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise ExtractError(f"{what} ({error})") from error


class PartRelation(NamedTuple):
    kind: str  # the last segment of its type: slide, hyperlink, notesSlide …
    target: str
    external: bool


class OfficePackage:
    def __init__(self, data: bytes) -> None:
        self.zipped = ZipReader(data)

    def main(self, usual: str) -> str:
        return self.related("", "officeDocument") or usual

    def read(self, part: str) -> Any:
        return parse_xml(self.zipped.read(part))

    def read_if_there(self, part: str | None) -> Any:
        """Parse an optional part and return its root element; an empty element if the part is missing."""
        return self.read(part) if part and part in self.zipped else etree.Element("none")

    def relations(self, part: str) -> dict[str, PartRelation]:
        folder, _, name = part.rpartition("/")
        root = self.read_if_there(join(folder, "_rels", f"{name}.rels"))
        found: dict[str, PartRelation] = {}
        for each in root:
            target, external = attribute(each, "Target"), attribute(each, "TargetMode") == "External"
            if not external:
                target = normpath(target.lstrip("/") if target.startswith("/") else join(folder, target))
            kind = attribute(each, "Type").rpartition("/")[2]
            found[attribute(each, "Id")] = PartRelation(kind, target, external)
        return found

    def related(self, part: str, kind: str) -> str | None:
        for relation in self.relations(part).values():
            if relation.kind == kind and not relation.external and relation.target in self.zipped:
                return relation.target
        return None

    def core_property(self, name: str) -> str:
        root = self.read_if_there("docProps/core.xml")
        return next((each.text for each in root if name_of(each) == name and each.text), "")


def parse_xml(data: bytes, *, mend: bool = False) -> Any:
    """Parse XML and return its root element; with `mend`, tolerate small mistakes in hand-written files."""
    _refuse_entities(data)
    if len(data) > LARGEST_TREE:
        raise ExtractError(f"the XML is larger than {LARGEST_TREE // MEGABYTE} MB")
    with _translated("broken XML", etree.XMLSyntaxError, ValueError):
        root = etree.fromstring(data, etree.XMLParser(recover=mend, **_OPTIONS))
    if root is None:
        raise ExtractError("broken XML")
    return root


def elements(data: bytes, *names: str) -> Iterator[Any]:
    """Parse a large XML file; yield each element with one of these names, and free its memory afterwards."""
    _refuse_entities(data)
    with _translated("broken XML", etree.XMLSyntaxError, ValueError):
        for _, element in etree.iterparse(BytesIO(data), events=("end",), tag=names, **_OPTIONS):
            yield element
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def name_of(element: Any) -> str:
    """Return the name of an element without its namespace; "" for comments and the like."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Any | None, name: str) -> str:
    """Return the value of an attribute in any namespace; "" if it or the element is missing."""
    for key, value in element.items() if element is not None else ():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def number_in(text: str, most_digits: int = 8) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most_digits else None


def _refuse_entities(data: bytes) -> None:
    head = data[:200]
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head
    if b"<!ENTITY" in data or (wide and b"<!ENTITY" in data.replace(b"\0", b"")):
        raise ExtractError("the XML declares entities, which are not supported")
