"""Convert inline markup of reStructuredText to Markdown: literals, roles, links, substitutions."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from afresh.extract.markup.tables import ExpansionBudget

DEEPEST = 3  # nesting of substitutions in the texts of other substitutions

_TARGET = re.compile(r"^[ \t]*\.\. _(`[^`\n]+`|[^\n:`]+(?:\\:[^\n:]+)*):[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_SUBSTITUTION = re.compile(r"^[ \t]*\.\. \|([^|\n]+)\| (\w+)::[ \t]*([^\n]*)$", re.MULTILINE)
_INLINE = re.compile(
    r"``(?P<literal>(?:[^`]|`(?!`))+?)``"
    r"|:(?P<role>[A-Za-z][\w.+-]*+(?::[\w.+-]++){0,4}+):`(?P<told>(?:\\.|[^`\\])++)`"
    r"|`(?P<named>(?:\\.|[^`<\\])*+)<(?P<url>[^`<>]++)>`_{1,2}"
    r"|`(?P<phrase>(?:\\.|[^`\\])++)`(?P<refers>_{0,2})(?::(?P<late>[A-Za-z][\w:.+-]*):)?"
    r"|\[(?P<note>\#?[\w.+-]*|\*)\]_(?!\w)"
    r"|\|(?P<mark>[^\s|](?:[^|\n]*[^\s|])?)\|_{0,2}"
    r"|(?<![\w`])(?P<word>[A-Za-z0-9](?:[\w.+-]{0,100}[A-Za-z0-9])?)_{1,2}(?![\w`])"
    r"|(?<!\w)(?P<plain>[A-Za-z0-9]\w*+(?:[.+-]++\w++)++)"  # plain text, matched as a whole to save time
    r"|\\(?P<escaped>[\s\S])"
)
_MARKED = re.compile(r"[`|\\_]")
_TITLED = re.compile(r"([^<>]*(?<=\s)|)<([^<>]+)>\s*")
_PROSE = frozenset((
    "ref", "doc", "term", "dfn", "abbr", "guilabel", "menuselection", "sup", "sub", "superscript", "subscript",
    "emphasis", "strong", "title", "numref", "any", "title-reference", "t", "keyword", "download", "envvar", "index",
    "rfc", "pep", "eq", "raw", "lname", "issue", "user", "pr", "gh", "author", "guide", "sup-ref",
))  # fmt: skip
_CALLS = frozenset({"func", "meth", "function", "method"})
_KEPT_ESCAPES = frozenset("*_`[]<>#\\|")


class RstNames(NamedTuple):
    targets: Mapping[str, str]
    substitutions: Mapping[str, str]
    budget: ExpansionBudget  # limits the text that both may add, because names may be used any number of times

    def target(self, name: str) -> str:
        """Return the URL of a link target; "" if it is unknown or would make the text too long."""
        url = self.targets.get(_normal(name), "")
        return url if self.budget.take(url) else ""

    def text(self, name: str) -> str | None:
        """Return the text of a substitution; None if it is unknown or would make the text too long."""
        value = self.substitutions.get(_normal(name))
        return value if value is not None and self.budget.take(value) else None


def names_of(text: str) -> RstNames:
    targets = {_normal(name.strip("`")): url for name, url in _TARGET.findall(text)}
    marks = {}
    for name, kind, value in _SUBSTITUTION.findall(text):
        marks[_normal(name)] = value.strip() if kind in ("replace", "unicode") else ""
    return RstNames(targets, marks, ExpansionBudget(len(text)))


def inline(text: str, names: RstNames, depth: int = 0) -> str:
    return text if not _MARKED.search(text) else _INLINE.sub(lambda found: _convert_inline(found, names, depth), text)


def _convert_inline(found: re.Match[str], names: RstNames, depth: int) -> str:
    match found.lastgroup:
        case "literal":
            return code_span(found["literal"])
        case "told":
            return _role(found["role"], found["told"])
        case "url":
            url = re.sub(r"\s+", "", found["url"]).replace("\\", "")
            url = names.target(url[:-1]) if url.endswith("_") else url
            text = " ".join(found["named"].split()) or url
            return f"[{text}]({url})" if url else text
        case "phrase" | "refers" | "late":
            return _phrase(found, names)
        case "note":
            return f"[{found['note']}]"
        case "mark":
            value = names.text(found["mark"]) if depth < DEEPEST else None
            return found[0] if value is None else inline(value, names, depth + 1)
        case "plain":
            return found[0]
        case "word":
            url = names.target(found["word"])
            return f"[{found['word']}]({url})" if url else found[0]
        case _:
            character = "" if found["escaped"].isspace() else found["escaped"]
            return "\\" + character if character in _KEPT_ESCAPES else character


def code_span(text: str) -> str:
    text = " ".join(text.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _role(role: str, raw: str) -> str:
    kind = role.rpartition(":")[2].lower()
    text = re.sub(r"\\([\s\S])", lambda found: found[1].strip(), raw)
    titled = _TITLED.fullmatch(text)
    title, target = (titled[1].strip(), titled[2]) if titled else (text, text)
    if kind == "doc":
        name = target.strip()
        label = " ".join(title.split()) if titled else name.rpartition("/")[2]
        if name.startswith("/") or "://" in name:
            return label
        return f"[{label}]({name if name.endswith('.rst') else name + '.rst'})"
    if kind in ("pep", "rfc"):
        return f"{kind.upper()} {title.partition('#')[0]}" if titled is None else title
    if kind in ("math", "m"):
        return code_span(text)
    if kind in _PROSE:
        return " ".join(title.split())
    name = title.lstrip("!")  # as readers see it: `~a.b.c` is `c`, a function gets parentheses
    name = name[1:].rpartition(".")[2] if name.startswith("~") else name
    calls = kind in _CALLS and not titled and not name.endswith(")")
    return code_span(name + "()" if calls else name.lstrip("."))


def _phrase(found: re.Match[str], names: RstNames) -> str:
    text = " ".join(found["phrase"].split())
    if found["late"]:
        return _role(found["late"], text)
    if found["refers"]:
        url = names.target(text)
        return f"[{text}]({url})" if url else text
    return code_span(text)


def _normal(name: str) -> str:
    return " ".join(name.replace("\\", "").lower().split())
