"""Draw search results on a terminal."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from textwrap import dedent

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from afresh.cli.tables import empty
from afresh.model.reports import SearchHit
from afresh.present.wording import ago, clean, label
from afresh.text.plain import dedent_lists, shortened

MAX_LINES = 8
MAX_LINE_CHARS = 420  # characters of a line of a passage before it is cut around the first match
MARK = "bold yellow"

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s\0]*(?:\([^()\s\0]*\)[^()\s\0]*)*(?:\s+\"[^\"\0]*\")?\)")
# Emphasis marks of Markdown; other asterisks and underscores stay: products, globs, names such as `__init__`.
_STRESS = re.compile(
    r"(?<![*\\])(?P<strong>\*{2,3})(?=[^\s*/])([^*]{1,500}?)(?<=[^\s*/\\])(?P=strong)(?!\*)"
    r"|(?<![A-Za-z0-9_*/\\\x03])(?P<star>\*)(?=[^\s*/])([^*]{1,500}?)(?<=[^\s*/\\])\*(?![A-Za-z0-9_*/\x02])"
    r"|(?<![\w\\\x03])(?P<line>_{1,3})(?=[^\s_])(?![a-z0-9_]{1,100}__)([^_]{1,500}?)(?<=[^\s_\\])(?P=line)(?![\w\x02])"
    r"|(?<![~\\])~~(?=[^\s~])([^~]{1,500}?)(?<=[^\s~\\])~~(?!~)"
)
_MAX_NESTED = 3  # levels of nested emphasis
_ESCAPED = re.compile(r"\\([*_`~|<>#\[\]])")
_HEADING = re.compile(r"^#{1,6} (.*?)(?:\s*\{ ?#[^{}]*\})?\s*$")
_ROW = re.compile(r"^\s*\|(.*?)\|?\s*$")
_RULE = re.compile(r"[\s|:-]*-[\s|:-]*")  # below the header of a table
_PLACE = "\0"  # placeholder of a code span while the text around it is processed
_CODE = re.compile(rf"{_PLACE}|(?<![`\\])(`+)(?!`)[^\n]{{1,500}}?(?<!`)\1(?!`)")


def draw(
    hits: Sequence[SearchHit], query: str, now: datetime, *, verbose: bool = False, by: str = "meaning"
) -> RenderableType:
    if not hits:
        return empty(f"No results for {shortened(clean(query), 60)}. To see what is indexed, run", "afresh sources")
    parts: list[RenderableType] = []
    if hits[0].weak:
        parts = [Text(f"no good match for {shortened(clean(query), 60)}; nearest by {by}:", "yellow"), Text()]
    for number, hit in enumerate(hits, start=1):
        parts += [Text()] if number > 1 else []
        parts += _hit(number, hit, now, verbose=verbose)
    return Group(*parts)


def _hit(number: int, hit: SearchHit, now: datetime, *, verbose: bool) -> list[RenderableType]:
    indent = len(f"{number}  ")
    title = Text.assemble((f"{number}  ", "dim"), (clean(hit.title) or clean(hit.url), "bold"))
    title.append(f"  {clean(label(hit.source, hit.version))}", "cyan")
    body: list[RenderableType] = [Text(clean(hit.url), style="blue", overflow="fold")]
    if hit.also_at:
        body.append(Text(f"also at {', '.join(map(clean, hit.also_at))}", style="dim", overflow="fold"))
    path = [clean(part) for part in hit.path]
    if trail := " › ".join(path[1:] if path and path[0] == clean(hit.title) else path):
        body.append(Text(trail, style="dim"))  # `Guide › Retries`: the headings above, without the title
    body.append(passage(hit.context or hit.text, whole=bool(hit.context) or verbose))
    age = f"checked {ago(hit.checked_at, now)}, changed {ago(hit.changed_at, now)}"
    body.append(Text(f"{age}, score {hit.score:.3f}, relevance {hit.relevance:.2f}" if verbose else age, style="dim"))
    return [title, *(Padding(each, (0, 0, 0, indent), expand=False) for each in body)]


def passage(raw: str, *, whole: bool = False) -> Text:
    """Return a passage with highlighted matches, shortened around the first one unless `whole`."""
    raw = dedent_lists(raw)
    if whole:
        return Text("\n").join(_highlight(line) for line in _readable_lines(raw))
    lines = [line.expandtabs(4) for line in _readable_lines(raw) if line.strip("\x02\x03 \t\r")]
    first = next((number for number, line in enumerate(lines) if "\x02" in line), 0)
    start = max(0, min(first - 1, len(lines) - MAX_LINES))
    kept = dedent("\n".join(lines[start : start + MAX_LINES])).split("\n")
    return Text("\n").join(_highlight(_cut(line)) for line in kept)


def _readable_lines(raw: str) -> Iterator[str]:
    """Yield lines for display: code as it is, other lines without Markdown marks, fences and table rules."""
    fence = ""
    for line in raw.split("\n"):
        mark = line.lstrip()[:3]
        if mark in {"```", "~~~"} and fence in {"", mark}:
            fence = "" if fence else mark
        elif fence:
            yield f"  {line}"
        elif not _RULE.fullmatch(line):
            yield readable(line)


def readable(line: str) -> str:
    """Return a line of Markdown without its marks; code spans stay as they are."""
    line = _ROW.sub(lambda row: row[1].strip(), _HEADING.sub(r"\1", line))
    spans: list[str] = [found[0] for found in _CODE.finditer(line)]
    line = _LINK.sub(r"\1", _CODE.sub(_PLACE, line))
    for _ in range(_MAX_NESTED):
        line = _STRESS.sub(lambda found: next(filter(None, found.group(2, 4, 6, 7))), line)
    parts = _ESCAPED.sub(r"\1", line).split(_PLACE)
    return "".join(text + span for text, span in zip(parts, [*spans, ""], strict=True))


def _cut(line: str) -> str:
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(0, min(line.find("\x02") - MAX_LINE_CHARS // 3, len(line) - MAX_LINE_CHARS))
    piece = line[start : start + MAX_LINE_CHARS]
    piece = piece.partition(" ")[2] if start and " " in piece[:40] else piece
    return f"{'… ' if start else ''}{piece.rstrip()}{' …' if start + MAX_LINE_CHARS < len(line) else ''}"


def _highlight(line: str) -> Text:
    kept = Text(overflow="fold")
    matched = False
    for part in re.split("([\x02\x03])", line):
        if part in {"\x02", "\x03"}:
            matched = part == "\x02"
        else:
            kept.append(clean(part, lines=True), MARK if matched else "")
    return kept
