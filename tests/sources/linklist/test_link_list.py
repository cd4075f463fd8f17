"""What a file of links lists, and what is said about its lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.sources.linklist.parse import is_link_list, parse_links
from afresh.urls.canonical import canonical

A, B, C = "https://a.test/", "https://b.test/x", "http://c.test/y?z=1"


def test_E15_one_address_on_each_line_in_their_order() -> None:
    assert tuple(parse_links(f"{B}\n{A}\n{C}\n".encode()).lines) == (B, A, C)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("no end of line at the end", f"{A}\n{B}".encode()),
        ("CRLF", f"{A}\r\n{B}\r\n".encode()),
        ("CR alone", f"{A}\r{B}\r".encode()),
        ("mixed ends", f"{A}\r\n\n\r{B}\n".encode()),
        ("BOM", f"\ufeff{A}\n{B}\n".encode()),
        ("UTF-16 with BOM", f"{A}\r\n{B}\r\n".encode("utf-16")),
        ("blank lines", f"\n\n {A}\t\n \t\n{B}\n\n".encode()),
        ("comments", f"# my links\n  # more\n{A} # the first\n{B}\t# {C}\n#{C}\n".encode()),
        ("a part of the page", f"{A}#part\n{B}\n".encode()),
        ("other forms of the address", b"HTTPS://A.test:443\nhttps://b.test/./x?utm_source=n\n"),
    ],
)
def test_F86_CRLF_BOM_comments_and_blanks_list_the_same(name: str, data: bytes) -> None:
    found = parse_links(data)
    assert (tuple(found.lines), found.notes) == ((A, B), []), name


def test_F86_duplicates_are_read_once_and_reported() -> None:
    found = parse_links(f"{A}\n{B}\n{A}#part\nhttps://A.test\n".encode())
    assert tuple(found.lines) == (A, B)
    assert found.notes == ["lines 3, 4: these URLs are listed before, and read once"]
    assert parse_links(f"{A}\n{A}\n".encode()).notes == ["line 2: this URL is listed before, and read once"]
    many = parse_links((f"{A}\n" * 9).encode())
    assert many.notes == ["lines 2, 3, 4, 5, 6 and 3 more: these URLs are listed before, and read once"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("docs/intro.html", "'docs/intro.html' is not an http or https URL"),
        ("/intro", "'/intro' is not an http or https URL"),
        ("//a.test/x", "'//a.test/x' is not an http or https URL"),
        ("a.test/x", "'a.test/x' is not an http or https URL"),
        ("ftp://a.test/", "'ftp://a.test/' is not an http or https URL"),
        ("file:///etc/passwd", "'file:///etc/passwd' is not an http or https URL"),
        ("javascript:alert(1)", "'javascript:alert(1)' is not an http or https URL"),
        ("https:a.test", "'https:a.test' is not an http or https URL"),
        ("https://", "'https://' is not an http or https URL"),
        (f"{A} {B}", f"'{A} {B}' is not one URL; write one on each line"),
        ("- " + A, f"'- {A}' is not one URL; write one on each line"),
    ],
)
def test_F86_a_line_that_is_no_web_address_is_reported_with_its_number_and_costs_no_other(line: str, why: str) -> None:
    found = parse_links(f"{B}\n{line}\n{C}\n".encode())
    assert (tuple(found.lines), found.notes) == ((B, C), [f"line 2: {why}"])


def test_P19_a_password_in_a_line_is_not_repeated() -> None:
    found = parse_links(f"https://me:hunter2@a.test/\n{B}\n".encode())
    assert tuple(found.lines) == (B,)
    [note] = found.notes
    assert note == "line 1: the URL contains a user name or password; remove it, because it is never sent"


@pytest.mark.parametrize("line", [b"https://a.test/\xff\xfe", b"https://a.test/\x00", b"\x00" * 50, b"\xff"])
def test_F86_bytes_that_are_no_text_cost_only_their_line(line: bytes) -> None:
    found = parse_links(b"\n".join([B.encode(), line, C.encode()]))
    assert tuple(found.lines) == (B, C)
    [note] = found.notes
    assert note.startswith("line 2: ")
    assert note.isprintable()


def test_F86_a_file_in_utf_16_that_is_cut_anywhere_is_read_as_far_as_it_goes() -> None:
    whole = f"{B}\n{A}\n".encode("utf-16")
    for length in range(len(f"{B}\n".encode("utf-16")), len(whole)):
        assert tuple(parse_links(whole[:length]).lines)[:1] == (B,)


def test_a_long_line_is_quoted_in_part() -> None:
    [note] = parse_links(b"x" * 100_000).notes
    assert len(note) < 150


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# nothing yet\n", "\ufeff".encode(), b"\r\n  \r\n"])
def test_F86_an_empty_file_lists_nothing(data: bytes) -> None:
    found = parse_links(data)
    assert (tuple(found.lines), found.notes) == ((), [])


@law
@given(st.binary(max_size=300) | st.text("htps:/.a#@ \t\r\n\ufeff\x00é", max_size=200).map(str.encode))
def test_F86_any_bytes_are_a_list_of_canonical_addresses(data: bytes) -> None:
    found = parse_links(data)
    assert all(canonical(url) == url and url.startswith(("http://", "https://")) for url in tuple(found.lines))
    assert all(note.isprintable() for note in found.notes)


@law
@given(st.lists(st.sampled_from([A, B, C, f"{A}sub", "", "# note", "nonsense"]), max_size=12), st.data())
def test_F86_the_start_of_a_list_lists_a_part_of_it(lines: list[str], data: st.DataObject) -> None:
    """A file that is cut between two lines shows fewer addresses, and no other ones."""
    kept = data.draw(st.integers(0, len(lines)))
    whole, part = (tuple(parse_links("\n".join(some).encode()).lines) for some in (lines, lines[:kept]))
    assert whole[: len(part)] == part


@pytest.mark.parametrize(
    ("name", "head", "is_list"),
    [
        ("links.txt", "", True),
        ("my-links.txt", "what is this", True),
        ("reading.urls", "", True),
        ("links", "", True),
        ("weekly.txt", f"{A}\n{B}\nnonsense\n", True),
        ("weekly", f"# mine\n{A}\n", True),
        ("weekly.txt", "", False),
        ("blinks.txt", "One line of prose.", False),
        ("notes.txt", f"See\n{A}\nfor more, it is\nworth reading.\n", False),
        ("links.md", f"{A}\n", False),
        ("links.pdf", f"{A}\n", False),
    ],
)
def test_a_list_is_known_by_its_name_or_its_lines(name: str, head: str, is_list: bool) -> None:
    assert is_link_list(name, head.encode()) is is_list
