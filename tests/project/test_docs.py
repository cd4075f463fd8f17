"""The documentation: short lines, links that lead somewhere, plain words, and a glossary of words in use."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click
import pytest

from afresh.cli.program import program
from afresh.config import Config, list_values
from afresh.config.tree import NAMED

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "bench/README", "eval/README")),
        *DOCS.rglob("*.md"),
    ]
)
MAX_LINE_CHARS = 120
REPOSITORY = re.compile(r"https://github\.com/afresh-dev/afresh/(?:blob|tree)/main/(.*)")
START, END = "<!-- written from", "<!-- end of what is written"
RETIRED = re.compile(
    r"\b(is told|are told|anew|let go of|lets go of|looks at|looked at|as everywhere|on record|needs your word)\b",
    re.IGNORECASE,
)
_NUMBERED = [str(page.relative_to(ROOT)) for page in PAGES]


def by_hand(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page that a person wrote, with their numbers."""
    generated = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        generated = generated or line.startswith(START)
        if not generated:
            yield number, line
        generated = generated and not line.startswith(END)


def anchors(page: Path) -> set[str]:
    """Return the anchors that headings of a page make, on GitHub and on the site."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", each.lower()).strip()) for each in headings}


@pytest.mark.parametrize("name", _NUMBERED)
def test_lines_are_short(name: str) -> None:
    long = [number for number, line in by_hand(ROOT / name) if len(line) > MAX_LINE_CHARS]
    assert not long, f"{name}: lines longer than {MAX_LINE_CHARS} characters: {long}"


@pytest.mark.parametrize("name", _NUMBERED)
def test_retired_words_stay_away(name: str) -> None:
    found = {number: match[0] for number, line in by_hand(ROOT / name) if (match := RETIRED.search(line))}
    assert not found, f"{name}: {found}"


@pytest.mark.parametrize("name", _NUMBERED)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if match := REPOSITORY.fullmatch(target):
            assert (ROOT / match[1]).exists(), f"{name}: {target}"
        elif "://" not in target:
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), f"{name}: {target}"
            assert not anchor or anchor in anchors(found), f"{name}: {target}"


@pytest.mark.parametrize("name", _NUMBERED)
def test_modules_that_a_page_names_exist(name: str) -> None:
    text = "\n".join(line for _, line in by_hand(ROOT / name))
    for path in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.(?:py|sql|toml|md|sh|yaml|json))`", text):
        places = (ROOT / path, ROOT / "src" / "afresh" / path)
        assert any(place.exists() for place in places), f"{name}: {path}"


def test_messages_name_pages_that_are_there() -> None:
    for source in (ROOT / "src").rglob("*.py"):
        for path in re.findall(r"\bdocs/[\w/-]+\.md", source.read_text("utf-8")):
            assert (ROOT / path).exists(), f"{source.relative_to(ROOT)}: {path}"


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (DOCS / "explanation" / "dependencies.md").read_text("utf-8").lower()
    for each in (*project["dependencies"], *chain(*project["optional-dependencies"].values())):
        name = re.match(r"[\w.-]+", each)
        assert name is not None
        assert name[0].lower() in text, f"{name[0]} is not in docs/explanation/dependencies.md"


def test_every_page_is_in_the_map_of_the_site() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


def glossary() -> list[str]:
    """Return the terms of the glossary."""
    rows = re.findall(r"^\| (\*\*.*?) \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    return [term for row in rows for term in re.findall(r"\*\*(.+?)\*\*", row)]


def test_terms_of_the_glossary_are_there_once() -> None:
    assert len(glossary()) == len(set(glossary())) >= 30


@pytest.mark.parametrize("term", glossary())
def test_a_term_of_the_glossary_is_used(term: str) -> None:
    pattern = re.compile(rf"\b{re.escape(term)}", re.IGNORECASE)
    pages = (page for page in DOCS.rglob("*.md") if page.name != "glossary.md")
    assert any(pattern.search(page.read_text("utf-8")) for page in pages), f"no page uses the term {term}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_pictures_of_the_readme_show_on_the_package_index() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert pictures
    for each in pictures:
        prefix, _, path = each.partition("/afresh/main/")
        assert prefix == "https://raw.githubusercontent.com/afresh-dev"
        assert (ROOT / path).exists(), each


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of every afresh command that a page shows."""
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if match := re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*afresh (.*)", line):
                words = shlex.split(match[1], comments=True)
                ends = [place for place, word in enumerate(words) if word in ("|", ">", "&&", ";")]
                yield words[: ends[0]] if ends else words


@pytest.mark.parametrize("name", _NUMBERED)
def test_commands_can_be_typed(name: str) -> None:
    for words in commands(ROOT / name):
        command: click.Command = program
        context = click.Context(program, info_name="afresh", **program.context_settings)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words[0])
            assert found is not None, f"{name}: no command {words[0]}"
            command, words = found, words[1:]
        try:
            command.make_context(command.name, [*words], parent=context)
        except click.exceptions.Exit:  # --version
            pass
        except click.UsageError as wrong:
            pytest.fail(f"{name}: afresh {command.name} {' '.join(words)}: {wrong.message}")


SETTINGS = {each.key for each in list_values(Config())} | {
    f"{section.name}.NAME.{key}" for section in NAMED.values() for key in section.specs()
}
SECTIONS = {key.partition(".")[0] for key in SETTINGS}
_NO_SETTINGS = {"kb.sources", "kb.pages", "kb.runs", "kb.search", "links.txt", "notify.team", "webhooks.NAME"}


@pytest.mark.parametrize("name", _NUMBERED)
def test_settings_exist(name: str) -> None:
    text = "\n".join(line for _, line in by_hand(ROOT / name))
    for key in re.findall(r"`([a-z]+\.[a-zA-Z_.]+)`", text):
        if key.partition(".")[0] in SECTIONS and key not in _NO_SETTINGS and not key.endswith((".py", ".jsonl")):
            assert any(re.fullmatch(each.replace("NAME", r"\w+"), key) for each in SETTINGS), f"{name}: {key}"
