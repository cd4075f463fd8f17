"""DOCX, PPTX and XLSX: their structure becomes Markdown that chunks well."""

import pytest
from tests.extract.files import docx, docx_members, paragraph, pptx, read, shape, slide_table, word_table, xlsx, zipped

from afresh.errors import ExtractError
from afresh.extract.chunk.markdown import chunk
from afresh.extract.office import xlsx as xlsx_module

LINK = '<w:r><w:t>See the </w:t></w:r><w:hyperlink r:id="link"><w:r><w:t>lid</w:t></w:r></w:hyperlink>'
CHANGED = (
    "<w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    "<w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:tab/><w:t>words</w:t></w:r>"
)


def test_a_word_file_keeps_headings_lists_tables_code_and_links() -> None:
    data = docx(
        paragraph("Jars", "Heading1"),
        paragraph(LINK),
        paragraph("Lids", "berschrift2"),
        paragraph("first", number="1"),
        paragraph("second", number="1"),
        paragraph("dot", number="2", depth=1),
        paragraph("# not a heading"),
        word_table(("Size", "Price"), ("1 l", "a|b")),
        paragraph("x = 1", "Code"),
        paragraph("y = 2", "Code"),
        paragraph(CHANGED),
    )
    document = read(data, "jars.docx")
    assert document.markdown == (
        "# Jars\n\nSee the [lid](https://lid.example/a)\n\n## Lids\n\n1. first\n1. second\n   - dot\n\n"
        "\\# not a heading\n\n| Size | Price |\n| --- | --- |\n| 1 l | a\\|b |\n\n"
        "```\nx = 1\ny = 2\n```\n\nnew words"
    )
    assert document.title == "Jars"
    assert [(link.url, link.text) for link in document.links] == [("https://lid.example/a", "lid")]
    assert chunk(document)[0].path == ("Jars",)


def test_a_word_file_may_name_its_title_and_frame_a_text() -> None:
    document = read(docx(word_table(("only words",)), title="Told"), "jars.docx")
    assert (document.title, document.markdown) == ("Told", "only words")


def test_a_presentation_is_read_slide_by_slide_with_notes() -> None:
    data = pptx(
        (shape("ctrTitle", "Jars") + shape("subTitle", "and lids") + shape("sldNum", "1"), ""),
        (
            shape("title", "Sizes") + shape("body", "small", "-very small") + slide_table(("a", "b"), ("1", "2")),
            "Say it",
        ),
        (shape("", "alone"), ""),
    )
    document = read(data, "jars.pptx")
    assert document.markdown == (
        "## Jars\n\nand lids\n\n## Sizes\n\n- small\n  - very small\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nNotes: Say it\n\n## Slide 3\n\nalone"
    )
    assert document.title == "Jars"
    assert read(pptx((shape("", "alone"), ""), title="PowerPoint-Präsentation"), "a%20b.pptx").title == "a b.pptx"


SHEET = (
    '<sheetData><row r="2"><c r="B2" t="s"><v>0</v></c><c r="C2" t="s"><v>1</v></c><c r="D2" t="inlineStr">'
    '<is><t>When</t></is></c></row><row r="4"><c r="B4" t="s"><v>2</v></c><c r="C4"><v>1.5</v></c>'
    '<c r="D4" s="1"><v>45292</v></c><c r="E4" t="b"><v>1</v></c><c r="F4" s="2"><v>45292.5</v></c>'
    "</row></sheetData>"
    '<hyperlinks><hyperlink ref="B4" r:id="l"/></hyperlinks>'
)


def test_a_workbook_is_a_table_for_each_visible_sheet() -> None:
    data = xlsx(
        {"Stock": SHEET, "Empty": "<sheetData/>", "Secret": SHEET}, ("Jar", "Price", "small one"), hidden=("Secret",)
    )
    document = read(data, "stock.xlsx")
    assert document.markdown == (
        "## Stock\n\n| Jar | Price | When |  |  |\n| --- | --- | --- | --- | --- |\n"
        "| [small one](https://lid.example/b) | 1.5 | 2024-01-01 | TRUE | 2024-01-01 12:00:00 |"
    )
    assert document.title == "stock.xlsx"


def test_a_long_sheet_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'<row r="{at}"><c r="A{at}"><v>{at}</v></c><c r="B{at}"><v>7</v></c></row>' for at in range(1, 90))
    monkeypatch.setattr(xlsx_module, "MOST_ROWS", 50)
    document = read(xlsx({"Long": f"<sheetData>{rows}</sheetData>"}), "long.xlsx")
    assert document.markdown.endswith("| 50 | 7 |\n\n(cut after 50 rows)")
    monkeypatch.setattr(xlsx_module, "MOST_CELLS", 20)
    document = read(xlsx({"Long": f"<sheetData>{rows}</sheetData>", "More": SHEET}), "long.xlsx")
    assert document.markdown.endswith("(cut after 10 rows)\n\n(cut after 20 cells)")


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (pptx(), "a.pptx", "has no slides"),
        (xlsx({"Empty": "<sheetData/>"}), "a.xlsx", "all sheets of the workbook are empty"),
        (zipped({"word/other.xml": "<a/>"}), "a.docx", "has no member word/document.xml"),
        (zipped({**docx_members(), "word/document.xml": "<w:document"}), "a.docx", "broken XML"),
        (b"PK\x03\x04 and no more", "a.docx", "ZIP file is broken"),
        (b"plain words", "a.docx", "the body is text, not DOCX"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "a.docx", "old or encrypted office file, not DOCX"),
    ],
)
def test_office_files_that_say_nothing_are_refused_with_the_reason(data: bytes, name: str, reason: str) -> None:
    with pytest.raises(ExtractError, match=reason):
        read(data, name)


def test_F66_office_files_are_recognised_by_their_members() -> None:
    assert read(docx(paragraph("Jars")), "download", "application/octet-stream").markdown == "Jars"
    assert read(pptx((shape("title", "Jars"), "")), "download").markdown == "## Jars"
    assert read(xlsx({"Stock": SHEET}, ("a", "b", "c")), "download", "application/zip").title == "download"
    media = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert read(docx(paragraph("Jars")), "download", media).markdown == "Jars"
