"""A document of Markdown that an extractor wrote by itself, and the small parts that it is written with."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from afresh.extract.decode import storable
from afresh.extract.html.head import LONGEST_TITLE, one_line
from afresh.extract.language import language_of
from afresh.extract.links import LONGEST_TEXT, MOST_LINKS
from afresh.extract.markdown import links_in, title_in, without_code
from afresh.model.fetch import Body, Document, Link
from afresh.text.normalize import links_hash, normalise, text_hash
from afresh.urls.canonical import canonical

MOST_CHARS = 4_000_000  # of one document: some thousand pages of a book

_TICKS = re.compile(r"`{3,}")
_NUMBER = re.compile(r"\d{1,9}[.)]\s")


def written(
    body: Body,
    markdown: str,
    title: str = "",
    *languages: str | None,
    links: Iterable[tuple[str, str]] | None = None,
) -> Document:
    """The document of a body that was turned into Markdown; `links` are those that the text does not show."""
    text = normalise(cut(storable(markdown)))
    prose = without_code(text)
    found = links_in(prose, body.url) if links is None else _known(links, body.url)
    return Document(
        title=one_line(storable(title))[:LONGEST_TITLE].strip() or title_in(prose),
        markdown=text,
        links=found,
        language=language_of(text, *languages, body.language),
        content_hash=text_hash(text),
        links_hash=links_hash(found),
        index=body.index,
        follow=body.follow,
    )


def _known(links: Iterable[tuple[str, str]], base: str) -> tuple[Link, ...]:
    found: dict[str, Link] = {}
    for raw_url, text in links:
        url = canonical(raw_url.partition("#")[0], base) if raw_url.startswith(("http:", "https:")) else None
        if url is not None and url not in found:
            found[url] = Link(url, one_line(storable(text))[:LONGEST_TEXT].strip())
            if len(found) >= MOST_LINKS:
                break
    return tuple(found.values())


def file_name(body: Body) -> str:
    """The name of the file that a body is, as a title where nothing better is known."""
    return one_line(unquote(body.url.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]))


def cut(text: str, most: int = MOST_CHARS) -> str:
    """The text, cut at the end of a line where it is too long, with a last line that says so."""
    if len(text) <= most:
        return text
    end = text.rfind("\n", most // 2, most)
    return f"{text[: end if end > 0 else most]}\n\n(cut after {most:,} characters)"


def fenced(code: str, language: str = "") -> str:
    """Code as a fenced block, whatever backticks it holds."""
    code = code.strip("\n")
    longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{code}\n{mark}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first as its head; nothing for a table without a word."""
    width = max((len(row) for row in rows), default=0)
    if not any(cell.strip() for row in rows for cell in row):
        return ""
    lines = [_row(row, width) for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _row(cells: Sequence[str], width: int) -> str:
    shown = [one_line(cell).replace("|", "\\|") for cell in cells]
    return "| " + " | ".join([*shown, *[""] * (width - len(shown))]) + " |"


def plain(text: str) -> str:
    """A paragraph of plain text, so that none of its lines begins a list, a heading or code in Markdown."""
    return "\n".join([_unmarked(line.strip()) for line in text.split("\n")])


def _unmarked(line: str) -> str:
    if line[:1] in tuple("#>+*|=~`-"):
        return "\\" + line
    number = _NUMBER.match(line)
    return f"{line[: number.end() - 2]}\\{line[number.end() - 2 :]}" if number else line


def heading(level: int, text: str) -> str:
    """A heading of one line; nothing without words."""
    words = one_line(text)[:LONGEST_TITLE]
    return f"{'#' * min(max(level, 1), 6)} {words}" if words else ""


def linked(text: str, url: str) -> str:
    """A link in Markdown, where the address can stand in one; else just its words."""
    words = one_line(text)
    if not words or not url.startswith(("http://", "https://", "mailto:")) or re.search(r"[\s<>()]", url):
        return words
    return f"[{words.replace('[', '(').replace(']', ')')}]({url})"


def joined(blocks: Iterable[str]) -> str:
    """Blocks with blank lines between them, empty ones left out."""
    return "\n\n".join([block for block in blocks if block.strip()])
