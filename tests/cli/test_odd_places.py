"""The command line where little of what it expects is there: it works or says why, and never crashes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import pytest

from afresh.config import load
from afresh.errors import ConfigError
from afresh.store.open import open_store

ROOT = Path(__file__).resolve().parents[2]
CODE = "import sys; from afresh.cli import main; sys.exit(main())"
CRASH = ("Traceback", "something went wrong", "Exception ignored")


def start(
    folder: Path,
    words: list[str],
    *,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    out: IO[str] | int = subprocess.PIPE,
) -> "subprocess.CompletedProcess[str]":
    """Run a command with an environment that holds next to nothing."""
    return subprocess.run(
        [sys.executable, "-c", CODE, *words],
        env={
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(folder),
            "AFRESH_STORE": f"sqlite:///{folder}/afresh.db",
            **(env or {}),
        },
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
        timeout=60,
    )


def make_store(folder: Path) -> None:
    """An empty store where `start` looks for one."""

    async def make() -> None:
        await (await open_store(f"sqlite:///{folder}/afresh.db")).close()

    asyncio.run(make())


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C", "LC_ALL": "C"},
        {"PYTHONIOENCODING": "ascii", "TERM": "dumb"},
        {"COLUMNS": "1", "LINES": "1"},
        {"COLUMNS": "nonsense", "TERM": "no-such-terminal"},
        {"PYTHONUTF8": "0", "LC_ALL": "POSIX", "COLUMNS": "0"},
    ],
)
def test_odd_terminals_are_no_error(tmp_path: Path, env: dict[str, str]) -> None:
    ended = start(tmp_path, ["config", "show"], env=env)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "words"),
    [((0,), ["sources"]), ((1,), ["sources", "--json"]), ((2,), ["nonsense"]), ((0, 1, 2), ["sources"])],
    ids=str,
)
def test_closed_streams_are_no_error(tmp_path: Path, closed: tuple[int, ...], words: list[str]) -> None:
    """Nor does the store get the number of a closed stream, where an answer would be written into it."""

    def close() -> None:
        for number in closed:
            os.close(number)

    make_store(tmp_path)
    ended = start(tmp_path, words, before=close)
    assert ended.returncode == (2 if "nonsense" in words else 0)
    assert not [word for word in CRASH if word in ended.stderr]
    for store in tmp_path.rglob("afresh.db"):
        assert store.read_bytes()[:15] == b"SQLite format 3"


@pytest.mark.parametrize("words", [["sources", "--json"], ["--help"]], ids=" ".join)
def test_F13_a_full_disk_behind_stdout_is_reported(tmp_path: Path, dev_full: Path, words: list[str]) -> None:
    make_store(tmp_path)
    with dev_full.open("w") as full:
        ended = start(tmp_path, words, out=full)
    assert ended.returncode == 1
    assert ended.stderr == "afresh: cannot write the output: No space left on device\n"


def test_a_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    ended = start(gone, ["sources"], before=gone.rmdir)
    assert (ended.returncode, ended.stderr) == (
        2,
        "afresh: the current folder does not exist any more: change to another one\n",
    )


def test_F87_without_a_home_the_store_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*args: object, **more: object) -> str:
        raise RuntimeError

    monkeypatch.setattr("platformdirs.user_data_dir", nowhere)
    monkeypatch.setattr("platformdirs.user_config_dir", nowhere)
    with pytest.raises(ConfigError, match="no home folder to put the store in: name a file with --store"):
        load(None, {}, {}, tmp_path)
    assert load(None, {"AFRESH_STORE": "sqlite:///kb.db"}, {}, tmp_path).store.url == "sqlite:///kb.db"
