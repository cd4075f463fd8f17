"""Which extractor reads what, and what none reads."""

import pickle
import subprocess
import sys

import pytest

from afresh.core.errors import ExtractError
from afresh.core.looks import Body
from afresh.extractors import extract

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


@pytest.mark.parametrize(
    "media_type", ["application/json", "text/css", "application/javascript", "image/svg+xml", "text/xml"]
)
def test_media_types_that_are_not_prose_are_refused(media_type: str) -> None:
    with pytest.raises(
        ExtractError, match=f"media type {media_type.replace('+', '.')} is not text that afresh reads"
    ):
        extract(Body(url="https://x.org/", data=b"{}", media_type=media_type))


def test_markdown_by_type_and_by_name() -> None:
    data = b"# Jars\n\n[lid](lid.md)\n"
    by_type = extract(Body(url="https://x.org/readme", data=data, media_type="text/markdown"))
    by_name = extract(Body(url="https://x.org/README.md?raw=1", data=data, media_type="text/plain"))
    assert by_type.title == by_name.title == "Jars"
    assert [link.url for link in by_type.links] == ["https://x.org/lid.md"]


def test_plain_text_stays_as_it_is() -> None:
    document = extract(
        Body(
            url="https://x.org/a.txt",
            data=b"\n\n** Jars **\r\n<b>not markup</b>  \r\n",
            media_type="text/plain",
        )
    )
    assert (document.title, document.markdown) == ("** Jars **", "** Jars **\n<b>not markup</b>")


def test_a_parser_process_can_be_handed_the_function_and_its_result() -> None:
    document = extract(Body(url="https://x.org/", data=HTML))
    assert pickle.loads(pickle.dumps(extract)) is extract
    assert pickle.loads(pickle.dumps(document)) == document


def test_importing_the_extractors_brings_no_heavy_modules() -> None:
    heavy = ("aiohttp", "asyncio", "lxml", "sqlite3", "yaml")
    code = f"import sys, afresh.extractors; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["llms.txt", "docs/llms.txt", "llms-full.txt"])
def test_lists_of_links_for_programs_are_markdown(name: str) -> None:
    url = f"https://x.org/{name}"
    document = extract(Body(url=url, data=b"# Jars\n\n- [lids](lids.md)\n", media_type="text/plain"))
    assert document.title == "Jars"
    assert [link.url for link in document.links] == [url.rpartition("/")[0] + "/lids.md"]
    assert document.follow is not name.startswith("llms-full")
    other = extract(Body(url="https://x.org/notes.txt", data=b"- [lids](lids.md)", media_type="text/plain"))
    assert other.links == ()
