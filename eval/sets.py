"""The two sets of questions, and the pages that they are asked of."""

import gzip
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pyromark import html as rendered

HERE = Path(__file__).resolve().parent
CRANFIELD, FASTAPI = "cranfield", "fastapi"
NAMES = (CRANFIELD, FASTAPI)
SNAPSHOT = "s4"
_INCLUDE = re.compile(r"^\s*(\{\*.*\*\}|\{!.*!\})\s*$", re.MULTILINE)  # code that stands in other files
_FENCE = re.compile(r"^(\s*)/{3,}[ \t]*\w*[ \t]*(?:\|[ \t]*(.*))?$", re.MULTILINE)  # boxes: /// tip | Title
_ANCHOR = re.compile(r"[ \t]*\{ #[\w-]+ \}[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """One page: as it is served, and as plain text for the outside reference."""

    title: str
    html: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how well each page answers it; a page that is not named does not."""

    id: str
    query: str
    grades: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions and the pages of their site, by path."""

    name: str
    pages: Mapping[str, Page]
    questions: tuple[Question, ...]


def load(name: str, shared: Path) -> QuestionSet:
    """One of the sets, read from the shared data beside the project."""
    data = shared / "data"
    found = _cranfield(data / "retrieval-cranfield") if name == CRANFIELD else _fastapi(data / "docs-refresh")
    unknown = {path for each in found.questions for path in each.grades} - set(found.pages)
    if unknown:
        raise ValueError(f"{name} grades pages that do not exist: {', '.join(sorted(unknown))}")
    return found


def _cranfield(folder: Path) -> QuestionSet:
    pages = dict(_abstracts(folder))
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        query, document, code = line.split("\t")
        if int(code) > 0 and document in pages:
            grades.setdefault(query, {})[document] = 1
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    questions = (Question(q["id"], q["text"], grades[q["id"]]) for q in asked if q["id"] in grades)
    return QuestionSet(CRANFIELD, pages, tuple(questions))


def _abstracts(folder: Path) -> Iterator[tuple[str, Page]]:
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for each in map(json.loads, lines):
            title, text = each["title"], each["text"]
            if text.strip():
                body = f"<h1>{escape(title)}</h1><p>{escape(text.removeprefix(title).strip())}</p>"
                yield each["id"], Page(title, _document(title, body), f"{title}\n{text}")


def _fastapi(folder: Path) -> QuestionSet:
    pages: dict[str, Page] = {}
    with tarfile.open(folder / "fastapi.tar.xz") as archive:
        for member in archive:
            version, _, name = member.name.removeprefix("./").partition("/")
            if version == SNAPSHOT and name.endswith(".md") and (file := archive.extractfile(member)):
                pages[name] = _article(name, file.read().decode())
    lines = (HERE / "fastapi.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return QuestionSet(FASTAPI, pages, tuple(Question(q["id"], q["query"], q["pages"]) for q in asked))


def _article(name: str, markdown: str) -> Page:
    """A page as the generator of this site shows it: without the notation that only the generator reads."""
    text = _ANCHOR.sub("", _FENCE.sub(r"\1\2", _INCLUDE.sub("", markdown)))
    heading = _HEADING.search(text)
    title = heading[1].replace("`", "").strip() if heading else name
    body = re.sub(r'(href="(?!https?:)[^"#]*)\.md(?=["#])', r"\1.html", rendered(text))
    return Page(title, _document(f"{title} - FastAPI", body), text)


def _document(title: str, body: str) -> str:
    return f"<!doctype html><html lang=en><title>{escape(title)}</title><body><main>{body}</main></body></html>"
