"""Format `index.txt`: for each source its id, its summary and a blank line."""

import json
import re
from collections.abc import Iterable

from afresh.digest.cache import FileRecord, Record

# Line breaks, terminal controls, direction marks, invisible characters and lone surrogates, but not the two
# joiners (200C, 200D), which are parts of words and emoji.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def index_text(records: Iterable[Record]) -> str:
    """Return the text of the index: files, then links, each sorted by source id; equal records give equal texts."""
    ordered = sorted(records, key=lambda record: (not isinstance(record, FileRecord), record.source_id))
    entries = ((identifier_line(each.source_id), summary_lines(each.summary_text)) for each in ordered)
    return "".join("\n".join(filter(None, entry)) + "\n\n" for entry in entries)


def identifier_line(source_id: str) -> str:
    """Return the line with the id of a source, as a JSON string if the id has unsafe characters."""
    plain = source_id == source_id.strip() and not source_id.startswith('"') and not _UNSAFE.search(source_id)
    return source_id if plain and source_id else json.dumps(source_id)


def summary_lines(summary: str) -> str:
    """Return a summary without blank lines, trailing spaces and control characters."""
    lines = (_NO_TEXT.sub(_REPLACEMENT, line.replace("\t", " ")).rstrip() for line in summary.splitlines())
    return "\n".join(line for line in lines if line)
