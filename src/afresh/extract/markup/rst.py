"""reStructuredText to a document, with the directives of Sphinx as far as they hold text."""

from afresh.extract.decode import decode
from afresh.extract.markup.rst_blocks import Directive, Rst, code_block, quoted
from afresh.extract.markup.rst_tables import csv_rows, list_rows
from afresh.extract.written import written
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

_ADMONITIONS = frozenset((
    "note", "warning", "tip", "hint", "important", "caution", "danger", "attention", "error", "seealso",
    "todo",
))  # fmt: skip
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
    "deprecated-removed": "Deprecated since version",
}
_CODE = frozenset((
    "code-block", "code", "sourcecode", "parsed-literal", "doctest", "testcode", "testoutput", "testsetup",
    "testcleanup", "prompt", "ipython", "productionlist", "math", "graphviz", "digraph", "graph",
    "mermaid", "plantuml", "uml", "jinja", "literal", "console",
))  # fmt: skip
_LANGUAGES = {
    "doctest": "pycon",
    "testcode": "python",
    "testsetup": "python",
    "ipython": "python",
    "prompt": "console",
}
_DROPPED = frozenset((
    "raw", "meta", "index", "highlight", "default-role", "contents", "sectnum", "tabularcolumns",
    "rst-class", "cssclass", "class-name", "currentmodule", "module", "program", "sectionauthor",
    "moduleauthor", "codeauthor", "role", "section-numbering", "local-toc", "title", "include-hidden",
    "only-dev", "target-notes", "header", "footer", "date", "restructuredtext-test-directive",
))  # fmt: skip
_OBJECTS = frozenset((
    "function", "class", "method", "classmethod", "staticmethod", "attribute", "property", "data",
    "exception", "decorator", "decoratormethod", "option", "cmdoption", "confval", "envvar", "setting",
    "describe", "object", "type", "struct", "union", "enum", "enumerator", "enum-class", "macro", "member",
    "var", "opcode", "pdbcommand", "2to3fixer", "coroutinefunction", "coroutinemethod",
    "awaitablefunction", "awaitablemethod", "abstractmethod", "autofunction", "autoclass", "automodule",
    "automethod", "autoattribute", "autoexception", "autodata", "autodecorator", "autoproperty", "command",
    "variable", "signature", "get", "post", "put", "patch", "delete",
))  # fmt: skip
_PLAIN_ARGUMENT = frozenset(
    {"topic", "sidebar", "rubric", "centered", "dropdown", "card", "tab", "tab-item", "details"}
)


class RstExtractor:
    """Reads reStructuredText."""

    version = recipe.RST

    def extract(self, body: Body) -> Document:
        """The document of a reStructuredText body."""
        return written(body, to_markdown(normalise(decode(body.data, body.charset))))


def to_markdown(text: str) -> str:
    """The text as Markdown."""
    lines = [line.expandtabs(8).rstrip() for line in text.split("\n")]
    return "\n\n".join(Rst(text, _render).blocks(lines))


def _render(rst: Rst, directive: Directive, depth: int) -> list[str]:
    """The blocks that a directive stands for; what is not known keeps its text."""
    name = directive.name.rpartition(":")[2]
    if name == "highlight":
        rst.language = directive.argument.strip()
    if name in _DROPPED:
        return []
    if name in _ADMONITIONS or name == "admonition":
        return [_admonition(rst, directive, depth)]
    if name in _VERSIONS:
        return [_version(rst, directive, depth)]
    if name in _CODE:
        return [_code(rst, directive)]
    if name in ("include", "literalinclude"):
        return [f"`{directive.argument}`"] if directive.argument else []
    if name in ("image", "figure"):
        return _picture(rst, directive, depth)
    if name == "toctree":
        return [_contents(rst, directive)]
    if name in ("csv-table", "list-table", "table"):
        return _table(rst, directive, depth)
    if name in _OBJECTS:
        return _object(rst, directive, depth)
    return _unknown(rst, name, directive, depth)


