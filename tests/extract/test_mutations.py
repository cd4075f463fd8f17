"""Files that are cut, changed or mixed up: a document or the reason why not, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extract.files import docx_members, epub_members, paragraph, pptx, read, shape, word_table, xlsx, zipped
from tests.extract.pdfs import Pdf
from tests.extract.test_data import API, SWAGGER
from tests.extract.test_notebook import code, notebook, text
from tests.extract.test_office import LINK, SHEET
from tests.strategies import examples

from afresh.errors import ExtractError
from afresh.extract.chunk.markdown import chunk

PARTS = {
    "a.docx": docx_members(
        paragraph("Jars", "Heading1"), paragraph(LINK, number="1"), word_table(("a", "b"), ("c", "d"))
    ),
    "a.epub": epub_members(a="<h1>Jars</h1><p>words of a chapter</p>"),
}
FILES = {
    "a.pdf": Pdf(title="Jars", outline=[("Jars", 0)] * 3, links={0: ("https://x.org/", (0, 0, 600, 700))})
    .page(("Jars", 20), ("Some words about jars", 10), ("x = 1", 10, "Courier"))
    .bytes(),
    "a.pptx": pptx((shape("title", "Jars") + shape("body", "one", "-two"), "notes")),
    "a.xlsx": xlsx({"Stock": SHEET}, ("a", "b", "c")),
    "a.ipynb": notebook(text("# Jars"), code("x", {"output_type": "stream", "text": "1"})),
    "a.json": json.dumps(API).encode(),
    "a.yaml": SWAGGER.encode(),
    **{name: zipped(members) for name, members in PARTS.items()},
}
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["set", "cut", "drop", "twice"]), st.binary(min_size=1, max_size=8)),
    min_size=1,
    max_size=6,
)
Change = tuple[float, str, bytes]


def changed(data: bytes, changes: list[Change]) -> bytes:
    for place, how, piece in changes:
        at = int(place * len(data))
        match how:
            case "set":
                data = data[:at] + piece + data[at + len(piece) :]
            case "cut":
                data = data[:at]
            case "drop":
                data = data[:at] + data[at + 9 * len(piece) :]
            case _:
                data = data[:at] + data[at : at + 99] * 2 + data[at:]
    return data


def survives(data: bytes, name: str) -> bool:
    """Whether a file is read; what comes of it can be stored."""
    try:
        document = read(data, name)
    except ExtractError:
        return False
    "".join([document.title, document.markdown, *(each.content for each in chunk(document))]).encode()
    assert "\0" not in document.title + document.markdown
    return True


@pytest.mark.parametrize("name", FILES)
def test_the_files_themselves_are_read(name: str) -> None:
    assert survives(FILES[name], name)


@pytest.mark.parametrize("name", FILES)
@examples(60)
@given(changes=CHANGES)
def test_changed_bytes_never_break_a_reader(name: str, changes: list[Change]) -> None:
    survives(changed(FILES[name], changes), name)


@pytest.mark.parametrize("name", PARTS)
@examples(60)
@given(changes=CHANGES, which=st.integers(0, 20))
def test_changed_parts_of_a_zip_file_never_break_a_reader(name: str, changes: list[Change], which: int) -> None:
    members = dict(PARTS[name])
    part = sorted(members)[which % len(members)]
    whole = members[part]
    members[part] = changed(whole.encode() if isinstance(whole, str) else whole, changes)
    survives(zipped(members), name)


@pytest.mark.parametrize("name", FILES)
def test_F66_every_file_under_the_name_of_every_other(name: str) -> None:
    read_as = [other for other in FILES if survives(FILES[name], other)]
    assert name in read_as
    for other in ("a.txt", "a.md", "a.html", "a"):
        survives(FILES[name], other)
