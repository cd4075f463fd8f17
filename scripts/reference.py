"""Write the generated parts of README.md and of the pages in docs/ from the code.

.venv/bin/python scripts/reference.py [--check]
"""

import asyncio
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from afresh.app import utc_now
from afresh.cli.details import yaml_value
from afresh.cli.program import FAILED, INTERRUPTED, WRONG_USE, program
from afresh.cli.report import NEEDS_CONFIRMATION
from afresh.config import Config, list_values
from afresh.config.tree import NAMED
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.server.mcp.server import make_server
from afresh.services.context import ServiceContext

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for bench, which is no package of ours
from bench import published

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WIDTH, DOCS_WIDTH = 80, 114
SUBJECTS = ("sources", "pages", "links", "runs")
_ONLY_GIVEN = {"kind", "secret"}  # that have no default
_LIMIT = re.compile(r"(^|[._])(max|budget|burst|brake|timeout|memory|connections|requests)(_|$)")
_COMMON = re.compile(r"^Options of every command:\n(?:  .*\n)+\n?", re.MULTILINE)  # said once, for afresh
START, END = "<!-- written from the code -->", "<!-- end of what is written from the code -->"


def commands_block() -> str:
    """Return the help of every command, the options that all have only once."""
    texts = {name: _COMMON.sub("", text) if name != "afresh" else text for name, text in helps()}
    return "\n".join(f"## `{name}`\n\n```text\n{text}```\n" for name, text in texts.items())


def helps() -> Iterator[tuple[str, str]]:
    """Yield every command with its help, in the order of the program."""
    root = _context(program, "afresh")
    yield "afresh", program.get_help(root) + "\n"
    for command in program.commands.values():
        context = _context(command, str(command.name), root)
        yield context.command_path, command.get_help(context) + "\n"
        for below in getattr(command, "commands", {}).values():
            inner = _context(below, str(below.name), context)
            yield inner.command_path, below.get_help(inner) + "\n"


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    settings = {"terminal_width": WIDTH, **command.context_settings}
    return click.Context(command, parent=parent, info_name=name, **settings)


def settings_block() -> str:
    """Return every setting, one list for each section, as docs/reference/settings.md has to hold it."""
    parts = []
    for section, rows in groupby(_settings(), key=lambda row: row[0].partition(".")[0]):
        parts.append(f"### `{section}`\n\n" + "\n".join(_item(*row) for row in rows))
    return "\n\n".join(parts)


def _item(key: str, default: str, takes: str, doc: str) -> str:
    usual = f", default {default}" if default else ""
    return _wrapped(f"- **`{key}`** ({takes}{usual}): {_linked(doc)}")


