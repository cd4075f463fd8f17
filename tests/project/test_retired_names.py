"""The check of identifiers finds retired words, and only whole ones."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/retired_names.py"


def check(folder: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("def _told() -> None: ...\n", "told"),
        ("class Postman: ...\n", "postman"),
        ("def send(letter: str) -> None: ...\n", "letter"),
        ("LONGEST_TEXT = 5\n", "longest"),
        ("class Run:\n    def start(self) -> None:\n        self.isSettled = True\n", "settled"),
    ],
)
def test_a_retired_word_fails_the_check_with_its_place_and_a_better_word(tmp_path: Path, code: str, word: str) -> None:
    (tmp_path / "module.py").write_text(code, "utf-8")
    status, output = check(tmp_path)
    assert status == 1
    assert f"module.py:{code[: code.lower().index(word)].count(chr(10)) + 1}: " in output
    assert f"instead of {word!r} say " in output
    assert output.endswith("retired names: 1\n")


def test_a_retired_word_in_a_file_name_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "postman.py").write_text("", "utf-8")
    assert check(tmp_path)[0] == 1


def test_other_names_texts_and_comments_pass_the_check(tmp_path: Path) -> None:
    code = "# told\ndef report(retold: str, hearing: int) -> str:\n    return 'told by the postman' + retold\n"
    (tmp_path / "module.py").write_text(code, "utf-8")
    assert check(tmp_path) == (0, "retired names: 0\n")
