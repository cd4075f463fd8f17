"""The inline markup of AsciiDoc as Markdown: attributes, links, code, emphasis."""

import re

from afresh.extract.markup.room import Room

DEEPEST = 3  # attributes in the values of others

_ATTRIBUTE = re.compile(r"\\?\{([\w][\w-]*)\}")
_KNOWN = {
    "nbsp": " ", "sp": " ", "empty": "", "blank": "", "zwsp": "", "wj": "", "lt": "<", "gt": ">", "amp": "&",
    "apos": "'", "quot": '"', "plus": "+", "asterisk": "*", "backtick": "`", "tilde": "~", "vbar": "|",
    "caret": "^", "startsb": "[", "endsb": "]", "two-colons": "::", "two-semicolons": ";;", "cpp": "C++",
    "deg": "°",
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


class Attributes:
    """The attributes of one document, and how much of them it may show."""

    def __init__(self, written: int) -> None:
        self.values: dict[str, str] = {}
        self.room = Room(written)

    def in_text(self, text: str, depth: int = 0) -> str:
        """The text with the values of its attributes; one that nobody set stays as it is written."""
        if "{" not in text or depth > DEEPEST:
            return text
        return _ATTRIBUTE.sub(lambda found: self._value(found, depth), text)

    def _value(self, found: re.Match[str], depth: int) -> str:
        if found[0].startswith("\\"):
            return found[0][1:]
        name = found[1].lower()
        value = self.values.get(name, _KNOWN.get(name))
        if value is None or not self.room.take(value):
            return found[0]
        return self.in_text(value, depth + 1)


def inline(text: str, attributes: Attributes) -> str:
    """A piece of prose with its markup in the forms of Markdown."""
    text = attributes.in_text(text)
    return _INLINE.sub(_shown, text).strip() if _MARKED.search(text) else text


def _shown(found: re.Match[str]) -> str:
    group = found.lastgroup or ""
    if group in ("exact", "double", "code", "literal", "passed"):
        return f"`{found[group].strip()}`" if found[group] else ""
    if group in ("bold", "strong"):
        return f"**{found[group]}**"
    if group in ("soft", "very"):
        return f"*{found[group]}*"
    if group == "text":
        return found[0][1:] if found[0].startswith("\\") else _link(found["url"], found["text"])
    if group == "named":
        return _page(found["page"], found["named"])
    return _other(group, found)


def _other(group: str, found: re.Match[str]) -> str:
    if group in ("anchor", "label"):
        return (found["label"] or found["anchor"].replace("_", " ").strip(" #")).strip()
    if group == "choice":
        return " > ".join(
            part.strip() for part in (found["menu"], *found["choice"].split(">")) if part.strip()
        )
    if group == "alternative":
        alternative = found["alternative"].partition(",")[0].strip("\"' ")
        return f"![{alternative}]({found['picture']})" if alternative else ""
    if group == "note":
        return f" ({found['note']})" if found["note"] else ""
    if group in ("index", "mark"):
        return ""
    return found["marked"] if group == "marked" else found[group]


def _link(url: str, text: str) -> str:
    url = url.strip("+")
    shown = _WINDOW.sub("", text.replace("\\]", "]")).strip('" ') or url.removeprefix("mailto:")
    return f"[{shown}]({url})"


def _page(page: str, text: str) -> str:
    """A link to another page; one that only the tool that builds the site could find is just its text."""
    path = page.partition("#")[0]
    shown = (
        _WINDOW.sub("", text).strip('" ') or path.rpartition("/")[2].removesuffix(".adoc") or page.strip("#")
    )
    if not path or ":" in path or "@" in path:
        return shown
    name = path.rpartition("/")[2]
    return f"[{shown}]({path if '.' in name else path + '.adoc'})" if "." in name or "/" in path else shown
