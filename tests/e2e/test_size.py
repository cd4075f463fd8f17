"""P11: a crawl stays as small as it began, however much it reads or has to read; soak/ does it at length."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        pytest.param(
            # in so short a crawl caches still fill, so memory gets more room than in the long one
            ["pages", "--pages", "700", "--growth", "25"],
            "700 pages",
            id="F112",
        ),
        pytest.param(["frontier", "--urls", "3000", "--megabytes", "300"], "addresses queued", id="P11"),
    ],
)
def test_F112_P11_memory_descriptors_and_threads_stay_flat(words: list[str], reported: str) -> None:
    """In a process of its own: memory that other tests left behind is not the crawl's."""
    done = subprocess.run([sys.executable, "-m", "soak", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert reported in done.stdout
