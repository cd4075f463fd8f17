"""The text of `index.txt`: for each source a line that names it, its summary, and one blank line."""

import json
import re
from collections.abc import Iterable

from afresh.digest.cache import FileRecord, Record

# What would end the line, steer a terminal, turn the direction of the text or not be seen, and lone
# surrogates; the two joiners (200C, 200D) are part of words and signs.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def index_text(records: Iterable[Record]) -> str:
    """The whole index: files first, then links, each by source id; equal records give equal texts."""
    return "".join(_entry(record) for record in sorted(records, key=_order))


def identifier_line(source_id: str) -> str:
    """The line that names a source: its id, as a JSON string where it could not stand there plainly."""
    plain = source_id == source_id.strip() and not source_id.startswith('"') and not _UNSAFE.search(source_id)
    return source_id if plain and source_id else json.dumps(source_id)


def summary_lines(summary: str) -> str:
    """A summary as the index shows it: no blank line, no blanks at the ends of lines, nothing unseen."""
    lines = (_NO_TEXT.sub(_REPLACEMENT, line.replace("\t", " ")).rstrip() for line in summary.splitlines())
    return "\n".join(line for line in lines if line)


def _entry(record: Record) -> str:
    lines = [identifier_line(record.source_id), summary_lines(record.summary_text)]
    return "\n".join(line for line in lines if line) + "\n\n"


def _order(record: Record) -> tuple[bool, str]:
    return not isinstance(record, FileRecord), record.source_id
