"""Markdown bodies."""

import time

from afresh.extract.markdown import extract_markdown
from afresh.model.fetch import Body, Document


def read(text: str) -> Document:
    return extract_markdown(Body(url="https://x.org/docs/readme.md", data=text.encode()))


def test_front_matter_is_read_and_left_out() -> None:
    document = read("---\ntitle: 'Jars & lids'\nlang: de_AT\ntags: [a]\n---\n\n# Other\n\nText\n")
    assert (document.title, document.language, document.markdown) == ("Jars & lids", "de-AT", "# Other\n\nText")


def test_front_matter_has_the_meaning_of_an_html_head() -> None:
    document = read("---\ncanonical: https://other.org/x\nrobots: noindex, nofollow\n---\n[a](b.md)\n")
    assert (document.index, document.follow) == (False, False)
    assert document.foreign_canonical == "https://other.org/x"
    assert read("---\nnoindex: true\ncanonical_url: /docs/readme\n---\ntext\n").index is False
    plain = read("---\ncanonical: 'https://x.org/docs/readme'\n---\ntext\n")
    assert (plain.index, plain.follow, plain.foreign_canonical) == (True, True, None)


def test_title_is_the_first_heading_without_marks() -> None:
    assert read("intro\n\n# The `jar` of [plums](p.md) #\n").title == "The jar of plums"
    assert read("Jars\n====\n\n# Later\n").title == "Jars"
    assert read("```\n# not a title\n```\nwords first\n").title == "words first"


def test_links_of_every_kind_but_not_in_code() -> None:
    document = read(
        "[a](a.md#x 'title') [again](a.md) ![picture](p.png) [b [c]](<b.md>) <https://y.org/z> [d][ref]\n"
        "`[no](no.md)`\n\n```\n[no](no2.md)\n```\n"
        "[e](#here) [f](javascript:x) [w](w_(x).md)\n\n[ref]: ../d.md\n"
    )
    assert {link.url: link.text for link in document.links} == {
        "https://x.org/docs/a.md": "a",
        "https://x.org/docs/b.md": "b [c]",
        "https://x.org/docs/w_(x).md": "w",
        "https://x.org/d.md": "ref",
        "https://y.org/z": "",
    }


def test_F63_brackets_without_end_are_quick() -> None:
    for text in ("[" * 200_000, "[a](" * 50_000, "`" * 100_000, "~~~\n" * 50_001, "[](" + "(" * 50_000):
        start = time.process_time()
        read(text)
        assert time.process_time() - start < 5
