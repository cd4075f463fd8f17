"""Search in many languages: words in their other forms, and in the middle of text without spaces."""

from pathlib import Path

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.model.fetch import Seen
from afresh.store.store import Store

ZH = "依赖注入是一个强大的系统。它让你的FastAPI应用更容易测试\n\n数据库连接在请求结束时关闭"
JA = "依存性の注入はとても強力な仕組みです。データベースの接続を閉じる"
KO = "의존성 주입은 강력한 시스템입니다. 데이터베이스를 닫습니다"
TH = "ระบบนี้ใช้ฐานข้อมูลสำหรับเก็บคำตอบ"
SITE: dict[str, Seen] = {
    "": read("The houses of the harbour", "de", "zh", "ja", "ko", "th", "hi", "fr", title="Start", language="en"),
    "de": read("Die Häuser stehen in den Straßen der Städte", title="Gebäude", language="de-AT"),
    "fr": read("Les chevaux mangent, die Maschine läuft", title="Chevaux", language="fr"),
    "zh": read(ZH, title="依赖注入教程", language="zh-Hans"),
    "ja": read(JA, title="依存性", language="ja"),
    "ko": read(KO, title="의존성", language="ko"),
    "th": read(TH, title="ระบบ", language="th"),
    "hi": read("यह सेवाओं की सूची है", title="सूची", language="hi"),
}


@pytest.fixture
async def filled(crawler: ManualCrawler) -> ManualCrawler:
    await crawler.crawl(SITE)
    return crawler


async def _urls(crawler: ManualCrawler, query: str, language: str | None = None) -> list[str]:
    return [hit.url.removeprefix(at("")) for hit in await search(crawler.store, query, language=language)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Haus", "de"),
        ("häuser", "de"),
        ("Strasse", "de"),
        ("Stadt Straße", "de"),
        ('"der Stadt"', "de"),
        ("cheval", "fr"),
        ("Gebäuden", "de"),
        ("सेवा", "hi"),
    ],
)
async def test_B10_a_word_is_found_in_its_other_forms(filled: ManualCrawler, query: str, first: str) -> None:
    assert (await _urls(filled, query))[0] == first
    assert (await _urls(filled, query, first))[0] == first


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("注入", "zh"),
        ("赖注入是", "zh"),
        ("测试", "zh"),
        ("FastAPI 依赖注入", "zh"),
        ("FastAPI应用", "zh"),
        ('"的FastAPI应用"', "zh"),
        ("数据库", "zh"),
        ("如何关闭数据库连接", "zh"),
        ("教程", "zh"),
        ("仕組み", "ja"),
        ("注入は", "ja"),
        ("データベース 接続", "ja"),
        ("시스템", "ko"),
        ("데이터베이스", "ko"),
        ("ข้อมูล", "th"),
    ],
)
async def test_B10_a_word_is_found_in_the_middle_of_unspaced_text(
    filled: ManualCrawler, query: str, first: str
) -> None:
    assert (await _urls(filled, query))[0] == first
    assert (await _urls(filled, query, first))[0] == first


@pytest.mark.parametrize(("query", "found"), [("库", ["zh"]), ("試", []), ("閉", ["ja"])])
async def test_B10_one_character_is_a_query(filled: ManualCrawler, query: str, found: list[str]) -> None:
    assert await _urls(filled, query) == found


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("强大", "依赖注入是一个\x02强大\x03的系统。它让你的FastAPI应用更容易测试"),
        ("fastapi 测试", "依赖注入是一个强大的系统。它让你的\x02FastAPI\x03应用更容易\x02测试\x03"),
        ("haus", "Die \x02Häuser\x03 stehen in den Straßen der Städte"),
    ],
)
async def test_what_matched_is_marked_in_the_text_itself(filled: ManualCrawler, query: str, marked: str) -> None:
    assert (await search(filled.store, query))[0].text == marked


async def test_B10_the_language_asked_for_says_how_words_are_read(filled: ManualCrawler) -> None:
    assert await _urls(filled, "Haus", "fr") == []
    assert await _urls(filled, "Haus", "de") == ["de"]
    assert await _urls(filled, "Haus", "de-AT") == ["de"]


async def test_a_title_alone_is_found_in_its_other_forms_after_it_changed(crawler: ManualCrawler) -> None:
    for title in ("Bäume", "Die Häuser"):
        await crawler.crawl({"": read("Inhalt", title=title, language="de")})
    assert await _urls(crawler, "Haus") == [""]
    assert await _urls(crawler, "Inhalte") == [""]
    for title in ("中文教程", "依赖注入"):
        await crawler.crawl({"": read("Inhalt", title=title, language="de")})
    assert await _urls(crawler, "注入") == [""]


@pytest.mark.parametrize("query", ["依赖注入", "测试", "Haus"])
async def test_B17_terms_without_a_body_are_found(crawler: ManualCrawler, query: str) -> None:
    crawler.keep_body = False
    await crawler.crawl(SITE)
    hits = await search(crawler.store, query)
    assert hits[0].url == at("de" if query == "Haus" else "zh")
    assert hits[0].text == ""


async def test_B17_no_sentence_without_spaces_is_in_the_file(
    sqlite_store: Store, sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    sqlite_crawler.keep_body = False
    await sqlite_crawler.crawl(SITE)
    assert len(await search(sqlite_store, "数据库连接")) > 0
    kept = b"".join(file.read_bytes() for file in sqlite_file.parent.glob("afresh.db*"))
    assert "数据".encode() in kept, "its pairs are what is searched"
    for part in ("数据库连接", "系统。它", "データベースの", "데이터베이스"):
        assert part.encode() not in kept
