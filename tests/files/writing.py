"""A process that writes one file over and over, for a test to kill: `python writing.py FILE`."""

import itertools
import sys
from pathlib import Path

from afresh.files import write_whole

SIZE = 200_000


def version(number: int) -> bytes:
    """One of the texts that the file may hold: its number on every line."""
    return f"{number:09d}\n".encode() * (SIZE // 10)


def is_whole(data: bytes) -> bool:
    """Whether a text is one of the versions."""
    return len(data) == SIZE and data == data[:10] * (SIZE // 10)


if __name__ == "__main__":
    for number in itertools.count(1):
        write_whole(Path(sys.argv[1]), version(number))
        print(number, flush=True)
