"""Pages in many languages, from the wire to an answer: right tags, and words found wherever they stand."""

from pathlib import Path

import pytest
from tests.e2e.library import found, opened
from tests.e2e.sites import page

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

FOLDER = Path(__file__).resolve().parents[1] / "data" / "languages"
PAGES = {f"/{file.stem.replace('+', '/')}": file for file in FOLDER.glob("*.html")}
QUERIES = {
    "連接注入系統": "/zh-Hant-TW/script",
    "注入系統": "/zh-Hant-TW/script",
    "元件": "/zh-Hant-TW/script",
    "開發者 元件": "/zh-Hant-TW/script",
    "タスク": "/ja/says-en-US",
    "バックグラウンドタスクを定義": "/ja/says-en-US",
    "時間 メール": "/ja/says-en-US",
    "Anwendungen Sitzung": "/de/says-en",
    "requêtes échouent": "/fr/says-nothing",
    "parâmetro": "/pt-BR/lower-case",
}


@pytest.fixture
def site(tiny: TinySite) -> TinySite:
    tiny.put("/", page("Root", list(PAGES)))
    for path, file in PAGES.items():
        tiny.put(path, file.read_text(encoding="utf-8"))
    return tiny


async def test_B10_every_page_of_a_site_in_many_languages_is_tagged_and_found(
    kb: KnowledgeBase, site: TinySite
) -> None:
    assert (await kb.runs.crawl(site.url, name="docs")).state == "completed"
    tags = {each.url: each.language for each in await kb.pages.of_source("docs")}
    assert {path: tags[site.at(path)] for path in PAGES} == {path: path.strip("/").partition("/")[0] for path in PAGES}
    for query, path in QUERIES.items():
        assert site.at(path) in await found(kb, query), query
    assert await found(kb, "注入系統") == {site.at("/zh-Hant-TW/script")}


async def test_B10_the_parser_processes_say_languages_and_make_terms(store: Path, site: TinySite) -> None:
    async with opened(store) as kb:
        assert (await kb.runs.crawl(site.url, name="docs")).state == "completed"
        tags = {each.url: each.language for each in await kb.pages.of_source("docs")}
        assert tags[site.at("/vi/says-en")] == "vi"
        assert await found(kb, "元件") == {site.at("/zh-Hant-TW/script")}


async def test_G10_a_language_sticks_until_it_is_asked_for_again(kb: KnowledgeBase, site: TinySite) -> None:
    path = "/de/says-en"
    german = PAGES[path].read_text(encoding="utf-8")
    site.put(path, page("Kurz", text="Zu wenig"))
    await kb.runs.crawl(site.url, name="docs")
    site.put(path, german)
    [report] = await kb.runs.refresh(["docs"])
    assert report.changed == 1
    assert await _tag(kb, site.at(path)) == "en"
    assert site.at(path) not in await found(kb, "Anwendungen Sitzung")
    [report] = await kb.runs.refresh(["docs"])
    assert report.not_modified == len(PAGES) + 1
    [report] = await kb.runs.refresh(["docs"], redetect=True)
    assert (report.not_modified, report.changed, report.unchanged) == (0, 0, len(PAGES) + 1)
    assert await _tag(kb, site.at(path)) == "de"
    assert site.at(path) in await found(kb, "Anwendungen Sitzung")
    assert (await kb.pages.changes("docs"))[0].run != report.run, "nothing is told as changed"


async def _tag(kb: KnowledgeBase, url: str) -> str | None:
    return next(each.language for each in await kb.pages.of_source("docs") if each.url == url)
