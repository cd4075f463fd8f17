"""Test files with their assertions rewritten, kept beside them: each process rewrites its share of them.

Without it all processes do the same work at the same time, a third of what they do before the first test.
"""

import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)

TESTS = Path(__file__).parent


def rewrite_share(config: pytest.Config) -> None:
    """Rewrite every n-th file that has changed since it was last done."""
    given = getattr(config, "workerinput", None)
    if given is None or sys.dont_write_bytecode:
        return
    first = int(given["workerid"].removeprefix("gw"))
    for file in sorted(TESTS.rglob("*.py"))[first :: given["workercount"]]:
        folder = get_cache_dir(file)
        kept = folder / (file.stem + PYC_TAIL)
        if try_makedirs(folder) and _read_pyc(file, kept) is None:
            found, code = _rewrite_test(file, config)
            _write_pyc(config.stash[assertstate_key], code, found, kept)
