"""Convert AsciiDoc (blocks, lists, tables, inline markup) to a document in Markdown."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from afresh.extract.decode import decode
from afresh.extract.markdown import run_end, skip_blank, written
from afresh.extract.markup.rst import code_block, emphasised, quoted
from afresh.extract.markup.tables import MOST_COLUMNS, ExpansionBudget, Rows, csv_rows, markdown_table
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

MAX_ATTRIBUTE_DEPTH = 3  # nesting of attributes in the values of other attributes

_ATTRIBUTE = re.compile(r"\\?\{([\w][\w-]*)\}")
_KNOWN = {
    "nbsp": " ", "sp": " ", "empty": "", "blank": "", "zwsp": "", "wj": "", "lt": "<", "gt": ">", "amp": "&",
    "apos": "'", "quot": '"', "plus": "+", "asterisk": "*", "backtick": "`", "tilde": "~", "vbar": "|", "caret": "^",
    "startsb": "[", "endsb": "]", "two-colons": "::", "two-semicolons": ";;", "cpp": "C++", "deg": "°",
}  # fmt: skip
_INLINE = re.compile(
    r"`\+(?P<exact>[^\n+]+)\+`"
    r"|``(?P<double>[^`\n]+)``"
    r"|(?<![\w`])`(?P<code>[^`\s](?:[^`]*[^`\s])?)`(?![\w`])"
    r"|\\?(?:link:|(?=https?://|ftp://|irc://|mailto:))(?P<url>[^\s\[\]<>`\"]{2,1000}+)\[(?P<text>(?:\\\]|[^\]\n]){0,500})\]"
    r"|xref:(?P<page>[^\s\[\]]{1,500})\[(?P<named>[^\]]{0,500})\]"
    r"|<<(?P<anchor>[^<>,\n]{1,300})(?:,\s*(?P<label>[^<>]{1,300}))?>>"
    r"|(?:kbd|btn):\[(?P<key>[^\]\n]{1,100})\]"
    r"|menu:(?P<menu>[^\[\n]{1,100})\[(?P<choice>[^\]\n]{0,200})\]"
    r"|image:(?!:)(?P<picture>[^\s\[\]]{1,500})\[(?P<alternative>[^\]\n]{0,300})\]"
    r"|footnote:\w{0,50}\[(?P<note>[^\]]{0,1000})\]"
    r"|(?:pass|stem|latexmath|asciimath):\w{0,20}\[(?P<passed>[^\]\n]{0,1000})\]"
    r"|\(\(\((?P<index>[^()\n]{0,300})\)\)\)"
    r"|\(\((?P<term>[^()\n]{1,300})\)\)"
    r"|\[\[(?P<mark>[^\]\n]{1,200})\]\]"
    r"|\[[^\]\n]{0,100}\](?P<hash>\#{1,2})(?P<marked>[^#\n]{1,1000})(?P=hash)"
    r"|(?<![\w*])\*(?P<bold>[^\s*](?:[^*\n]{0,1000}[^\s*])?)\*(?![\w*])"
    r"|\*\*(?P<strong>[^*\n]{1,1000})\*\*"
    r"|(?<![\w_])_(?P<soft>[^\s_](?:[^_\n]{0,1000}[^\s_])?)_(?![\w_])"
    r"|(?<!_)__(?P<very>[^_\n]{1,1000})__(?!_)"
    r"|(?<![\w+])\+(?P<literal>[^\s+](?:[^+\n]{0,300}[^\s+])?)\+(?![\w+])"
)
_MARKED = re.compile(r"[`:<(\[*_+#]")
_WINDOW = re.compile(r"\^$|,\s*(?:window|role|opts|title|rel)\b.*$")
_CELL = re.compile(r"(?:(?<=\s)|^)(?:\d+(?:\.\d+)?[+*]|\.\d+\+)?[<^>]?(?:\.[<^>])?[a-z]?\||(?<!\\)\|")
_TIMES = re.compile(r"(\d+)\*")


def _convert_inline(found: re.Match[str]) -> str:
    group = found.lastgroup or ""
    value: str = found[group]
    match group:
        case "exact" | "double" | "code" | "literal" | "passed":
            return f"`{value.strip()}`" if value else ""
        case "bold" | "strong":
            return f"**{value}**"
        case "soft" | "very":
            return f"*{value}*"
        case "text" if found[0].startswith("\\"):
            return found[0][1:]
        case "text":
            url = found["url"].strip("+")
            converted = _WINDOW.sub("", value.replace("\\]", "]")).strip('" ') or url.removeprefix("mailto:")
            return f"[{converted}]({url})"
        case "named":
            return _page(found["page"], value)
        case "anchor" | "label":
            return (found["label"] or found["anchor"].replace("_", " ").strip(" #")).strip()
        case "choice":
            return " > ".join(filter(None, map(str.strip, (found["menu"], *value.split(">")))))
        case "alternative":
            alternative = value.partition(",")[0].strip("\"' ")
            return f"![{alternative}]({found['picture']})" if alternative else ""
        case "note":
            return f" ({value})" if value else ""
        case "index" | "mark":
            return ""
        case _:
            return value


def _page(page: str, text: str) -> str:
    """Return a link to another page, or only its text if the URL is known only to the site generator."""
    path = page.partition("#")[0]
    name = path.rpartition("/")[2]
    converted = _WINDOW.sub("", text).strip('" ') or name.removesuffix(".adoc") or page.strip("#")
    if ":" in path or "@" in path or not ("." in name or "/" in path):
        return converted
    return f"[{converted}]({path if '.' in name else path + '.adoc'})"


DEEPEST = 20

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_UNDERLINE = re.compile(r"([-=~^+])\1{2,}$")
_ENTRY = re.compile(r":(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"(-{4,}+|\.{4,}+|={4,}+|\*{4,}+|_{4,}+|\+{4,}+|/{4,}+|--|`{3,}+|[|,:!]={3,}+)([\w+#-]*+)$")
_OPTIONS = re.compile(r"\[(?!\[)([^\]]*(?:\][^\]\s]+)*)\]$")
_ANCHOR = re.compile(r"\[\[[^\]]*\]\]$")
_TITLE = re.compile(r"\.([^\s.].*)$")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION)(?::[ \t]+(.*))?$")
_MACRO = re.compile(r"(image|video|audio|include|toc|ifdef|ifndef|ifeval|endif)::([^\[]*)\[(.*)\]$")
_CONDITION = re.compile(r"(?:ifdef|ifndef|ifeval|endif)::")
_ITEM = re.compile(r"[ \t]*(\*{1,5}|-|\.{1,5}|\d{1,4}\.|<(?:\d{1,3}|\.)>)[ \t]+(\S.*)$")
_TERM = re.compile(r"[ \t]*(\S.{0,300}?)(:{2,4}|;;)(?:[ \t]+(.*))?$")
_CHECK = re.compile(r"\[([ xX*])\][ \t]+")
_CALLOUT = re.compile(r"(?<![ \t])[ \t]*+(?:(?://|#|--|;;|<!--)[ \t]*+)?<(?:\d{1,3}|\.)>(?:-->)?[ \t]*+$")
_AUTHOR = re.compile(r"[^<>=:*\[]++<[^<>\s][^<>\s@]*+@[^<>\s]++>|v?\d[\w.]*+,.*")
_LEADING = re.compile(r"(#{1,6}\s|\d+[.)]\s|[-+*]\s|>|~~~)")


def extract_asciidoc(body: Body) -> Document:
    return written(body, to_markdown(normalise(decode(body.data, body.charset))))


def to_markdown(text: str) -> str:
    return "\n\n".join(_Asciidoc(len(text)).blocks(text.split("\n")))


class _Heading(NamedTuple):
    level: int
    text: str
    after: int  # index of the line after it


def _heading(lines: list[str], at: int) -> _Heading | None:
    """Return the heading that begins at a line, marked in front (`== Title`) or underlined; None if there is none."""
    line, under = (each.rstrip() for each in (*lines[at : at + 2], "", "")[:2])
    if marked := _HEADING.match(line):
        return _Heading(len(marked[1]), marked[2], at + 1)
    if _UNDERLINE.match(under) and abs(len(under) - len(line)) <= 1 and any(map(str.isalnum, line)):
        return _Heading("=-~^+".index(under[0]) + 1, line, at + 2)
    return None


class _Asciidoc:
    """Converts AsciiDoc; holds the document's attributes, and the options and the title of the next block."""

    def __init__(self, written: int) -> None:
        self.attributes: dict[str, str] = {}
        self.budget = ExpansionBudget(written)  # limits the text that attributes may add
        self.options = self.title = ""

    def prose(self, text: str) -> str:
        converted = self.in_text(" ".join(text.split()))
        converted = _INLINE.sub(_convert_inline, converted).strip() if _MARKED.search(converted) else converted
        return "\\" + converted if _LEADING.match(converted) else converted

    def heading(self, heading: "_Heading") -> str:
        return "#" * heading.level + " " + self.prose(heading.text).lstrip("\\")

    def in_text(self, text: str, depth: int = 0) -> str:
        """Replace the attributes in a text by their values; leave unknown attributes as they are."""

        def value_of(found: re.Match[str]) -> str:
            if found[0].startswith("\\"):
                return found[0][1:]
            name = found[1].lower()
            value = self.attributes.get(name, _KNOWN.get(name))
            if value is None or not self.budget.take(value):
                return found[0]
            return self.in_text(value, depth + 1)

        return text if "{" not in text or depth > MAX_ATTRIBUTE_DEPTH else _ATTRIBUTE.sub(value_of, text)

    def blocks(self, lines: list[str], depth: int = 0) -> list[str]:
        found: list[str] = []
        at = self._after_header(lines, found) if depth == 0 else 0
        while at < len(lines):
            made, at = self._block(lines, at, depth)
            found += filter(None, made)
        return found

    def _after_header(self, lines: list[str], found: list[str]) -> int:
        """Read attributes and authors at the start, and add the title to `found`; return the index of the next line."""
        at = 0
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith("//") or _ENTRY.match(lines[at])):
            self._set(lines[at])
            at += 1
        title = _heading(lines, at)
        if title is None or title.level > 1:
            return at
        at = title.after
        while at < len(lines) and lines[at].strip():
            if not self._set(lines[at]) and not _AUTHOR.match(lines[at]) and not lines[at].startswith("//"):
                break
            at += 1
        found.append(self.heading(title))
        return at

    def _set(self, line: str) -> bool:
        entry = _ENTRY.match(line)
        if entry is None:
            return False
        name = entry[1].strip("!").lower()
        if "!" in entry[1]:
            self.attributes.pop(name, None)
        else:
            self.attributes[name] = (entry[2] or "").removesuffix(" \\").strip()
        return True

    def _block(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        line = lines[at].rstrip()
        is_comment = line.startswith("//") and not line.startswith("////")
        if is_comment or self._set(line) or _ANCHOR.match(line) or line in ("", "+", "<<<", "'''", "***", "---"):
            pass
        elif (options := _OPTIONS.match(line)) is not None:
            self.options = f"{self.options},{options[1]}" if self.options else options[1]
        elif (title := _TITLE.match(line)) is not None and not _ITEM.match(line):
            self.title = title[1]
        else:
            options_before, named, self.options, self.title = self.options, self.title, "", ""
            made, after = self._plain(lines, at, depth, options_before)
            return ([f"**{self.prose(named)}**", *made] if named else made), max(after, at + 1)
        return [], at + 1

    def _plain(self, lines: list[str], at: int, depth: int, options: str) -> tuple[list[str], int]:
        line = lines[at].rstrip()
        if (macro := _MACRO.match(line)) is not None:
            return self._macro(macro), at + 1
        if (fence := _FENCE.match(line)) is not None and (len(line) > 2 or line == "--"):
            return self._delimited(lines, at, depth, fence, options)
        if depth == 0 and (heading := _heading(lines, at)) is not None:
            return [self.heading(heading)], heading.after
        if _ITEM.match(line) or _term(line):
            return self._list(lines, at, depth)
        return self._paragraph(lines, at, options)

    def _macro(self, macro: re.Match[str]) -> list[str]:
        name, target, options = macro[1], self.in_text(macro[2]), macro[3]
        first = options.partition(",")[0].strip("\"' ")
        if name == "include":
            return [f"`{target}`"]
        if name in ("image", "video", "audio"):
            return [f"![{first}]({target})"] if first and "=" not in first else []
        holds = any(part in self.attributes for part in re.split("[,+]", target)) is (name == "ifdef")
        is_text = options and name in ("ifdef", "ifndef") and holds and not self._set(options)
        return [self.prose(options)] if is_text else []

    def _delimited(
        self, lines: list[str], at: int, depth: int, fence: re.Match[str], options: str
    ) -> tuple[list[str], int]:
        stop = run_end(lines, at + 1, lambda line: line.rstrip() != fence[1])
        inner, mark, after = lines[at + 1 : stop], fence[1][0], stop + 1
        if mark in "/+":
            return [], after
        if mark in "|,:!" and len(fence[1]) > 3:
            rows, head = table_rows(inner, options, mark)
            return [markdown_table([[self.prose(cell) for cell in row] for row in rows], head)], after
        style = options.partition(",")[0].strip().split("%")[0].split("#")[0]
        if mark in "`." or (mark == "-" and len(fence[1]) > 2) or style in ("source", "listing", "literal"):
            return [_code(inner, options, fence[2], self.attributes)], after
        if depth >= DEEPEST:
            return [self.prose(" ".join(inner))], after
        blocks = self.blocks(inner, depth + 1)
        return self._enclosed(blocks, style, mark), after

    def _enclosed(self, blocks: list[str], style: str, mark: str) -> list[str]:
        if _ADMONITION.match(style):
            return [quoted([f"**{style.capitalize()}**", *blocks])]
        return [quoted(blocks)] if mark == "_" or style in ("quote", "verse") else blocks

    def _list(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """Return a list with its nested lists as Markdown, and the index of the line after it."""
        marks: list[str] = []
        counts: dict[int, int] = {}
        converted: list[str] = []
        while at < len(lines):
            term: str | None = None
            if item := _ITEM.match(lines[at]):
                mark, first = item[1], item[2]
            elif found := _term(lines[at]):
                term, mark, first = found.groups("")
            else:
                break
            mark = "1." if mark[0].isdigit() else "<>" if mark[0] == "<" else mark
            marks = marks[: marks.index(mark) + 1] if mark in marks else [*marks, mark]
            text, at = _item_text(lines, at + 1, first)
            more, at = self._attached(lines, at, depth)
            here = len(marks)
            counts = {each: count for each, count in counts.items() if each <= here}
            counts[here] = counts.get(here, 0) + 1
            sign = f"{counts[here]}." if mark[0] in ".1<" else "-"
            converted += _indented(self._item(text, term), more, sign, 3 * (here - 1))
            at = run_end(lines, at, lambda line: not line.strip() or line.startswith("// "))
        return ["\n".join(converted)], at

    def _item(self, text: str, term: str | None) -> str:
        text = _CHECK.sub("", text)
        if term is None:
            return self.prose(text)
        name = emphasised(self.prose(term))
        return f"{name}: {self.prose(text)}" if text else name

    def _attached(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        found: list[str] = []
        while at < len(lines) and lines[at].strip() == "+" and depth < DEEPEST:
            at += 1
            while at < len(lines) and lines[at].strip() not in ("", "+"):
                made, at = self._block(lines, at, depth + 1)
                found += filter(None, made)
                if made:
                    break
        return found, at

    def _paragraph(self, lines: list[str], at: int, options: str) -> tuple[list[str], int]:
        stop = run_end(lines, at + 1, lambda line: line.strip() and not _ends_paragraph(line))
        inner = lines[at:stop]
        style = options.partition(",")[0].strip()
        if style in ("source", "listing", "literal") or inner[0][:1] in (" ", "\t"):
            return [_code(inner, options, "", self.attributes)], stop
        admonition = _ADMONITION.match(inner[0])
        if admonition is not None and admonition[2] is not None:
            text = self.prose(" ".join([admonition[2], *inner[1:]]))
            return [quoted([f"**{admonition[1].capitalize()}**", text])], stop
        text = self.prose(" ".join(line.removesuffix(" +") for line in inner if not line.startswith("//")))
        return self._enclosed([text], style, ""), stop


def _term(line: str) -> re.Match[str] | None:
    return _TERM.match(line) if "://" not in line.partition("::")[0] else None


def _ends_paragraph(line: str) -> bool:
    bare = line.strip()
    return bare == "+" or (len(bare) > 2 and any(rule.match(bare) for rule in (_FENCE, _OPTIONS, _CONDITION)))


def _item_text(lines: list[str], at: int, first: str) -> tuple[str, int]:
    """Return the text of an item (`first` and the paragraph from line `at` on), and the index of the line after it."""
    parts = [first] if first else []
    at = at if first else skip_blank(lines, at)
    while at < len(lines) and lines[at].strip() and not _ITEM.match(lines[at]) and not _ends_paragraph(lines[at]):
        if _term(lines[at]):
            break
        if not lines[at].startswith("//"):
            parts.append(lines[at].strip())
        at += 1
    return " ".join(parts), at


def _indented(first: str, more: list[str], mark: str, indent: int) -> list[str]:
    pad, inner = " " * indent, " " * (indent + len(mark) + 1)
    lines = [f"{pad}{mark} {first}".rstrip()]
    for block in more:
        lines += ["", *((inner + line).rstrip() for line in block.split("\n"))]
    return [*lines, ""] if more else lines


def _code(lines: list[str], options: str, fence_language: str, attributes: dict[str, str]) -> str:
    """Return code as a fenced block without callout marks, in the language that options, fence or attributes name."""
    parts = [part.strip().strip("\"'") for part in options.split(",")]
    style = parts[0].split("%")[0].split("#")[0]
    language = next((part.removeprefix("language=") for part in parts if part.startswith("language=")), "")
    if style in ("source", "", ",") and len(parts) > 1 and "=" not in parts[1]:
        language = language or parts[1].split("%")[0]
    language = language or fence_language or (attributes.get("source-language", "") if style == "source" else "")
    converted = [_CALLOUT.sub("", line) if line.rstrip().endswith(">") or "-->" in line else line for line in lines]
    return code_block(converted, re.sub(r"[^\w+#.-]", "", language).lower())


def table_rows(lines: Sequence[str], attributes: str, border: str) -> tuple[Rows, bool]:
    """Return the rows in the lines of a table, and whether the first is its head; `border` begins its border lines."""
    is_text = "header" in attributes and "noheader" not in attributes
    if border == "," or "format=csv" in attributes.replace('"', ""):
        return csv_rows("\n".join(lines)), is_text
    cells, first = _cells(lines)
    wide = min(_columns(attributes) or first or 1, MOST_COLUMNS)
    rows = [cells[at : at + wide] for at in range(0, len(cells), wide)]
    # the first line is the head if a blank line follows
    is_head = len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip()
    return rows, is_text or (first == wide > 0 and is_head and "noheader" not in attributes)


def _cells(lines: Sequence[str]) -> tuple[list[str], int]:
    cells: list[str] = []
    first = 0
    for line in lines:
        begun, *parts = (part.replace("\\|", "|").strip() for part in _CELL.split(line))
        if cells and begun:
            cells[-1] = f"{cells[-1]} {begun}".strip()
        cells += parts
        first = first or len(cells)
    return cells, first


def _columns(attributes: str) -> int:
    """Return the number of columns in the attributes (`cols="1,2"`, `cols="3*"`, `cols=2*,1`); 0 if not set."""
    found = re.search(r"cols=(?:\"([^\"]*)\"|'([^']*)'|([^,\]]*))", attributes)
    if found is None:
        return 0
    parts = re.split("[,;]", found[1] or found[2] or found[3] or "")
    times = (_TIMES.match(part.strip()) for part in parts)
    return sum(int(each[1][:3]) if each else 1 for each in times)
