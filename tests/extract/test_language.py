"""B10: the tag of a page, on pages of our own in many languages, some of which say something wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from afresh.extract import extract
from afresh.extract.language import classify, language_of
from afresh.model.fetch import Body

FOLDER = Path(__file__).resolve().parents[1] / "data" / "languages"
PAGES = sorted(file for file in FOLDER.iterdir() if file.name != "README.md")
GERMAN = (
    "Eine Anwendung öffnet für jede Anfrage eine eigene Verbindung und schließt sie wieder, sobald die "
    "Antwort verschickt wurde."
)
ENGLISH = "The server sends the answer to the client and closes the connection, so nothing is left open behind it."


def _tag(file: Path) -> str:
    return file.stem.partition("+")[0]


def _body(file: Path, language: str | None = None) -> Body:
    kind = "text/markdown" if file.suffix == ".md" else "text/html"
    url = f"https://docs.example.org/{file.name}"
    return Body(url=url, data=file.read_bytes(), media_type=kind, charset="utf-8", language=language)


def test_the_set_is_wide() -> None:
    assert len({_tag(file).partition("-")[0] for file in PAGES}) >= 20


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_B10_every_tag_is_right(file: Path) -> None:
    assert extract(_body(file)).language == _tag(file)


@pytest.mark.parametrize("file", [file for file in PAGES if file.suffix == ".md"], ids=lambda file: file.name)
def test_B10_a_server_that_says_english_of_everything_is_not_believed(file: Path) -> None:
    """Many sites are translated, and their Content-Language is not."""
    assert extract(_body(file, "en")).language == _tag(file)


@pytest.mark.parametrize(
    ("text", "declared", "tag"),
    [
        (GERMAN, ["de-AT"], "de-AT"),
        (GERMAN, ["en"], "de"),
        (GERMAN, ["en", "de-CH"], "de-CH"),
        (GERMAN, [None, "{{ lang }}", "DE_ch.UTF-8"], "de-CH"),
        (GERMAN, ["und"], "de"),
        (GERMAN, ["x-private"], "de"),
        (ENGLISH, ["de"], "en"),
        (ENGLISH, ["en-GB"], "en-GB"),
        ("Zu kurz", ["fr"], "fr"),
        ("Zu kurz", [], None),
        ("", ["en"], "en"),
        ("", [], None),
        ("依赖注入", ["en"], "en"),
    ],
)
def test_B10_a_hint_is_kept_unless_the_text_is_clearly_another(
    text: str, declared: list[str | None], tag: str | None
) -> None:
    assert language_of(text, *declared) == tag


def test_B10_code_comments_and_addresses_say_nothing() -> None:
    english = "the value of the first is not that of the other and you can see it in the table " * 5
    noise = f"<!-- {english} -->\n```\n{english}\n```\n~~~\n{english}\n~~~\n`{english}`\n"
    assert language_of(noise + GERMAN) == "de"
    assert language_of(f"{noise} https://example.org/{english.replace(' ', '/')} {GERMAN}", "en") == "de"


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        (
            "et",
            "Rakendus avab iga päringu jaoks eraldi ühenduse ja sulgeb selle kohe, kui vastus on saadetud kliendile.",
        ),
        ("sl", "Aplikacija za vsako zahtevo odpre ločeno povezavo in jo zapre takoj, ko je odgovor poslan odjemalcu."),
        (
            "lt",
            "Programa kiekvienai užklausai atidaro atskirą ryšį ir uždaro jį, kai tik atsakymas išsiunčiamas klientui.",
        ),
        (
            "sw",
            "Programu hufungua muunganisho tofauti kwa kila ombi na kuufunga mara tu jibu linapotumwa kwa mteja wake.",
        ),
        (
            "sq",
            "Aplikacioni hap një lidhje të veçantë për çdo kërkesë dhe e mbyll atë sapo klienti merr përgjigjen e tij.",
        ),
    ],
)
def test_B10_a_language_without_function_words_is_recognised(tag: str, text: str) -> None:
    assert language_of(text) == tag
    assert language_of(text, "en") in (tag, "en")


def test_B10_a_menu_of_languages_and_commands_is_no_other_language() -> None:
    names = ["English", "Español", "Français", "Português", "Русский", "Українська", "Svenska", "简体中文"]
    commands = (
        "git config help init clone add status diff commit notes restore reset rm mv branch checkout switch merge"
    )
    menu = "\n".join(f"- [{word}](https://x.org/{word})" for word in (*names, *commands.split()))
    assert language_of(menu, "en") == "en"


def test_the_table_takes_any_text() -> None:
    assert classify("") is None
    assert classify("\ud800 1 2 3") is None
    assert classify("der Schlüssel und das Schloss " * 2_000) == "de"


@pytest.mark.parametrize(
    ("text", "declared"), [(ENGLISH * 3, "en"), (ENGLISH * 3, None), (GERMAN, None), (GERMAN, "en")]
)
def test_languages_need_no_numpy_in_a_parser_process(text: str, declared: str | None) -> None:
    asked = (
        "import sys; from afresh.extract.language import classify, language_of; "
        f"language_of({text!r}, {declared!r}); sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
