"""Source code by symbol."""

# ruff: noqa: E501 - samples stand as they would be written
import re
import time

import pytest

from afresh.errors import ExtractError
from afresh.extract import extract
from afresh.extract.chunk.markdown import chunk as chunk_document
from afresh.extract.code_languages import LANGUAGES
from afresh.extract.source_code import outline, to_markdown
from afresh.model.fetch import Body, Document


def read(name: str, text: str) -> Document:
    return extract(Body(url=f"file:///src/{name}", data=text.encode(), media_type=""))


def headings(name: str, text: str) -> list[str]:
    prose = re.sub(r"^(`{3,}).*?^\1", "", to_markdown(text, name), flags=re.DOTALL | re.MULTILINE)
    return [line.replace("`", "") for line in prose.split("\n") if line.startswith("#")][1:]


PYTHON = '''#!/usr/bin/env python
# Copyright 2026 Somebody. Licensed under something.
"""Jars and lids.

# no heading
- a list
"""

import os

SIZE = 1


class Jar:
    """Holds plums."""

    colour = "red"

    @property
    def lid(self) -> str:
        # no heading either
        def inner(): ...
        return "x"

    def __init__(self): ...

LATER = 2

# about fill
async def fill(jar): ...
'''


def test_python_has_prose_and_a_heading_for_each_symbol() -> None:
    document = read("__init__.py", PYTHON)
    assert document.title == "__init__.py"
    assert document.markdown == (
        "# `__init__.py`\n\nJars and lids.\n\n\\# no heading\n- a list\n\n"
        "```python\nimport os\n\nSIZE = 1\n```\n\n"
        '## `Jar`\n\n```python\nclass Jar:\n    """Holds plums."""\n\n    colour = "red"\n```\n\n'
        "### `lid`\n\n```python\n@property\ndef lid(self) -> str:\n    # no heading either\n"
        '    def inner(): ...\n    return "x"\n```\n\n'
        "### `__init__`\n\n```python\ndef __init__(self): ...\n```\n\n"
        "## `__init__.py`\n\n```python\nLATER = 2\n```\n\n"
        "## `fill`\n\n```python\n# about fill\nasync def fill(jar): ...\n```"
    )


def test_broken_python_is_still_cut_by_symbol() -> None:
    assert headings("a.py", PYTHON + "\ndef broken(:\n") == [
        "## Jar", "### lid", "### __init__", "## a.py", "## fill", "## broken",
    ]  # fmt: skip


