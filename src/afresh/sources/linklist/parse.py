"""Parse a list of links in a file: one web URL per line, comments, blank lines."""

import re

from afresh.dataclass import dataclass, field
from afresh.text.redact import one_line
from afresh.urls.canonical import canonical

LINKS = "links"  # the kind of source that is a list of links
_ENDINGS = frozenset({"txt", "list", "links", "urls"})
_SAYS_SO = re.compile(r"(?:^|[^a-z])(?:links?|urls?)(?:[^a-z]|$)", re.IGNORECASE)
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_COMMENT = re.compile(r"(?:^|\s)#.*")  # begins after a blank, so that `…/page#part` has none
_WEB = re.compile(r"https?://", re.IGNORECASE)
_USER = re.compile(r"[^/?#\\]*@")
_MAX_QUOTED_CHARS = 60  # characters of a line that a note quotes
_MAX_NAMED_LINES = 5  # lines that a note names
MAX_NOTES = 1_000  # notes about lines without a URL; further ones are only counted
_UNDECODABLE = "\ufffd"  # replaces bytes that are not text
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(slots=True)
class LinkList:
    lines: dict[str, int] = field(default_factory=dict)  # URL → the first line that names it, in order
    refused: list[str] = field(default_factory=list)  # lines without a URL, with their numbers
    typed: dict[str, str] = field(default_factory=dict)  # URL → as its first line writes it
    repeated: list[int] = field(default_factory=list)  # lines that repeat a URL
    unnamed: int = 0  # lines without a URL, beyond MAX_NOTES

    @property
    def notes(self) -> list[str]:
        notes = [*self.refused]
        if self.unnamed:
            notes.append(f"{self.unnamed:,} more lines are not URLs")
        if self.repeated:
            named = ", ".join(map(str, self.repeated[:_MAX_NAMED_LINES]))
            more = len(self.repeated) - _MAX_NAMED_LINES
            tail = f" and {more} more" if more > 0 else ""
            lines, urls = ("line", "this URL is") if len(self.repeated) == 1 else ("lines", "these URLs are")
            notes.append(f"{lines} {named}{tail}: {urls} listed before, and read once")
        return notes


def is_link_list(name: str, head: bytes) -> bool:
    """Return whether a file is a list of links: by its name, or because most lines are URLs."""
    if name.rpartition(".")[2].lower() not in _ENDINGS and "." in name:
        return False
    found = parse_links(head)
    return bool(_SAYS_SO.search(name)) or len(found.lines) > len(found.refused) + found.unnamed


def parse_links(data: bytes) -> LinkList:
    """Parse a list of links; note each line that is not a web URL."""
    found = LinkList()
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    for number, line in enumerate(_LINE_ENDS.split(data.decode(encoding, "replace")), 1):
        typed = _COMMENT.sub("", line).strip()
        if not typed:
            continue
        plain = typed.isprintable() and " " not in typed and _UNDECODABLE not in typed
        url = canonical(typed) if plain and _WEB.match(typed) else None
        if url is None and len(found.refused) >= MAX_NOTES:
            found.unnamed += 1
        elif url is None:
            found.refused.append(f"line {number}: {_why(typed)}")
        elif url in found.lines:
            found.repeated.append(number)
        else:
            found.lines[url] = number
            found.typed[url] = typed
    return found


def _why(typed: str) -> str:
    """Return why a line is not a usable URL, without a password in it."""
    rest = typed.partition("://")[2]
    if _WEB.match(typed) and _USER.match(rest):
        return "the URL contains a user name or password; remove it, because it is never sent"
    quoted = one_line(typed if len(typed) <= _MAX_QUOTED_CHARS else f"{typed[:_MAX_QUOTED_CHARS]}…")
    if any(character.isspace() for character in typed):
        return f"{quoted!r} is not one URL; write one on each line"
    return f"{quoted!r} is not an http or https URL"
