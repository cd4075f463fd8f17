"""Pages that are too much of something, through the whole walk with the real parser process (F63-F65)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.library import assert_sound, found, index_of, opened, rows
from tests.e2e.sites import page
from tests.fakes.hostile import HostileSite
from tests.fakes.tricks import MEGABYTE
from tests.fakes.wire import answer

CAP = 14 * MEGABYTE
BOUNDS = {"crawl.max_depth": 1, "network.max_body_bytes": CAP}
CRAWL = f"""
import asyncio, json, sys
from pathlib import Path
from tests.e2e.library import opened

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

async def main():
    async with opened(Path(sys.argv[1]), {BOUNDS!r}) as kb:
        await kb.runs.crawl(sys.argv[2] + "small", name="small")
        level = peak()
        report = await kb.runs.crawl(sys.argv[2], name="docs")
    print(json.dumps([report.state, report.new, level, peak()]))

asyncio.run(main())
"""


def _pages() -> dict[str, bytes]:
    numbers = (f"{number:04x}" if number < 0x10000 else f"{number:x}" for number in range(1_000_000))
    return {
        "/links": b"<p>a long list</p>" + "".join(f"<a href={each}>" for each in numbers).encode(),
        "/line": b"<main>" + b"endless " * 1_200_000 + b"</main>",
        "/nested": b"<div>" * 100_000 + b"deep down" + b"</div>" * 100_000,
        "/attribute": b"<p title='" + b"x" * MEGABYTE + b"'>beside it</p>",
        "/title": b"<title>" + b"<b>loud</b>\n" * 90_000 + b"</title><p>below it</p>",
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[object]]:
    """A store after a crawl by a process that does nothing else, the site's address, and what that told."""
    store = tmp_path_factory.mktemp("too_much") / "kb.db"
    pages = _pages()
    with HostileSite() as site:
        for path, body in pages.items():
            site.say(path, answer(200, body, content_type="text/html"))
        site.put("/", page("/", list(pages)))
        site.put("/small", page("/small"))
        reported = subprocess.run(
            [sys.executable, "-c", CRAWL, str(store), site.url], capture_output=True, text=True, check=True
        )
        return store, site.url, json.loads(reported.stdout)


async def test_F63_F64_F65_pages_that_are_too_much_are_indexed_in_bounds(
    crawled: tuple[Path, str, list[object]], work: object
) -> None:
    store, url, (state, new, *_) = crawled
    assert (state, new) == ("completed", 6)
    held = index_of(store)
    assert held[f"{url}nested"].markdown == "deep down"
    assert held[f"{url}attribute"].markdown == "beside it"
    assert len(held[f"{url}line"].markdown or "") == 9_599_999
    async with opened(store) as kb:
        assert await found(kb, "endless") == {f"{url}line"}
        assert await found(kb, "deep down") == {f"{url}nested"}
        assert await found(kb, "loud") == {f"{url}title"}
    assert_sound(store)


def test_F64_the_first_links_are_kept(crawled: tuple[Path, str, list[object]]) -> None:
    store, url, _ = crawled
    ((number,),) = rows(
        store, "select count(*) from page_links l join pages p on p.id = l.page_id where p.url = ?", f"{url}links"
    )
    assert number == 5_000


def test_F65_a_giant_title_is_one_line_of_500_characters(crawled: tuple[Path, str, list[object]]) -> None:
    store, url, _ = crawled
    title = index_of(store)[f"{url}title"].title
    assert title.startswith("<b>loud</b> <b>loud</b>")
    assert 490 < len(title) <= 500
    assert "\n" not in title


def test_P11_F63_F64_memory_of_the_crawling_process_stays_bounded(crawled: tuple[Path, str, list[object]]) -> None:
    _, _, (_, _, level, peak) = crawled
    assert isinstance(level, int)
    assert isinstance(peak, int)
    assert peak - level < 12 * CAP
    assert peak < 300 * MEGABYTE
