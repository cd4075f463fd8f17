"""Convert text, Markdown and MDX to documents, and provide functions for other extractors to write Markdown."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import unquote

from afresh.dataclass import replace
from afresh.extract.decode import decode, storable
from afresh.extract.html.head import MAX_TITLE_CHARS, foreign_canonical, one_line, robots_rules
from afresh.extract.language import language_of
from afresh.extract.links import MAX_LINK_TEXT_CHARS, MAX_LINKS
from afresh.model.fetch import Body, Document, Link
from afresh.text.normalize import links_hash, normalise, text_hash
from afresh.urls.canonical import canonical
from afresh.urls.files import link_target
from afresh.urls.scope import WHOLE_SITE

_WORD = re.compile(r"\w")
MAX_TAG_CHARS = 5_000
MAX_OPEN_TAGS = 100  # a text with more unclosed tags is not MDX
_MDX_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(r"^(?:import|export)[ \t{*][^\n]*(?:\n(?!\s*\n|#|<)[^\n]+)*", re.MULTILINE)
_COMMENT = re.compile(r"\{/\*(?:[^{]|\{(?!/\*))*?\*/\}")
_TAG = re.compile(r"(?<!`)(`++)[^`\n]+\1|</?(?=[A-Z>])")  # inline code is skipped
_CAPTION = re.compile(r"\b(?:title|label|summary|heading)=(?:\"([^\"]*)\"|'([^']*)')")
MOST_CHARS = 4_000_000  # of one document, which is several thousand book pages
_TICKS = re.compile(r"`{3,}")
_MARKED = re.compile(r"^(\d{1,9}(?=[.)]\s)|(?=[#>+*|=~`-]))(.)")


def extract_text(body: Body) -> Document:
    """Return the document of a plain text body, without links, because plain text does not mark them."""
    text = normalise(decode(body.data, body.charset))
    return _document(body, text, _first_line(text), (), body.language)


def _document(body: Body, text: str, title: str, links: tuple[Link, ...], *languages: str | None) -> Document:
    return Document(
        title=title,
        markdown=text,
        links=links,
        language=language_of(text, *languages),
        content_hash=text_hash(text),
        links_hash=links_hash(links),
        index=body.index,
        follow=body.follow,
    )


def _first_line(text: str) -> str:
    """Return the first line that contains a word, for use as a title."""
    lines = (line for line in text.split("\n", 50)[:50] if _WORD.search(line))
    return one_line(next(lines, ""))[:MAX_TITLE_CHARS].strip()


_FRONT_MATTER = re.compile(r"---\n(.*?\n)?(?:---|\.\.\.)\n", re.DOTALL)
_FRONT_FIELD = re.compile(r"^(title|lang|language|canonical|canonical_url|robots|noindex):[ \t]*(.+)$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)(`++)[^`\n]+\1")
# Matches the text of a heading without its closing hashes; scans each run of blanks or hashes only once.
HEADING_TEXT = r"([ \t#](?=[ \t]*+#*+$)|.+?(?=(?<![ \t])[ \t]++#*+$|(?<![ \t#])#*+$))[ \t]*+#*+$"
_HEADING = re.compile(rf"^ {{0,3}}#[ \t]+{HEADING_TEXT}|^(\S[^\n]*+)\n=++$", re.MULTILINE)
_LINK = re.compile(
    r"""(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\]){0,500})\]\(\s*+<?+([^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+)*+)>?+"""
    r"""(?:\s*+(?<=\s)(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+\s*+\)"""
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]{1,200})\]:\s*<?([^\s<>]+)>?", re.MULTILINE)
_AUTOLINK = re.compile(r"<(https?://[^\s<>]+)>")
_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]+|[ \t]*\{:?[ \t]*[#.][^{}\n]*\}[ \t]*$")


def extract_markdown(body: Body) -> Document:
    return _markdown_document(body, normalise(decode(body.data, body.charset)))


def _markdown_document(body: Body, source: str) -> Document:
    front = _FRONT_MATTER.match(source)
    text = normalise(source[front.end() :]) if front else source
    found = _FRONT_FIELD.findall(front[0]) if front else ()
    fields = {name: value.strip().strip("\"'") for name, value in found}
    prose = _FENCE.sub("", text)
    languages = fields.get("lang"), fields.get("language"), body.language
    document = _document(body, text, _title_in(prose, fields.get("title", "")), _links_in(prose, body.url), *languages)
    index, follow = robots_rules(fields.get("robots", ""))
    return replace(
        document,
        index=body.index and index and fields.get("noindex", "").lower() != "true",
        follow=body.follow and follow and not body.url.endswith(WHOLE_SITE),  # llms-full.txt contains the linked pages
        foreign_canonical=foreign_canonical(
            fields.get("canonical") or fields.get("canonical_url", ""), body.url, body.url
        ),
    )


def _title_in(prose: str, declared: str = "") -> str:
    heading = _HEADING.search(prose)
    title = declared or (heading[1] or heading[2] if heading else _first_line(prose))
    return _plain(title[: 20 * MAX_TITLE_CHARS])[:MAX_TITLE_CHARS].strip()  # markup may take up most of it


def _plain(text: str) -> str:
    return one_line(_MARKS.sub(lambda found: found[1] or "", text))


def _links_in(prose: str, base: str) -> tuple[Link, ...]:
    """Return the links of a text from which fenced code was removed: one per target, at most `MAX_LINKS`."""
    found: dict[str, Link] = {}
    for raw_url, text in _raw_links(_CODE_SPAN.sub(" ", prose)):
        target = raw_url.partition("#")[0]
        url = link_target(target, base) if target else None
        if url is not None and (url not in found or not found[url].text):
            found[url] = Link(url, _plain(text[: 20 * MAX_LINK_TEXT_CHARS])[:MAX_LINK_TEXT_CHARS].strip())
            if len(found) >= MAX_LINKS:
                break
    return tuple(found.values())


def _raw_links(prose: str) -> Iterator[tuple[str, str]]:
    for link in chain(_LINK.finditer(prose), _DEFINITION.finditer(prose)):
        yield link[2], link[1]
    yield from ((autolink[1], "") for autolink in _AUTOLINK.finditer(prose))


def extract_mdx(body: Body) -> Document:
    return _markdown_document(body, normalise(without_components(normalise(decode(body.data, body.charset)))))


def without_components(text: str) -> str:
    """Convert MDX to plain Markdown; keep code unchanged."""
    parts, at = [], 0
    for fence in _MDX_FENCE.finditer(text):
        parts += [_plain_mdx(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return re.sub(r"\n{3,}", "\n\n", "".join([*parts, _plain_mdx(text[at:])]))


def _plain_mdx(prose: str) -> str:
    prose = _COMMENT.sub("", _STATEMENT.sub("", prose))
    return "".join(_pieces(prose)) if "<" in prose else prose


def _pieces(prose: str) -> Iterator[str]:
    """Yield the text in pieces, with each component tag replaced by its title or label."""
    at, open_tags, start = 0, 0, _TAG.search(prose)
    while start is not None and open_tags < MAX_OPEN_TAGS:
        end = None if start[1] else _end_of_tag(prose, start.end())
        if end is None:
            yield prose[at : start.end()]
            at = start.end()
            open_tags += start[1] is None
        else:
            yield prose[at : start.start()]
            caption = _CAPTION.search(prose, start.end(), end)
            if caption is not None:
                yield f"\n\n**{caption[1] or caption[2]}**\n\n"
            at = end
        start = _TAG.search(prose, at)
    yield prose[at:]


def _end_of_tag(text: str, at: int) -> int | None:
    """Return the end of a tag, or None if it is not closed; ignore `>` in quotes and braces."""
    depth, quote = 0, ""
    for place in range(at, min(len(text), at + MAX_TAG_CHARS)):
        character = text[place]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        elif character in "{}":
            depth += 1 if character == "{" else -1
        elif character == ">" and depth <= 0:
            return place + 1
    return None


def written(
    body: Body, markdown: str, title: str = "", *languages: str | None, links: Iterable[tuple[str, str]] | None = None
) -> Document:
    """Return the document for a converted body that declares `languages`; without `links`, take those in the text."""
    text = normalise(cut(storable(markdown)))
    prose = _FENCE.sub("", text)  # fenced code contains no headings or links
    found = _links_in(prose, body.url) if links is None else _known(links, body.url)
    title = one_line(storable(title))[:MAX_TITLE_CHARS].strip() or _title_in(prose)
    return _document(body, text, title, found, *languages, body.language)


def _known(links: Iterable[tuple[str, str]], base: str) -> tuple[Link, ...]:
    found: dict[str, Link] = {}
    for raw_url, text in links:
        url = canonical(raw_url.partition("#")[0], base) if raw_url.startswith(("http:", "https:")) else None
        if url is not None and url not in found:
            found[url] = Link(url, one_line(storable(text))[:MAX_LINK_TEXT_CHARS].strip())
            if len(found) >= MAX_LINKS:
                break
    return tuple(found.values())


def file_name(body: Body) -> str:
    return one_line(unquote(body.url.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]))


def cut(text: str, most: int = MOST_CHARS) -> str:
    """Return the text; if it is too long, cut it at a line end and add a note."""
    if len(text) <= most:
        return text
    end = text.rfind("\n", most // 2, most)
    return f"{text[: end if end > 0 else most]}\n\n(cut after {most:,} characters)"


def fenced(code: str, language: str = "") -> str:
    """Return code as a fenced block; the fence is longer than any run of backticks in the code."""
    code = code.strip("\n")
    max_ticks = max((len(ticks) for ticks in _TICKS.findall(code)), default=2)
    mark = "`" * (max_ticks + 1)
    return f"{mark}{language}\n{code}\n{mark}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table with the first row as its head; "" if all cells are empty."""
    width = max((len(row) for row in rows), default=0)
    if not any(cell.strip() for row in rows for cell in row):
        return ""
    lines = []
    for row in rows:
        cells = [one_line(cell).replace("|", "\\|") for cell in row]
        lines.append("| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |")
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def plain(text: str) -> str:
    """Escape plain text so that no line becomes a list, a heading or code in Markdown."""
    return "\n".join([_MARKED.sub(r"\1\\\2", line.strip()) for line in text.split("\n")])


def heading(level: int, text: str) -> str:
    words = one_line(text)[:MAX_TITLE_CHARS]
    return f"{'#' * min(max(level, 1), 6)} {words}" if words else ""


def linked(text: str, url: str) -> str:
    """Return a Markdown link, or only its text if the URL has characters that a link cannot contain."""
    words = one_line(text)
    if not words or not url.startswith(("http://", "https://", "mailto:")) or re.search(r"[\s<>()]", url):
        return words
    return f"[{words.replace('[', '(').replace(']', ')')}]({url})"


def joined(blocks: Iterable[str]) -> str:
    return "\n\n".join([block for block in blocks if block.strip()])


def run_end(lines: Sequence[str], at: int, belongs: Callable[[str], object]) -> int:
    """Return the index of the first line from `at` on for which `belongs` is false."""
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return at


def skip_blank(lines: Sequence[str], at: int) -> int:
    return run_end(lines, at, lambda line: not line.strip())
