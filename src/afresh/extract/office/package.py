"""What DOCX, PPTX and XLSX have in common: a ZIP file of XML parts that name each other by relations."""

from posixpath import join, normpath
from typing import Any, NamedTuple

from afresh.extract.xml_tree import attribute, name_of, parse_xml
from afresh.extract.zip import Zipped


class Relation(NamedTuple):
    """Where one part points to: another part, or an address outside."""

    kind: str  # the last word of its type: slide, hyperlink, notesSlide …
    target: str
    external: bool


class Package:
    """An office file, opened."""

    def __init__(self, data: bytes) -> None:
        self.zipped = Zipped(data)

    def main(self, usual: str) -> str:
        """The name of the part that everything else hangs on."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and relation.target in self.zipped:
                return relation.target
        return usual

    def read(self, part: str) -> Any:
        """The root element of a part."""
        return parse_xml(self.zipped.read(part))

    def read_if_there(self, part: str) -> Any | None:
        """The root element of a part that a file may do without."""
        return self.read(part) if part in self.zipped else None

    def relations(self, part: str) -> dict[str, Relation]:
        """What a part points to, by the id that it uses for it."""
        folder, _, name = part.rpartition("/")
        root = self.read_if_there(join(folder, "_rels", f"{name}.rels"))
        return {attribute(each, "Id"): _relation(each, folder) for each in root} if root is not None else {}

    def related(self, part: str, kind: str) -> str | None:
        """The first part of a kind that a part points to."""
        for relation in self.relations(part).values():
            if relation.kind == kind and not relation.external and relation.target in self.zipped:
                return relation.target
        return None

    def title(self) -> str:
        """The title among the properties of the file."""
        return self._property("title")

    def language(self) -> str:
        """The language among the properties of the file."""
        return self._property("language")

    def _property(self, name: str) -> str:
        root = self.read_if_there("docProps/core.xml")
        found = (each.text for each in root if name_of(each) == name) if root is not None else ()
        return next((text for text in found if text), "")


def _relation(element: Any, folder: str) -> Relation:
    target = attribute(element, "Target")
    external = attribute(element, "TargetMode") == "External"
    if not external:
        target = normpath(target.lstrip("/") if target.startswith("/") else join(folder, target))
    return Relation(attribute(element, "Type").rpartition("/")[2], target, external)
