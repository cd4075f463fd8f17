"""The normal form and the hashes."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from afresh.model.fetch import Link
from afresh.text.normalize import content_hash, headings_in, links_hash, normalise, text_hash


def test_E13_line_ends_trailing_blanks_and_outer_blank_lines_go() -> None:
    assert normalise("\r\n \t\n  a \t\r\nb\r\rc  \n\n \n") == "  a\nb\n\nc"


def test_E13_blanks_inside_and_at_the_start_of_a_line_stay() -> None:
    assert normalise("    code  here") == "    code  here"


@given(st.text())
def test_E13_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert "\r" not in once
    assert not once.startswith("\n")
    assert all(line == line.rstrip() for line in once.split("\n"))


def test_normalise_is_linear_in_a_long_run_of_blanks() -> None:
    text = "a" + " " * 2_000_000 + "b"
    assert normalise(text) == text


def test_G8_content_hash_is_the_sha256_of_the_normal_form() -> None:
    assert content_hash("a \r\n\r\n") == hashlib.sha256(b"a").hexdigest()
    assert text_hash("a ") != text_hash("a")


def test_F61_lone_surrogates_are_hashed_and_distinguished() -> None:
    assert content_hash("\ud800") != content_hash("\ud801")


@given(st.text(), st.text())
def test_texts_with_another_normal_form_have_another_hash(one: str, other: str) -> None:
    assert (content_hash(one) == content_hash(other)) == (normalise(one) == normalise(other))


A, B = Link("https://x.org/a", "A"), Link("https://x.org/b", "B")


def test_C17_links_in_another_order_are_the_same_links() -> None:
    assert links_hash([A, B]) == links_hash((B, A, A))


def test_C17_a_new_lost_renamed_or_nofollow_link_shows() -> None:
    hashes = [
        links_hash(links) for links in ([A, B], [A], [], [A, Link(B.url, "b")], [A, Link(B.url, "B", follow=False)])
    ]
    assert len(set(hashes)) == len(hashes)


def test_C17_text_and_url_cannot_be_shifted_into_each_other() -> None:
    assert links_hash([Link("https://x.org/a", "b")]) != links_hash([Link("https://x.org/ab", "")])


def test_headings_are_found_outside_of_code() -> None:
    text = "# One\n\ntext # no\n\n```sh\n# a comment\n```\n\n### Three\n#hash\n"
    text += "~~~\n## in code\n~~~\n####### seven"
    assert headings_in(text) == ["One", "Three"]
