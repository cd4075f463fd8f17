"""Which extractor reads what, and what none reads."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

from afresh.errors import ExtractError
from afresh.extract import extract
from afresh.extract.registry import FORMATS, choose
from afresh.model.fetch import Body

HTML = b"<!DOCTYPE html><html><head><title>Jars</title></head><body><main><h1>Jars</h1></main></body></html>"


@pytest.mark.parametrize("media_type", ["text/html", "application/xhtml+xml", "application/octet-stream", ""])
def test_F66_html_is_read_whatever_it_is_called(media_type: str) -> None:
    document = extract(Body(url="https://x.org/", data=b"\xef\xbb\xbf\n" + HTML, media_type=media_type))
    assert (document.title, document.markdown) == ("Jars", "# Jars")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "sent as text/html, but the body is PDF"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (bytes(range(256)) * 4, "binary data"),
        (b"PK\x03\x04....", "ZIP"),
    ],
)
def test_F66_other_things_sent_as_html_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ExtractError, match=reason):
        extract(Body(url="https://x.org/", data=data, media_type="text/html"))


@pytest.mark.parametrize("media_type", ["text/css", "application/javascript", "image/svg+xml", "text/xml"])
def test_media_types_that_are_not_prose_are_refused(media_type: str) -> None:
    with pytest.raises(ExtractError, match=f"media type {media_type.replace('+', '.')} is not supported"):
        extract(Body(url="https://x.org/", data=b"{}", media_type=media_type))


def test_markdown_by_type_and_by_name() -> None:
    data = b"# Jars\n\n[lid](lid.md)\n"
    by_type = extract(Body(url="https://x.org/readme", data=data, media_type="text/markdown"))
    by_name = extract(Body(url="https://x.org/README.md?raw=1", data=data, media_type="text/plain"))
    assert by_type.title == by_name.title == "Jars"
    assert [link.url for link in by_type.links] == ["https://x.org/lid.md"]


def test_plain_text_stays_as_it_is() -> None:
    document = extract(
        Body(url="https://x.org/a.txt", data=b"\n\n** Jars **\r\n<b>not markup</b>  \r\n", media_type="text/plain")
    )
    assert (document.title, document.markdown) == ("** Jars **", "** Jars **\n<b>not markup</b>")


def test_a_parser_process_can_be_handed_the_function_and_its_result() -> None:
    document = extract(Body(url="https://x.org/", data=HTML))
    assert pickle.loads(pickle.dumps(extract)) is extract
    assert pickle.loads(pickle.dumps(document)) == document


def test_importing_the_extractors_brings_no_heavy_modules() -> None:
    heavy = ("aiohttp", "asyncio", "lxml", "pypdfium2", "sqlite3", "yaml", "zipfile")
    code = f"import sys, afresh.extract; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "media_type", "reader"),
    [
        ("a.md", "", "markdown:extract_markdown"),
        ("A.MD?raw=1", "application/octet-stream", "markdown:extract_markdown"),
        ("a.html", "", "html.html:extract_html"),
        ("a.txt", "", "markdown:extract_text"),
        ("a.json", "text/plain", "data_files:extract_json"),
        ("a.ipynb", "text/plain", "data_files:extract_notebook"),
        ("a.json", "text/html", "html.html:extract_html"),
        ("a", "application/problem+json", "data_files:extract_json"),
        ("a", "application/yaml", "data_files:extract_yaml"),
        ("a.pdf", "application/x-download", "office.pdf:extract_pdf"),
        ("a.pdf", "text/markdown", "markdown:extract_markdown"),
        ("v1.2", "text/plain", "markdown:extract_text"),
        ("", "", "markdown:extract_text"),
    ],
)
def test_the_media_type_counts_first_then_the_name_then_the_bytes(name: str, media_type: str, reader: str) -> None:
    assert choose(Body(url=f"file:///docs.v2/{name}", data=b"words", media_type=media_type)).reader == reader


def test_a_pdf_is_recognised_by_its_first_bytes() -> None:
    for media_type in ("", "application/octet-stream", "text/plain"):
        body = Body(url="https://x.org/download", data=b"%PDF-1.7\n", media_type=media_type)
        assert choose(body).reader == "office.pdf:extract_pdf"


@pytest.mark.parametrize(
    ("data", "media_type", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png", "unsupported binary format (image/png)"),
        (b"\x89PNG\r\n\x1a\n", "", "unsupported binary format (a PNG image)"),
        (bytes(range(256)), "application/octet-stream", "unsupported binary format (binary data)"),
        (b"PK\x05\x06" + bytes(18), "application/zip", "unsupported binary format (an empty ZIP archive)"),
    ],
)
def test_F66_an_unknown_binary_is_refused_with_what_it_is(data: bytes, media_type: str, reason: str) -> None:
    with pytest.raises(ExtractError) as error:
        extract(Body(url="https://x.org/thing", data=data, media_type=media_type))
    assert str(error.value) == reason


def test_every_format_of_the_table_can_be_read() -> None:
    for each in FORMATS:
        module, _, name = str(each.reader).partition(":")
        assert callable(getattr(import_module(f"afresh.extract.{module}"), name))
    for keys in (
        [name for each in FORMATS for name in each.names],
        [media for each in FORMATS for media in each.media],
    ):
        assert len(keys) == len(set(keys))
        assert all(each == each.lower() for each in keys)


@pytest.mark.parametrize("name", ["llms.txt", "docs/llms.txt", "llms-full.txt"])
def test_lists_of_links_for_programs_are_markdown(name: str) -> None:
    url = f"https://x.org/{name}"
    document = extract(Body(url=url, data=b"# Jars\n\n- [lids](lids.md)\n", media_type="text/plain"))
    assert document.title == "Jars"
    assert [link.url for link in document.links] == [url.rpartition("/")[0] + "/lids.md"]
    assert document.follow is not name.startswith("llms-full")
    other = extract(Body(url="https://x.org/notes.txt", data=b"- [lids](lids.md)", media_type="text/plain"))
    assert other.links == ()
