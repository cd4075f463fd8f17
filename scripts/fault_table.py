"""Write docs/reference/faults.md from the names of the tests; --check only says whether it is stale.

A test covers a row when the row stands in its name: `test_F57_F58_a_bomb_is_cut`. Nothing is imported.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "faults.md"
START, END = "<!-- written from the names of the tests -->", "<!-- end of what is written from the tests -->"
_NAME = re.compile(r"test_((?:[A-Z]\d+_)+)(.*)")
_PROMISES = tuple(f"P{number}" for number in (*range(1, 10), *range(11, 16), 19, 20))


class Row(NamedTuple):
    """A fault, what must happen, and why it needs no test, if it does not."""

    id: str
    what: str
    then: str
    why: str = ""


class Test(NamedTuple):
    """A test in words, and its file."""

    words: str
    file: str


def rows(text: str) -> list[Row]:
    """The faults as scripts/faults.txt lists them."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [Row(*(part.strip() for part in line.split(" | "))) for line in lines]


def tests(folder: Path) -> dict[str, list[Test]]:
    """Every row that a test names, with those tests."""
    found: dict[str, list[Test]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        for name in functions(path.read_text("utf-8")):
            if match := _NAME.fullmatch(name):
                for row in match[1].rstrip("_").split("_"):
                    found[row].append(Test(match[2].replace("_", " "), str(path.relative_to(folder))))
    return found


def functions(source: str) -> Iterator[str]:
    """The names of the functions in a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def tables(faults: Sequence[Row], named: Mapping[str, Sequence[Test]]) -> str:
    """Both tables, as the page has to hold them."""
    lines = ["## Promises and their tests", "", "| | tests |", "|---|---|"]
    lines += [f"| {promise} | {_cell(named.get(promise, ()))} |" for promise in _PROMISES]
    lines += ["", "## Faults and their tests", "", "| | what happens | what must follow | tests |", "|---|---|---|---|"]
    for row in faults:
        covered = _cell(named.get(row.id, ())) or row.why or "**none yet**"
        lines.append(f"| {row.id} | {row.what} | {row.then} | {covered} |")
    return "\n".join(lines)


def _cell(found: Sequence[Test]) -> str:
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in found:
        by_file[test.file].append(test.words)
    return "<br>".join(f"`{file}`: {'; '.join(words)}" for file, words in sorted(by_file.items()))


def renewed(page: str, block: str) -> str:
    """The page with what stands between its marks replaced."""
    before, _, rest = page.partition(START)
    return f"{before}{START}\n\n{block}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with --check compare it; rows that are due and have no test are listed."""
    faults, named = rows((ROOT / "scripts" / "faults.txt").read_text("utf-8")), tests(ROOT / "tests")
    page = PAGE.read_text("utf-8")
    new = renewed(page, tables(faults, named))
    bare = [row.id for row in faults if not row.why and row.id not in named]
    print(f"faults: {sum(row.id in named for row in faults)} of {len(faults)} rows have a test")
    if bare:
        print(f"faults: no test yet for {', '.join(bare)}")
    if "--check" not in arguments:
        PAGE.write_text(new, "utf-8")
    elif new != page:
        print("docs/reference/faults.md is stale: run python scripts/fault_table.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
