"""EPUB: chapters in reading order, as Markdown, with what the package says of the book."""

import pytest
from tests.extract.files import epub, epub_members, read, zipped

from afresh.errors import ExtractError

TEXT = "<p>" + "A jar is a thing that keeps what you put into it, and a lid is what keeps it there. " * 3 + "</p>"
INNER = '<p>See <a href="a.xhtml#top">the first one</a> or <a href="https://lid.example/a">the lid</a>.</p>'


def test_chapters_come_in_the_order_of_the_spine() -> None:
    document = read(epub(b=f"<h1>First</h1>{TEXT}{INNER}", a=f"<h1>Second</h1>{TEXT}"), "jars.epub")
    assert [line for line in document.markdown.split("\n") if line.startswith("#")] == ["# First", "# Second"]
    assert "See the first one or [the lid](https://lid.example/a)." in document.markdown
    assert (document.title, document.language) == ("The Book of Jars", "en-GB")
    assert [link.url for link in document.links] == ["https://lid.example/a"]


def test_F66_a_book_without_a_name_is_a_book() -> None:
    assert read(epub(a=TEXT), "download", "application/octet-stream").title == "The Book of Jars"


LOCK = (
    '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>'
    '<enc:CipherReference URI="OEBPS/{}"/></enc:CipherData></enc:EncryptedData></encryption>'
)


def test_a_locked_book_is_refused_and_one_with_locked_fonts_is_read() -> None:
    members = epub_members(a=TEXT)
    fonts = zipped({**members, "META-INF/encryption.xml": LOCK.format("font.otf")})
    assert "keeps what you put into it" in read(fonts, "jars.epub").markdown
    with pytest.raises(ExtractError, match="encrypted"):
        read(zipped({**members, "META-INF/encryption.xml": LOCK.format("text/a.xhtml")}), "jars.epub")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"META-INF/container.xml": "<container/>"}, "no package file with the list of its chapters"),
        ({"OEBPS/book.opf": "<package/>"}, "has no chapters"),
        ({"OEBPS/text/a.xhtml": ""}, "has no text"),
        ({"OEBPS/book.opf": "no markup"}, "broken XML"),
    ],
)
def test_a_book_that_says_nothing_is_refused_with_the_reason(changed: dict[str, str], reason: str) -> None:
    with pytest.raises(ExtractError, match=reason):
        read(zipped({**epub_members(a=TEXT), **changed}), "jars.epub")
