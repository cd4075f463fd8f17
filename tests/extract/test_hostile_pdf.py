"""PDF files that were made to be costly, read in a real parser process: bounded time and memory."""

from collections.abc import AsyncIterator

import pytest
from tests.extract.pdfs import Pdf, assembled, bomb, branching, one_page, stream

from afresh.errors import ExtractError, ParserCrashed
from afresh.extract.pool import pool
from afresh.extract.pool.pool import ParserPool
from afresh.extract.pool.wire import EXTRACT
from afresh.model.fetch import Body


@pytest.fixture
async def work() -> AsyncIterator[ParserPool]:
    work = ParserPool(1)
    yield work
    await work.close()


def pdf(data: bytes) -> Body:
    return Body(url="https://x.org/a.pdf", data=data, media_type="application/pdf")


FINE = Pdf().page(("Some words about jars", 10)).bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", [bomb(4 * 1024**3), branching(12, 10)], ids=["a stream that unpacks to 4 GB", "forms in forms"]
)
async def test_a_pdf_that_hangs_or_swells_is_killed_and_the_next_is_read(
    work: ParserPool, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(data) < 20_000
    assert (await work.call(EXTRACT, pdf(FINE))).markdown == "Some words about jars"
    monkeypatch.setattr(pool, "SECONDS", 1.0)
    with pytest.raises(ParserCrashed):
        await work.call(EXTRACT, pdf(data))
    monkeypatch.undo()
    assert (await work.call(EXTRACT, pdf(FINE))).markdown == "Some words about jars"


PAGES = b"<< /Type /Catalog /Pages 2 0 R >>"
LOOP = assembled([PAGES, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2000000000 >>"])
XREF = b"%PDF-1.7\nxref\n0 2000000000\ntrailer << /Size 2000000000 /Root 1 0 R >>\nstartxref\n9\n%%EOF"


@pytest.mark.parametrize(
    "data",
    [
        assembled([b"<< /A " * 200_000 + b">>" * 200_000]),
        one_page(stream(b"[" * 1_000_000)),
        one_page(stream(b"q " * 500_000)),
        LOOP,
        XREF,
        XREF[:40],
        FINE.replace(b"/Count 1", b"/Count 9999999"),
        FINE.replace(b"[0 0 612 792]", b"[0 0 1e38 1e38]"),
    ],
    ids=["objects in objects", "lists in lists", "states", "pages in pages", "xref", "cut", "count", "page"],
)
async def test_a_pdf_that_is_deep_or_lies_about_sizes_costs_little(work: ParserPool, data: bytes) -> None:
    try:
        document = await work.call(EXTRACT, pdf(data))
    except ExtractError as error:
        assert not isinstance(error, ParserCrashed), error  # noqa: PT017 - a refusal is fine
    else:
        assert "jars" in document.markdown
