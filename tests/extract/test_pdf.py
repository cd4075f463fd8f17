"""PDF: text as people read it, structure as far as size, place and outline tell it."""

import pytest
from tests.extract.files import read
from tests.extract.pdfs import Pdf, one_page, stream

from afresh.errors import ExtractError
from afresh.extract.chunk.markdown import chunk
from afresh.extract.office import pdf as pdf_module

BODY = [(f"Line {word} of a paragraph about jars that goes on", 10.0) for word in ("one", "two", "three")]


def test_headings_by_size_paragraphs_lists_and_code() -> None:
    data = (
        Pdf()
        .page(
            ("The Book of Jars", 24),
            ("", 10),
            ("Sizes", 16),
            *BODY,
            ("", 10),
            ("- and + begin no list", 10),
            ("", 10),
            ("x = 1", 10, "Courier"),
            ("y = 2", 10, "Courier"),
        )
        .bytes()
    )
    document = read(data, "jars.pdf", "application/pdf")
    whole = " ".join(text for text, _ in BODY)
    assert document.markdown == (
        f"# The Book of Jars\n\n## Sizes\n\n{whole}\n\n\\- and + begin no list\n\n```\nx = 1\ny = 2\n```"
    )
    assert document.title == "The Book of Jars"
    assert chunk(document)[0].path == ("The Book of Jars", "Sizes")


def test_page_borders_are_invisible() -> None:
    """Running heads and page numbers go, and a sentence goes on across the border."""
    pages = Pdf()
    for number, word in enumerate(("clay", "glass", "iron", "wood", "tin", "paper"), 1):
        first, last = (f"{word} begins this page", 10), (f"and the {word} goes on, after it", 10)
        pages.page(("Chapter 1: Jars", 8), ("", 10), first, *BODY, last, ("", 10), (str(number), 8))
    markdown = read(pages.bytes(), "jars.pdf").markdown
    assert "Chapter 1" not in markdown
    assert "and the clay goes on, after it glass begins this page" in markdown
    assert not any(line.isdigit() for line in markdown.split("\n"))


def test_the_outline_names_the_headings_where_there_is_one() -> None:
    pages = Pdf(title="Told", outline=[("Jars", 0), ("Lids", 0), ("Boxes", 1)])
    pages.page(("1. Jars", 10), ("", 10), *BODY, ("", 10), ("2 Lids", 10), ("", 10), *BODY)
    pages.page(("Boxes", 10), ("", 10), *BODY, ("Large words", 20))
    document = read(pages.bytes(), "jars.pdf")
    assert [line for line in document.markdown.split("\n") if line.startswith("#")] == [
        "# 1. Jars",
        "# 2 Lids",
        "# Boxes",
    ]
    assert document.title == "Told"


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ("Microsoft Word - Jars and lids", "Jars and lids"),
        ("report.docx", "Line one of a paragraph about jars that goes on"),
    ],
)
def test_a_title_that_a_program_made_up_is_not_believed(metadata: str, title: str) -> None:
    assert read(Pdf(title=metadata).page(*BODY).bytes(), "jars.pdf").title == title


def test_links_are_kept_with_their_words() -> None:
    pages = Pdf(links={0: ("https://lid.example/a#top", (70, 746, 300, 760))}).page(("All about lids", 10), *BODY)
    (link,) = read(pages.bytes(), "jars.pdf").links
    assert (link.url, link.text) == ("https://lid.example/a", "All about lids")


def test_a_long_file_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_module, "MOST_PAGES", 2)
    pages = Pdf()
    for _ in range(4):
        pages.page(*BODY)
    assert read(pages.bytes(), "jars.pdf").markdown.endswith("\n\n(cut after 2 pages)")


def test_a_file_that_begins_late_is_found_by_its_name() -> None:
    assert "Line one" in read(b"junk\n" + Pdf().page(*BODY).bytes(), "jars.pdf").markdown


ENCRYPTED = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>]" % (
    b"41" * 32,
    b"42" * 32,
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (Pdf(encrypt=ENCRYPTED).page(*BODY).bytes(), "the PDF is encrypted"),
        (one_page(stream(b"0 0 9 9 re f")), "the PDF has no text"),
        (b"%PDF-1.7\n%\xe2\xe3", "the PDF is broken"),
        (b"<html>please log in</html>", "sent as application/pdf, but the body is text, not PDF"),
    ],
)
def test_F66_what_cannot_be_read_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ExtractError, match=reason):
        read(data, "jars.pdf", "application/pdf")
