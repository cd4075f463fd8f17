"""S2: no parser of outside input runs on the event loop, unless it is listed here with what bounds it.

The test reads the source: it follows calls from every `async def` through plain functions, and stops where a
function is only handed on (`asyncio.to_thread(f, …)`, `offload.call(Named(…))`), which runs it elsewhere.
Methods are followed on `self`, on imported names, and wherever one class alone has a method of that name.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

import afresh

ROOT = Path(afresh.__file__).parent
# What stands in their parentheses runs elsewhere; the last two hand it to a thread themselves.
AWAY = frozenset({"to_thread", "run_in_executor", "_in_turn", "_off_loop"})
BUILT_IN = frozenset(name for kind in (str, bytes, dict, list, Path) for name in dir(kind))
WIDE = "read_json with more values than it takes by default"
LARGE = "read_large_json"  # which is for threads
PARSERS = frozenset(
    {
        *("json.loads", "json.load", "raw_decode", "pickle.loads", "pickle.load", "ast.parse", "tomllib.loads"),
        *("zlib.decompress", "zlib.decompressobj", "gzip.decompress", "gzip.open", "bz2.decompress"),
        *("bz2.BZ2Decompressor", "lzma.decompress", "lzma.LZMADecompressor", "decompress"),
        *("zipfile.ZipFile", "tarfile.open", "csv.reader", "csv.DictReader", WIDE, LARGE),
        *("lxml.etree.fromstring", "lxml.etree.iterparse", "lxml.etree.parse", "lxml.etree.XMLParser"),
        *("selectolax.lexbor.LexborHTMLParser", "yaml.compose", "yaml.parse", "yaml.load", "yaml.safe_load"),
        *(
            "pypdfium2.PdfDocument",
            "msgspec.msgpack.Decoder",
            "msgspec.json.decode",
            "html_to_markdown.convert",
            "pyromark.html",
        ),
    }
)

# Functions that may be called on the loop although they parse → what bounds them.
BOUNDED = {
    "afresh.text.json_input.read_json": "50,000 values, counted before it parses; more is WIDE",
    "afresh.sources.web.lister.mark_from": "what afresh itself wrote, at most 1,000,000 characters",
    "afresh.sources.web.sitemaps._Walk._parsed": "16 KB that are not packed; all else goes to a parser process",
    "afresh.sources.web.answers.gather": "at most 1 MB is unpacked before the loop gets a turn, up to the cap",
    "afresh.extract.pool.wire._decoder": "an answer of our own parser process, 64 MB at most",
    "afresh.server.own_routes.docs_asset": "a file that is shipped with afresh",
}
OWN = ("afresh.store.",)  # rows of our own store, in JSON that afresh wrote, each bounded when it was written


@dataclass
class Function:
    """A function with the names it calls, and the parsers it calls itself."""

    is_async: bool
    calls: set[str] = field(default_factory=set)
    parsers: set[str] = field(default_factory=set)


class Module(ast.NodeVisitor):
    """Collects the functions of one module; what a lambda or an inner function does is done by the outer."""

    def __init__(self, name: str, is_package: bool) -> None:
        self.name = name
        self._package = name if is_package else name.rpartition(".")[0]
        self.names: dict[str, str] = {}  # as the module knows them → dotted
        self.functions: dict[str, Function] = {}
        self._path: list[str] = []
        self._within: list[Function] = []
        self._class: list[str] = []

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            first = each.name.partition(".")[0]
            self.names[each.asname or first] = each.name if each.asname else first

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            self.names[each.asname or each.name] = f"{node.module}.{each.name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.setdefault(node.name, f"{self.name}.{node.name}")
        self._class.append(node.name)
        self._path.append(node.name)
        self.generic_visit(node)
        self._path.pop()
        self._class.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if not self._path:
            self.names.setdefault(node.name, f"{self.name}.{node.name}")
        self._path.append(node.name)
        function = Function(isinstance(node, ast.AsyncFunctionDef))
        self.functions[".".join([self.name, *self._path])] = function
        if self._within and not function.is_async:
            self._within[-1].calls.add(".".join([self.name, *self._path]))
        self._within.append(function)
        for each in node.body:
            self.visit(each)
        self._within.pop()
        self._path.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:
        called = self._dotted(node.func)
        if self._within and called:
            self._within[-1].calls.add(called)
            if _is_wide(called.rpartition(".")[2], node):
                self._within[-1].parsers.add(WIDE)
        if called.rpartition(".")[2] in AWAY:
            self.visit(node.func)
            return
        self.generic_visit(node)

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.names.get(node.id, f"{self.name}.{node.id}")
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and self._class:
                return ".".join([self.name, *self._path[: self._path.index(self._class[-1]) + 1], node.attr])
            return f"{self._dotted(node.value) or '?'}.{node.attr}"
        return ""


def _is_wide(name: str, call: ast.Call) -> bool:
    """Whether JSON is read with a larger bound than the usual one; a bound that is only passed on is none."""
    wide = [each.value for each in call.keywords if each.arg == "max_values"]
    passed_on = all(isinstance(each, ast.Name) and each.id == "max_values" for each in wide)
    return name == "read_json" and not passed_on


@cache
def _functions() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = ("afresh", *file.relative_to(ROOT).with_suffix("").parts)
        if "testing" in parts:
            continue
        is_package = parts[-1] == "__init__"
        module = Module(".".join(parts[:-1] if is_package else parts), is_package)
        tree = ast.parse(file.read_text())
        for _ in range(2):  # names of functions that stand below their use are known the second time
            module.functions.clear()
            module.visit(tree)
        found |= module.functions
        found |= {name: Function(False, {to}) for name, to in _reexports(module)}
    _resolve(found)
    return found


def _reexports(module: Module) -> Iterator[tuple[str, str]]:
    for name, dotted in module.names.items():
        if dotted.startswith("afresh.") and dotted != f"{module.name}.{name}":
            yield f"{module.name}.{name}", dotted


def _resolve(functions: dict[str, Function]) -> None:
    """Put a function in the place of every called name that means one."""
    methods: dict[str, list[str]] = defaultdict(list)
    for name in functions:
        methods[name.rpartition(".")[2]].append(name)
    for function in functions.values():
        for called in list(function.calls):
            last = called.rpartition(".")[2]
            if called in PARSERS or last in PARSERS:
                function.parsers.add(called if called in PARSERS else last)
            if called in functions:
                continue
            function.calls.discard(called)
            if f"{called}.__init__" in functions:
                function.calls.add(f"{called}.__init__")
            elif len(methods[last]) == 1 and last not in BUILT_IN:
                function.calls.add(methods[last][0])


def _reached(name: str, functions: dict[str, Function], seen: set[str]) -> set[str]:
    if name in seen or name in BOUNDED or name.startswith(OWN):
        return set()
    seen.add(name)
    function = functions[name]
    found = {f"{name} ({parser})" for parser in function.parsers}
    for called in function.calls:
        if not functions[called].is_async:
            found |= _reached(called, functions, seen)
    return found


def _on_the_loop() -> dict[str, set[str]]:
    functions = _functions()
    found = {name: _reached(name, functions, set()) for name, each in functions.items() if each.is_async}
    return {name: parsers for name, parsers in found.items() if parsers}


def test_S2_no_parser_runs_on_the_event_loop_unless_it_is_bounded() -> None:
    found = {name: sorted(parsers) for name, parsers in _on_the_loop().items()}
    assert not found, f"move these off the loop, or say in BOUNDED what bounds them: {found}"


def test_S2_the_search_for_parsers_finds_what_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing allowed it must see the ways that are known; else it looks at nothing."""
    monkeypatch.setattr(sys.modules[__name__], "BOUNDED", {})
    found = _on_the_loop()
    assert {each.partition(" ")[2] for each in found["afresh.sources.web.sitemaps._Walk._parsed"]} >= {
        "(zlib.decompressobj)",
        "(lxml.etree.iterparse)",
    }
    known = {
        "afresh.sources.web.api_client.as_json": "json.loads",
        "afresh.sources.web.answers.gather": "zlib.decompressobj",
        "afresh.server.webhooks.WebhookReceiver._receive": "json.loads",
        "afresh.sync.sinks.calls.SinkCalls.send": "json.loads",
    }
    for name, parser in known.items():
        assert any(parser in each for each in found[name]), name
    away = {"afresh.sources.github.api.GithubApi.tree", "afresh.models.link_scorer.ChatLinkScorer._ask"}
    assert not away & found.keys()
