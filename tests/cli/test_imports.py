"""What a command imports, counted: time on a busy machine says little, and a regression is one import away."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIST = "import sys; before = set(sys.modules)"
RUN = "from afresh.cli import main; code = main(sys.argv[1:])"
SHOW = "print(code, *set(sys.modules) - before, file=sys.stderr)"
ALWAYS = {"afresh", "click", "msgspec", "typing_extensions"}


@pytest.mark.parametrize(
    ("command", "packages", "most"),
    [
        ("--version", ALWAYS, 8),
        ("--help", {*ALWAYS, "_cffi_backend", "ada_url"}, 70),
        ("search --mode text retried", {*ALWAYS, "_cffi_backend", "ada_url", "platformdirs", "rich"}, 160),
        ("search --mode text retried --json", {*ALWAYS, "_cffi_backend", "ada_url", "platformdirs"}, 160),
    ],
)
def test_a_command_imports_only_what_it_uses(
    command: str, packages: set[str], most: int, template: Path, tmp_path: Path
) -> None:
    store = shutil.copy(template, tmp_path / "kb.db")
    call = [sys.executable, "-c", "; ".join((LIST, RUN, SHOW)), "--store", f"sqlite:///{store}", *command.split()]
    ended = subprocess.run(call, capture_output=True, text=True, check=True)
    code, *modules = ended.stderr.splitlines()[-1].split()
    assert code == "0", ended.stderr
    assert {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - packages == set()
    assert len([name for name in modules if name.startswith("afresh")]) <= most


def test_the_garbage_collector_works_while_a_command_does(template: Path, tmp_path: Path) -> None:
    store = shutil.copy(template, tmp_path / "kb.db")
    code = (
        "import gc; from afresh.cli import main; from afresh.kb import KnowledgeBase; at_end = KnowledgeBase.close\n"
        "async def close(self): print(gc.isenabled(), gc.get_freeze_count() > 0); await at_end(self)\n"
        "KnowledgeBase.close = close; main()"
    )
    call = [sys.executable, "-c", code, "--store", f"sqlite:///{store}", "sources", "--quiet"]
    ended = subprocess.run(call, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[0] == "True True", ended
