"""Language tags and the guess."""

import json
from pathlib import Path

import pytest

from afresh.extract.language import guess_by_sample, prose_of
from afresh.text.language import normalise_tag


def test_tags_of_RFC_5646(shared: Path) -> None:
    """FAULTS 'RFC 5646': the canonical form of every row of bcp47.jsonl."""
    table = shared / "data" / "standards" / "bcp47.jsonl"
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    wrong = [(row["tag"], normalise_tag(row["tag"])) for row in rows if normalise_tag(row["tag"]) != row["canonical"]]
    assert len(rows) >= 29
    assert not wrong


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("PT-br", "pt-BR"),
        ("zh-HANT-tw", "zh-Hant-TW"),
        (" en ", "en"),
        ("en, fr", "en"),
        ("de_AT.UTF-8", "de-AT"),
        ("", None),
        (None, None),
        ("{{ lang }}", None),
        ("en-" + "a" * 40, None),
        ("en-US-" + "-".join(["abcde"] * 7), None),
    ],
)
def test_tags_are_cleaned_or_refused(raw: str | None, clean: str | None) -> None:
    assert normalise_tag(raw) == clean


SENTENCES = {
    "en": (
        "The server is started with the command that you can find in the first chapter of "
        "this manual, and it is not needed for the tests."
    ),
    "de": (
        "Der Dienst wird mit dem Befehl gestartet, den Sie im ersten Kapitel finden, und ist "
        "für die Prüfung nicht nötig, auch wenn das eine Hilfe ist."
    ),
    "fr": (
        "Le serveur est lancé avec la commande que vous trouvez dans le premier chapitre, et "
        "ce n'est pas utile pour les essais qui sont sur la page."
    ),
    "es": (
        "El servidor se inicia con la orden que está en el primer capítulo del manual, y no "
        "es necesario para las pruebas que son como los ejemplos."
    ),
    "pt": (
        "O servidor é iniciado com o comando que está no primeiro capítulo do manual, e não é "
        "preciso para os testes que são como as provas da página."
    ),
    "it": (
        "Il servizio si avvia con il comando che è nel primo capitolo della guida, e non è "
        "necessario per le prove che sono come gli esempi anche qui."
    ),
    "nl": (
        "De dienst wordt gestart met het bevel dat in het eerste hoofdstuk van deze gids "
        "staat, en het is niet nodig voor de proeven die er ook zijn."
    ),
    "sv": (
        "Tjänsten startas med det kommando som finns i det första kapitlet av boken, och det "
        "är inte nödvändigt för att köra proven eller om du har en annan."
    ),
    "pl": (
        "Usługa jest uruchamiana przez polecenie, które jest w pierwszym rozdziale, i nie "
        "jest potrzebna do prób, jak się może zdawać, to jest dla osób."
    ),
    "cs": (
        "Služba se spouští příkazem, který je v první kapitole, a není nutná pro zkoušky, "
        "které jsou jako příklady, nebo se to tak při práci zdá."
    ),
    "tr": (
        "Bu hizmet ilk bölümde olan komut ile başlar ve sınamalar için gerekli değil, ama "
        "daha çok bilgi için bir sonra gelen bölüm de her zaman gibi var."
    ),
    "fi": (
        "Palvelu käynnistetään komennolla, joka on ensimmäisessä luvussa, ja se ei ole "
        "tarpeen kun kokeet ovat valmiit, mutta se voi olla myös niin että tai."
    ),
    "ru": "Служба запускается командой, которая приведена в первой главе этого руководства.",
    "uk": "Служба запускається командою, яку наведено в першому розділі цієї книги.",
    "el": "Η υπηρεσία ξεκινά με την εντολή που υπάρχει στο πρώτο κεφάλαιο.",
    "ar": "تبدأ الخدمة بالأمر الموجود في الفصل الأول من هذا الدليل.",
    "fa": "این سرویس با دستوری که در فصل اول گفته شده چگونه آغاز می‌شود.",
    "he": "השירות מופעל בפקודה שמופיעה בפרק הראשון של המדריך.",
    "th": "บริการนี้เริ่มด้วยคำสั่งที่อยู่ในบทแรกของคู่มือ",
    "hi": "यह सेवा उस आदेश से शुरू होती है जो पहले अध्याय में है।",
    "ja": "このサービスは第一章にあるコマンドで起動します。試験には必要ありません。",
    "zh": "该服务由第一章中的命令启动，测试时不需要它，详细说明见手册。",
    "ko": "이 서비스는 첫 번째 장에 있는 명령으로 시작됩니다.",
}


def guess(text: str) -> str | None:
    return guess_by_sample(prose_of(text))


@pytest.mark.parametrize("language", SENTENCES)
def test_guess_of_plain_sentences(language: str) -> None:
    assert guess(SENTENCES[language]) == language


def test_guess_reads_past_code() -> None:
    code = "```python\n" + "for it in this: print('the', 'and', 'of') # is that for you\n" * 20 + "```\n"
    assert guess(code + SENTENCES["de"]) == "de"


def test_guess_of_mixed_page_with_english_names() -> None:
    assert guess(SENTENCES["ja"] + " FastAPI and Pydantic " * 2) == "ja"


@pytest.mark.parametrize("text", ["", "ok", "x = 1", "12345 67890 " * 50, "json.dump(obj, fp) " * 40, "Lorem"])
def test_no_guess_without_signs(text: str) -> None:
    assert guess(text) is None