def _wrapped(item: str) -> str:
    return textwrap.fill(item, DOCS_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def limits_block() -> str:
    """Return the settings that bound something, as docs/reference/limits.md has to hold them."""
    rows = (f"| `{key}` | {default} | {_linked(doc)} |" for key, default, _, doc in _settings() if _LIMIT.search(key))
    return "\n".join(["| setting | default | what it bounds |", "|---|---|---|", *rows])


def _settings() -> Iterator[tuple[str, str, str, str]]:
    for each in list_values(Config()):
        default = "a file in the user's data folder" if each.key == "store.url" else _code(each.value)
        yield each.key, default, each.spec.expected, each.spec.doc
    for section in NAMED.values():
        usual = section.kind_of("")()
        for key, spec in section.specs().items():
            default = _code(getattr(usual, key)) if key not in _ONLY_GIVEN else ""
            yield f"{section.name}.NAME.{key}", default, spec.expected, spec.doc


def _code(value: object) -> str:
    text = yaml_value(value)
    return f"`{text}`" if text else ""


def _linked(text: str) -> str:
    """Return the text with paths of pages, as messages name them, made links."""
    return re.sub(r"docs/((?:[a-z-]+/)*([a-z-]+)\.md)", r"[\2](../\1)", text)


def routes_block() -> str:
    """Return every route by subject: what it does, and what it takes."""
    unopened = KnowledgeBase(ServiceContext(store=None, tools=None, models=None, clock=utc_now))  # type: ignore[arg-type]
    document = make_app(unopened, Config(), works=False).openapi()  # nothing is asked
    by_subject: dict[str, list[str]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            by_subject.setdefault(_subject(path), []).append(_route(document, method, path, operation))
    return "\n\n".join(f"### {subject}\n\n" + "\n".join(routes) for subject, routes in by_subject.items())


def _subject(path: str) -> str:
    first = path.removeprefix("/api/v1/").partition("/")[0]
    return first.capitalize() if first in SUBJECTS else "Search and overview" if "/api/" in path else "Server"


def _route(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    taken = _taken(document, operation)
    return _wrapped(
        f"- **{method.upper()} `{path}`**: {_one_line(operation['description'])}{f' Takes {taken}.' if taken else ''}"
    )


def _taken(document: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    body = document["components"]["schemas"].get(name, {}).get("properties", {})
    return ", ".join([*(f"`?{each}`" for each in query), *(f"`{each}`" for each in body)])


def tools_block() -> str:
    """Return every MCP tool with its arguments, as docs/reference/mcp.md has to hold it."""
    unopened = KnowledgeBase(ServiceContext(store=None, tools=None, models=None, clock=utc_now))  # type: ignore[arg-type]
    tools = asyncio.run(make_server(unopened, works=False).list_tools())
    return "\n\n".join(_tool(tool) for tool in tools)


def _tool(tool: Any) -> str:
    schema = tool.input_schema
    lines = [f"### `{tool.name}`", "", " ".join((tool.description or "").split())]
    if not (tool.annotations and tool.annotations.read_only_hint):
        lines += ["", "Not offered with `--read-only` or to a token that may only read."]
    if schema.get("properties"):
        lines += ["", "| argument | type | what it is |", "|---|---|---|"]
    for name, spec in schema.get("properties", {}).items():
        needed = " (required)" if name in schema.get("required", ()) else ""
        lines.append(f"| `{name}`{needed} | {_type(spec)} | {_one_line(spec.get('description', ''))} |")
    return "\n".join(lines)


def _type(spec: Mapping[str, Any]) -> str:
    kinds = [each for each in spec.get("anyOf", [spec]) if each.get("type") != "null"]
    values = [value for kind in kinds for value in kind.get("enum", ())]
    if values:
        return ", ".join(f"`{value}`" for value in values)
    return " or ".join(str(kind.get("type", "")) for kind in kinds)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def exit_codes_block() -> str:
    """Return the table of exit codes, as docs/reference/exit-codes.md has to hold it."""
    rows = {
        0: "Done.",
        FAILED: "The work failed or is incomplete: a run ended as partial, failed or cancelled, or a sync left errors.",
        WRONG_USE: "Wrong use, wrong settings, or a store that cannot be opened. Nothing was done.",
        NEEDS_CONFIRMATION: "Nothing failed, but a run needs confirmation: it would delete more than the deletion"
        " limit allows. If the pages are really gone, run `afresh confirm RUN`.",
        INTERRUPTED: "Ended at once by a second Ctrl-C.",
    }
    return "\n".join(["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in rows.items())])


BLOCKS = {
    "reference/cli.md": commands_block,
    "reference/settings.md": settings_block,
    "reference/limits.md": limits_block,
    "reference/rest.md": routes_block,
    "reference/mcp.md": tools_block,
    "reference/exit-codes.md": exit_codes_block,
    "explanation/benchmarks.md": published.benchmark_tables,
    "../README.md": published.speed_table,
}


def renewed(page: str, block: str) -> str:
    """Return the page with the block between its marks replaced."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{block}\n\n{END}{after}"


def main() -> None:
    """Write the pages, or with --check say which differ and whether the published figures are too old."""
    stale = []
    for name, block in BLOCKS.items():
        page = DOCS / name
        old = page.read_text(encoding="utf-8")
        new = renewed(old, block())
        if new != old and "--check" in sys.argv:
            stale.append(
                f"{page.resolve().relative_to(ROOT)} is not what the code says: run python scripts/reference.py"
            )
        elif new != old:
            page.write_text(new, encoding="utf-8")
    if "--check" in sys.argv:
        if old_figures := published.too_old(published.read()):
            stale.append(f"{old_figures}: run make bench, then python scripts/reference.py")
        sys.exit("\n".join(stale) or 0)


if __name__ == "__main__":
    main()