def _admonition(rst: Rst, directive: Directive, depth: int) -> str:
    """A callout: a quotation that begins with its title in bold."""
    own = directive.name == "admonition"
    title = rst.prose(directive.argument) if own else directive.name.capitalize()
    title = "See also" if directive.name == "seealso" else title
    first = [] if own or not directive.argument else directive.argument.split("\n")
    return quoted([f"**{title}**", *rst.blocks([*first, *directive.content], depth + 1)])


def _version(rst: Rst, directive: Directive, depth: int) -> str:
    number, _, text = directive.argument.partition("\n")
    number, _, rest = number.partition(" ")
    blocks = rst.blocks([line for line in (rest, text) if line] + directive.content, depth + 1)
    told = f"*{_VERSIONS[directive.name.rpartition(':')[2]]} {number}*"
    return "\n\n".join([f"{told}: {blocks[0]}", *blocks[1:]] if blocks else [told])


def _code(rst: Rst, directive: Directive) -> str:
    name = directive.name.rpartition(":")[2]
    language, content = directive.argument, directive.content
    if name in ("parsed-literal", "productionlist", "testoutput", "literal", "math") and language:
        content = [*language.split("\n"), *content]  # the first line of the text stands beside the name
    if name in ("code-block", "code", "sourcecode"):
        language = language.split("\n")[0].strip() or rst.language
    else:
        language = _LANGUAGES.get(name, name if name in ("mermaid", "graphviz", "math") else "")
    block = code_block(content, "" if language in ("none", "text", "default") else language.lower())
    caption = directive.options.get("caption", "")
    return f"{rst.prose(caption)}\n\n{block}" if caption else block


def _picture(rst: Rst, directive: Directive, depth: int) -> list[str]:
    alternative = " ".join(directive.options.get("alt", "").split())
    url = "".join(directive.argument.split())
    return [f"![{alternative}]({url})" if alternative else "", *rst.blocks(directive.content, depth + 1)]


def _contents(rst: Rst, directive: Directive) -> str:
    """A table of contents as a list of links to the files it names."""
    caption = directive.options.get("caption", "")
    items = []
    for line in directive.content:
        entry = line.strip()
        title, _, target = entry.removesuffix(">").rpartition("<") if entry.endswith(">") else ("", "", entry)
        if not entry or entry == "self" or entry.startswith(":"):
            continue
        shown = rst.prose(title) or target
        linked = "://" in target or (not target.startswith("/") and "*" not in target)
        url = target if "://" in target or target.endswith((".rst", ".md")) else target + ".rst"
        items.append(f"- [{shown}]({url})" if linked else f"- {shown}")
    listed = "\n".join(items)
    return f"**{rst.prose(caption)}**\n\n{listed}" if caption and listed else listed


def _table(rst: Rst, directive: Directive, depth: int) -> list[str]:
    title = [f"**{rst.prose(directive.argument)}**"] if directive.argument else []
    if directive.name == "table":
        return title + rst.blocks(directive.content, depth + 1)
    rows = (
        list_rows(directive.content)
        if directive.name == "list-table"
        else csv_rows("\n".join(directive.content), directive.options.get("delim", ","))
    )
    told = directive.options.get("header", "")
    head = bool(told) or directive.options.get("header-rows", "0") not in ("", "0")
    return [*title, rst.table([*csv_rows(told), *rows] if told else rows, head)]


def _object(rst: Rst, directive: Directive, depth: int) -> list[str]:
    """A symbol and what is said of it; outside of lists it has a heading, so that it is found by its name."""
    names = [line.rstrip("\\").strip() for line in directive.argument.split("\n") if line.strip()]
    level = rst.level
    shown = [f"`{name}`" for name in names]
    if depth <= level and names:
        rst.level = level + 1
        shown = ["#" * min(level + 1, 6) + " " + ", ".join(shown)]
    else:
        shown = [f"**{', '.join(shown)}**"] if names else []
    blocks = rst.blocks(directive.content, depth + 1)
    rst.level = level
    return shown + blocks


def _unknown(rst: Rst, name: str, directive: Directive, depth: int) -> list[str]:
    told = rst.prose(directive.argument) if name not in ("only", "ifconfig", "container", "compound") else ""
    if name in _PLAIN_ARGUMENT and told:
        told = f"**{told}**"
    return [told, *rst.blocks(directive.content, depth + 1)]
