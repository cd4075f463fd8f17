"""Write docs/images/demo.svg, the picture in README.md, from what `afresh demo` prints.

.venv/bin/python scripts/demo_picture.py
"""

import io
import os
import pty
import re
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS = 92
LAST_STEP = "4  "  # the picture ends before it
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # they come from another host
_LIVE = re.compile(r"\d queued\b|^  [a-z ]+ \d+(?: · |$)")  # lines that a terminal overwrites
_PROGRESS = re.compile(r"\x1b\[\?25[lh]|\x1b\[\d*[AKG]|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)|.*\r(?!\n)")


def played() -> str:
    """Return what the demo prints in a terminal, colours included."""
    pieces: list[bytes] = []

    def read(descriptor: int) -> bytes:
        pieces.append(os.read(descriptor, 65_536))
        return pieces[-1]

    os.environ.update(COLUMNS=str(COLUMNS), TERM="xterm-256color")
    sys.stdout.flush()
    pty.spawn([str(Path(sys.executable).with_name("afresh")), "demo"], read)
    return b"".join(pieces).decode("utf-8").replace("\r\n", "\n")


def displayed(text: str) -> str:
    """Return the lines of the picture: without live progress, up to the last step."""
    lines = [_PROGRESS.sub("", line) for line in text.split("\n")]
    plain = [Text.from_ansi(line).plain for line in lines]
    end = next((place for place, line in enumerate(plain) if line.startswith(LAST_STEP)), len(lines))
    kept = [line for line, bare in zip(lines[:end], plain, strict=False) if not _LIVE.search(bare)]
    return "\n".join(kept).strip("\n")


def main() -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(displayed(played())))
    svg = console.export_svg(title="afresh demo", code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT))
    PICTURE.write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    main()
