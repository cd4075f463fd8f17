"""`python -m tests.e2e.noisy` is `afresh` with a library that prints whenever a version is looked up."""

import os
import subprocess

from tests.e2e.inprocess import parse_in_process

from afresh.cli import main
from afresh.model.reports import FoundVersion
from afresh.services.sources import SourceService

NOISE = "noise-that-nobody-asked-for"
_quiet = SourceService.find_version


async def _noisy(self: SourceService, label: str) -> FoundVersion:
    print(NOISE)  # kept back until the process ends, unless it is flushed
    os.write(1, f"{NOISE}\n".encode())
    subprocess.run(["echo", NOISE], check=True)  # noqa: ASYNC221
    return await _quiet(self, label)


if __name__ == "__main__":
    parse_in_process()
    setattr(SourceService, "find_version", _noisy)  # noqa: B010
    raise SystemExit(main())
