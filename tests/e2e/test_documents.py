"""Documents on a site, from the request to the hit, in real parser processes."""

import json
from pathlib import Path

from tests.e2e.library import assert_sound, counts, opened, rows
from tests.extract.files import docx, paragraph
from tests.extract.pdfs import Pdf, one_page, stream
from tests.extract.test_data import API

from afresh.testing import TinySite

PDF = "application/pdf"
WORDS = "The quokka is a small animal that lives on an island and smiles"


async def test_documents_are_found_where_they_stand_and_unchanged_ones_cost_nothing(
    tiny: TinySite, store: Path
) -> None:
    manual = Pdf(title="Manual").page(("Quokkas", 20), *[(WORDS, 10)] * 3).bytes()
    message = docx(paragraph("Letter", "Heading1"), paragraph(WORDS.replace("quokka", "wombat")))
    tiny.put(
        "/",
        '<main><h1>Files</h1><a href="/m.pdf">m</a><a href="/l.docx">l</a><a href="/api">a</a>'
        '<a href="/scan.pdf">s</a></main>',
    )
    tiny.put("/m.pdf", manual, media_type=PDF)
    tiny.put("/l.docx", message, media_type="application/octet-stream")
    tiny.put("/api", json.dumps(API), media_type="application/json")
    tiny.put("/scan.pdf", one_page(stream(b"0 0 9 9 re f")), media_type=PDF)
    async with opened(store) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
        assert (report.state, counts(report)) == ("completed", {"new": 4, "refused": 1})
        for query, path, title in (("quokka", "/m.pdf", "Manual"), ("wombat", "/l.docx", "Letter")):
            hit = (await kb.search.search(query, within=["docs"])).hits[0]
            assert (hit.url, hit.title) == (tiny.at(path), title)
        hit = (await kb.search.search("GET /jars/{id}", within=["docs"])).hits[0]
        assert (hit.url, hit.title) == (tiny.at("/api"), "Jar API")
        (report,) = await kb.runs.refresh(["docs"])
        assert report.not_modified == 4
    reported = rows(store, "select error_message from page_crawls where error_message is not null limit 1")
    assert reported == [("200, but not read: the PDF has no text: its pages are images or empty",)]
    assert_sound(store)
