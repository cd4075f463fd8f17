"""Small writers of office files and books, for tests."""

import zipfile
from collections.abc import Mapping
from io import BytesIO

from afresh.extract import extract
from afresh.model.fetch import Body, Document

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_R = f'xmlns:r="{RELATIONS}"'


def read(data: bytes, name: str = "file", media_type: str = "") -> Document:
    """The document of a file of this name."""
    return extract(Body(url=f"https://x.org/files/{name}", data=data, media_type=media_type))


def zipped(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP file with these members."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def relations(**targets: tuple[str, str]) -> str:
    """A relations part: id = (kind, target); an address is outside."""
    rows = [
        f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{target}"'
        + (' TargetMode="External"/>' if "://" in target else "/>")
        for key, (kind, target) in targets.items()
    ]
    return f"<Relationships {_PACKAGE}>{''.join(rows)}</Relationships>"


def core(title: str) -> str:
    """The properties of an office file."""
    return (
        '<cp:coreProperties xmlns:cp="http://x/core" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></cp:coreProperties>"
    )


# ---- DOCX -----------------------------------------------------------------------------------

_STYLES = f"""<w:styles {_W}>
<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
</w:styles>"""
_NUMBERING = f"""<w:numbering {_W}>
<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>
</w:numbering>"""


def paragraph(text: str, style: str = "", number: str = "", depth: int = 0) -> str:
    """A paragraph of a DOCX file; `text` may be runs of XML."""
    listed = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>' if number else ""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    runs = text if text.startswith("<") else f"<w:r><w:t>{text}</w:t></w:r>"
    return f"<w:p><w:pPr>{named}{listed}</w:pPr>{runs}</w:p>"


def word_table(*rows: tuple[str, ...]) -> str:
    """A table of a DOCX file."""
    lines = ["".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def docx_members(*blocks: str, title: str = "") -> dict[str, str | bytes]:
    """The members of a DOCX file with these blocks of XML."""
    return {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(r1=("officeDocument", "word/document.xml")),
        "docProps/core.xml": core(title),
        "word/document.xml": f"<w:document {_W} {_R}><w:body>{''.join(blocks)}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(
            s=("styles", "styles.xml"), n=("numbering", "numbering.xml"), link=("hyperlink", "https://lid.example/a")
        ),
        "word/styles.xml": _STYLES,
        "word/numbering.xml": _NUMBERING,
    }


def docx(*blocks: str, title: str = "") -> bytes:
    """A DOCX file with these blocks of XML."""
    return zipped(docx_members(*blocks, title=title))


# ---- PPTX -----------------------------------------------------------------------------------


def shape(kind: str, *paragraphs: str) -> str:
    """A shape of a slide; a paragraph with a leading dash is one level deeper."""
    rows = [
        f'<a:p><a:pPr lvl="{int(text.startswith("-"))}"/><a:r><a:t>{text.lstrip("-")}</a:t></a:r></a:p>'
        for text in paragraphs
    ]
    place = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else "<p:nvPr/>"
    return f"<p:sp><p:nvSpPr>{place}</p:nvSpPr><p:txBody>{''.join(rows)}</p:txBody></p:sp>"


def slide_table(*rows: tuple[str, ...]) -> str:
    """A table on a slide."""
    lines = [
        "".join(f"<a:tc><a:txBody><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:txBody></a:tc>" for cell in row)
        for row in rows
    ]
    return f"<p:graphicFrame><a:tbl>{''.join(f'<a:tr>{line}</a:tr>' for line in lines)}</a:tbl></p:graphicFrame>"


def pptx(*slides: tuple[str, str], title: str = "") -> bytes:
    """A PPTX file of slides: (shapes, notes); the first part holds the last slide."""
    count = len(slides)
    ids = "".join(f'<p:sldId id="{256 + at}" r:id="s{at}"/>' for at in range(count))
    members: dict[str, str | bytes] = {
        "_rels/.rels": relations(r1=("officeDocument", "ppt/presentation.xml")),
        "docProps/core.xml": core(title),
        "ppt/presentation.xml": f"<p:presentation {_P} {_R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"s{at}": ("slide", f"slides/slide{count - at}.xml") for at in range(count)}
        ),
    }
    for at, (shapes, notes) in enumerate(slides):
        name = f"slide{count - at}.xml"
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        members[f"ppt/slides/{name}"] = f"<p:sld {_P} {_R}>{tree}</p:sld>"
        if notes:
            members[f"ppt/slides/_rels/{name}.rels"] = relations(n=("notesSlide", f"../notes/{name}"))
            inside = shape("body", notes) + shape("sldNum", "9")
            members[f"ppt/notes/{name}"] = f"<p:notes {_P}><p:cSld><p:spTree>{inside}</p:spTree></p:cSld></p:notes>"
    return zipped(members)


# ---- XLSX -----------------------------------------------------------------------------------


def xlsx(sheets: Mapping[str, str], shared: tuple[str, ...] = (), hidden: tuple[str, ...] = ()) -> bytes:
    """An XLSX file; each sheet is the XML of its rows and of what stands behind them."""
    states = {name: "hidden" if name in hidden else "visible" for name in sheets}
    rows = "".join(
        f'<sheet name="{name}" sheetId="{at + 1}" r:id="s{at}" state="{states[name]}"/>'
        for at, name in enumerate(sheets)
    )
    members: dict[str, str | bytes] = {
        "_rels/.rels": relations(r1=("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {_S} {_R}><sheets>{rows}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            t=("sharedStrings", "sharedStrings.xml"),
            y=("styles", "/xl/styles.xml"),
            **{f"s{at}": ("worksheet", f"worksheets/sheet{at}.xml") for at in range(len(sheets))},
        ),
        "xl/sharedStrings.xml": f"<sst {_S}>{''.join(f'<si><t>{text}</t></si>' for text in shared)}</sst>",
        "xl/styles.xml": f"<styleSheet {_S}>"
        "<numFmts><numFmt numFmtId='164' formatCode='yyyy\\-mm'/></numFmts>"
        "<cellXfs><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='164'/></cellXfs></styleSheet>",
    }
    for at, content in enumerate(sheets.values()):
        members[f"xl/worksheets/sheet{at}.xml"] = f"<worksheet {_S} {_R}>{content}</worksheet>"
        members[f"xl/worksheets/_rels/sheet{at}.xml.rels"] = relations(l=("hyperlink", "https://lid.example/b"))
    return zipped(members)


# ---- EPUB -----------------------------------------------------------------------------------


def epub_members(**chapters: str) -> dict[str, str | bytes]:
    """The members of a book; the spine is the order of the chapters, the files are in another."""
    items = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"/>' for name in sorted(chapters)
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Book of Jars</dc:title>'
        f"<dc:language>en-GB</dc:language></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
        **{
            f"OEBPS/text/{name}.xhtml": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title>{name}</title></head><body>{text}</body></html>"
            for name, text in chapters.items()
        },
    }


def epub(**chapters: str) -> bytes:
    """A book of chapters."""
    return zipped(epub_members(**chapters))
