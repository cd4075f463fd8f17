"""A small writer of PDF files, for tests: pages of lines, links, an outline, metadata; and hostile ones."""

import zlib
from dataclasses import dataclass, field

FONTS = ("Helvetica", "Courier")


@dataclass
class Pdf:
    """Pages of text; each line is (text, size, x, y, font)."""

    title: str = ""
    pages: list[list[tuple[str, float, float, float, str]]] = field(default_factory=list)
    links: dict[int, tuple[str, tuple[int, int, int, int]]] = field(default_factory=dict)
    outline: list[tuple[str, int]] = field(default_factory=list)
    encrypt: bytes = b""

    def page(self, *lines: tuple[str, float] | tuple[str, float, str], top: float = 760.0) -> "Pdf":
        """Add a page of lines from top to bottom; a line of no text is a gap."""
        placed, y = [], top
        for text, size, *font in lines:
            y -= size * 1.2
            if text:
                placed.append((text, size, 72.0, y, font[0] if font else "Helvetica"))
        self.pages.append(placed)
        return self

    def bytes(self) -> bytes:
        """The file."""
        objects: list[bytes] = [b"", b"", b""]  # catalog, pages, information
        fonts = []
        for name in FONTS:
            objects.append(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} >>".encode())
            fonts.append(f"/{name} {len(objects)} 0 R")
        numbers = []
        for at, lines in enumerate(self.pages):
            objects.append(stream(_content(lines)))
            content = len(objects)
            annotations = ""
            if at in self.links:
                url, box = self.links[at]
                objects.append(
                    f"<< /Type /Annot /Subtype /Link /Rect [{' '.join(map(str, box))}] "
                    f"/A << /S /URI /URI ({url}) >> >>".encode()
                )
                annotations = f"/Annots [{len(objects)} 0 R]"
            objects.append(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R {annotations} "
                f"/Resources << /Font << {' '.join(fonts)} >> >> >>".encode()
            )
            numbers.append(len(objects))
        root = ""
        if self.outline:
            root = f"/Outlines {len(objects) + 1} 0 R"
            first = len(objects) + 2
            objects.append(f"<< /First {first} 0 R /Last {first + len(self.outline) - 1} 0 R >>".encode())
            for at, (title, page) in enumerate(self.outline):
                after = f"/Next {first + at + 1} 0 R" if at + 1 < len(self.outline) else ""
                target = f"/Dest [{numbers[page]} 0 R /Fit]"
                objects.append(f"<< /Title ({title}) /Parent {first - 1} 0 R {after} {target} >>".encode())
        kids = " ".join(f"{number} 0 R" for number in numbers)
        objects[0] = f"<< /Type /Catalog /Pages 2 0 R {root} >>".encode()
        objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(numbers)} >>".encode()
        objects[2] = f"<< /Title ({self.title}) >>".encode()
        return assembled(objects, b"/Info 3 0 R " + self.encrypt)


def stream(data: bytes, filters: str = "") -> bytes:
    """A stream object; what `filters` names must have been done to the data."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), filters.encode(), data)


def assembled(objects: list[bytes], trailer: bytes = b"") -> bytes:
    """A file of numbered objects, the first of which is its catalog."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\n" % (len(objects) + 1, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def one_page(content: bytes, *more: bytes) -> bytes:
    """A file of one page with this content stream as object 4; `more` are objects from number 6 on."""
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >> >>",
            content,
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            *more,
        ]
    )


def bomb(size: int) -> bytes:
    """A page whose content is packed several times over, and unpacks to `size` bytes of nothing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b"q Q " * 262_144) + packer.flush(zlib.Z_FULL_FLUSH)  # stands for itself: can repeat
    inner = b"\x78\xda" + block * (size // 1_048_576) + b"\x03\x00"
    return one_page(stream(zlib.compress(inner, 9), "/Filter [/FlateDecode /FlateDecode]"))


def branching(levels: int, width: int) -> bytes:
    """A page that shows a form, which shows another one `width` times, and so on: width ** levels in all."""
    forms = []
    for level in range(levels):
        inner = f"/Resources << /XObject << /X {7 + level} 0 R >> /Font << /F 5 0 R >> >>" if level + 1 < levels else ""
        content = b"/X Do " * width if inner else b"BT /F 9 Tf (x) Tj ET"
        forms.append(stream(content, f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] {inner}"))
    return one_page(stream(b"/X Do"), *forms)


def _content(lines: list[tuple[str, float, float, float, str]]) -> bytes:
    converted = []
    for text, size, x, y, font in lines:
        safe = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        converted.append(f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({safe}) Tj ET")
    return "\n".join(converted).encode("latin-1", "replace")