def test_every_line_is_kept_once_and_in_order() -> None:
    made = to_markdown(PYTHON, "a.py")
    kept = [line.strip() for line in PYTHON.split("\n")[8:] if line.strip()]
    fences = re.findall(r"^```\w+\n(.*?)^```", made, flags=re.DOTALL | re.MULTILINE)
    assert [line.strip() for fence in fences for line in fence.split("\n") if line.strip()] == kept


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.js",
            "/** Says hi. */\nexport default function hi(a = {}) {\n  if (a) { f() }\n}\nconst go = async (x) => {\n};\n"
            "class Jar extends Box {\n  #lid = 1;\n  static open(x) {\n    while (x) {}\n  }\n  get size() { return 1 }\n}\n"
            "app.use = function use(fn) {\n};\nfoo(function () {\n});\n",
            ["## hi", "## go", "## Jar", "### open", "### size", "## app.use", "## a.js"],
        ),
        (
            "a.ts",
            "export interface Jar<T> {\n  size: number;\n}\nexport type Lid = { a: 1 } | null;\nenum E { A }\n"
            "abstract class B<T extends {}> {\n  private async f<T>(x: T): Promise<void> {\n  }\n}\n",
            ["## Jar", "## Lid", "## E", "## B", "### f"],
        ),
        (
            "a.go",
            "// Package jar holds.\npackage jar\n\n// Jar is.\ntype Jar struct {\n\tsize int\n}\n\n"
            "func (j *Jar) Open(s string) error {\n\tx := `}`\n\treturn nil\n}\n\nfunc New() *Jar { return nil }\n",
            ["## Jar", "## Jar.Open", "## New"],
        ),
        (
            "a.rs",
            "pub struct Jar<'a> { x: &'a str }\nimpl<'a> Jar<'a> {\n    pub fn open(&self) -> char { '}' }\n}\n"
            "fn raw() { let s = r#\"}\"#; }\nmacro_rules! m { () => {} }\n#[test]\nfn t() {}\n",
            ["## Jar", "## Jar<'a>", "### open", "## raw", "## m", "## t"],
        ),
        (
            "A.java",
            "package a;\n\n@Deprecated\npublic final class A<T> extends B {\n  private final List<String> x = make();\n"
            "  public A() {\n  }\n  @Override\n  public Map<String, List<T>> get(int a) throws E {\n    if (a) { f(); }\n  }\n"
            "  abstract void later();\n}\n",
            ["## A", "### A", "### get", "### later"],
        ),
        (
            "A.cs",
            "namespace N\n{\n    public static class A\n    {\n        public int Size => 1;\n"
            "        public static async Task<int> Get<T>(this T x) => 1;\n        internal void Run() { }\n    }\n}\n",
            ["## N", "### A", "#### Get", "#### Run"],
        ),
        (
            "a.kt",
            "data class Jar(val a: Int)\n\nobject Lid {\n  fun open() = 1\n}\n\nfun <T> List<T>.fill(x: T): T {\n  return x\n}\n",
            ["## Jar", "## Lid", "### open", "## fill"],
        ),
        (
            "a.swift",
            "public struct Jar: Box {\n  init(a: Int) {}\n  mutating func open() -> Int { 1 }\n}\nextension Jar {\n  func x() {}\n}\n",
            ["## Jar", "### init", "### open", "## Jar", "### x"],
        ),
        (
            "a.c",
            '#include "a.h"\n\nstatic int\nfill(struct jar *j, int n)\n{\n#if A\n  if (n) {\n#else\n  if (!n) {\n#endif\n  }\n'
            "  return 0;\n}\n\nint proto(void);\n\nstruct jar {\n  int n;\n};\n",
            ["## fill", "## a.c", "## jar"],
        ),
        (
            "a.cpp",
            "namespace n {\ntemplate <typename T>\nclass Jar : public Box {\n public:\n  explicit Jar(int a) : a_(a) {}\n"
            "  void open() const {\n  }\n};\n}\nvoid n::Jar::close(int x) noexcept {\n}\n",
            ["## n", "### Jar", "#### Jar", "#### open", "## n::Jar::close"],
        ),
        (
            "a.rb",
            "module Jars\n  class Jar < Box\n    def open(x)\n      if x\n        1\n      end\n    end\n\n    def self.make; end\n"
            "  end\nend\n",
            ["## Jars", "### Jar", "#### open", "#### self.make"],
        ),
        (
            "a.php",
            "<?php\nnamespace A;\nfinal class Jar implements Box {\n    public function open(): int { return 1; }\n}\nfunction f() {}\n",
            ["## A", "## Jar", "### open", "## f"],
        ),
        (
            "a.sh",
            "#!/bin/sh\n# About.\n\nfill() {\n  echo \"}\" # }\n}\nfunction lid {\n  :\n}\nfill\n",
            ["## fill", "## lid", "## a.sh"],
        ),
    ],
)  # fmt: skip
def test_symbols_of_other_languages(name: str, text: str, expected: list[str]) -> None:
    assert headings(name, text) == expected


def test_the_comment_at_the_head_is_prose_and_a_licence_is_not() -> None:
    made = to_markdown(
        "/*\n * Copyright 2026\n */\n\n// Package jar holds plums.\n//\n// And lids.\npackage jar\n", "a.go"
    )
    assert made == "# `a.go`\n\nPackage jar holds plums.\n\nAnd lids.\n\n```go\npackage jar\n```"


def test_code_without_symbols_is_one_block() -> None:
    document = read("Makefile", "all:\n\techo ```\n")
    assert document.markdown == "# `Makefile`\n\n````makefile\nall:\n\techo ```\n````"


def test_minified_and_generated_code_is_refused_with_the_reason() -> None:
    with pytest.raises(ExtractError, match="generated or minified code"):
        read("a.min.js", "var a=1;" * 1_000 + "\n//x\n")


def test_a_symbol_stays_in_one_chunk_where_it_fits() -> None:
    text = "\n\n".join(
        f"def f{number}():\n    # {'# ' * 3}\n" + f"    call({number})\n" * (10 + number * 3) for number in range(30)
    )
    document = read("a.py", text)
    chunks = chunk_document(document)
    parts = [part for part in re.split(r"\n\n(?=## )", document.markdown) if part.startswith("## ")]
    assert len(parts) == 30
    for part in parts:
        assert sum(part in chunk.content for chunk in chunks) == 1
    assert {name for chunk in chunks for name in chunk.path} <= {"a.py", *(f"f{n}" for n in range(30))}


HOSTILE = {
    "blanks": " " * 50_000,
    "stars": "a" + "*" * 20_000 + "b",
    "words": "a " * 20_000,
    "calls": "a(" * 10_000,
    "braces": "{" * 20_000,
    "classes": "class A {\n" * 2_000,
    "quotes": '"' * 20_000,
    "comments": "/*" * 10_000,
    "generics": "  A<" * 5_000,
    "patterns": "=/[" * 10_000,
    "modifiers": "public " * 5_000,
    "indents": "".join(" " * (depth % 300) + "def a():\n" for depth in range(1_000)),
    "raw": 'r#"' * 5_000,
    "many": "def a\n" * 3_000,
}


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_F63_hostile_code_is_quick(language: object) -> None:
    begun = time.process_time()
    for text in HOSTILE.values():
        outline(text, language)  # type: ignore[arg-type]
    assert time.process_time() - begun < 5
