"""The table of faults is made of the names of the tests."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fault_table", ROOT / "scripts" / "fault_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_row_has_its_words(script: ModuleType) -> None:
    rows = script.rows((ROOT / "scripts" / "faults.txt").read_text("utf-8"))
    ids = [row.id for row in rows]
    assert ids[:113] == [f"F{number:02}" for number in range(1, 114)]
    assert len(set(ids)) == len(ids)
    assert all(row.what and row.then for row in rows)
    named = script.tests(ROOT / "tests")
    assert [row.id for row in rows if row.id not in named] == [row.id for row in rows if row.why]


def test_a_test_covers_the_rows_in_its_name(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "e2e").mkdir()
    (tmp_path / "e2e" / "test_x.py").write_text(
        "async def test_F57_F58_a_bomb(): ...\nclass T:\n    def test_P1_a_kill(self): ...\n"
        "def test_nothing(): ...\ndef helper_F57_no(): ...\n"
    )
    named = script.tests(tmp_path)
    assert {row: [tuple(test) for test in found] for row, found in named.items()} == {
        "F57": [("a bomb", "e2e/test_x.py")],
        "F58": [("a bomb", "e2e/test_x.py")],
        "P1": [("a kill", "e2e/test_x.py")],
    }
    table = script.tables(
        [
            script.Row("F57", "w", "t"),
            script.Row("F58", "w", "t"),
            script.Row("F90", "w", "t", "nobody does it"),
            script.Row("F02", "w", "t"),
        ],
        named,
    )
    assert "| F57 | w | t | `e2e/test_x.py`: a bomb |" in table
    assert "| F90 | w | t | nobody does it |" in table
    assert "| F02 | w | t | **none yet** |" in table


def test_only_what_stands_between_the_marks_is_renewed(script: ModuleType) -> None:
    page = f"before\n{script.START}\nold\n{script.END}\nafter\n"
    new = script.renewed(page, "new")
    assert new == f"before\n{script.START}\n\nnew\n\n{script.END}\nafter\n"
    assert script.renewed(new, "new") == new
