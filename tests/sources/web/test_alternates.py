"""Markdown alternates: which page a file belongs to, and where the file of a page may stand."""

import pytest

from afresh.sources.web.hints import BARE, FORMS, alternates_of, form_among, is_alternate, page_of, shows_form

AT = "https://x.org/docs/"


@pytest.mark.parametrize(
    ("file", "pages"),
    [
        ("a.md", ("a", "a.html", "a/")),
        ("a.html.md", ("a.html", "a.html", "a.html")),
        ("index.md", ("", "", "")),
        ("index.html.md", ("", "", "")),
        ("a/index.md", ("a/", "a/", "a/")),
        ("v1.2.md", ("v1.2", "v1.2.html", "v1.2/")),
    ],
)
def test_a_file_belongs_to_one_page_for_each_form(file: str, pages: tuple[str, ...]) -> None:
    assert tuple(page_of(AT + file, form) for form in FORMS) == tuple(AT + page for page in pages)
    assert shows_form(AT + file) is (len(set(pages)) > 1)
    assert all(AT + file in alternates_of(AT + page) for page in pages), "and the page knows where to look for it"
    assert page_of(AT + file, BARE) == AT + file


@pytest.mark.parametrize("url", ["https://x.org/a", "https://x.org/a.html", "https://x.org/.md", "https://x.org/"])
def test_other_addresses_are_no_files_of_pages(url: str) -> None:
    assert not is_alternate(url)
    assert [page_of(url, form) for form in FORMS] == [url] * 3


def test_known_pages_show_the_form() -> None:
    assert form_among(f"{AT}a.md", {f"{AT}a.html"}) == ".html"
    assert form_among(f"{AT}a.md", {f"{AT}a/", f"{AT}b.html"}) == "/"
    assert form_among(f"{AT}a.md", {f"{AT}b"}) is None
