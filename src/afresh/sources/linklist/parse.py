"""A list of links as people keep it in a file: one web address per line, comments, blank lines."""

import re
from dataclasses import dataclass, field

from afresh.text.redact import one_line
from afresh.urls.canonical import canonical

LINKS = "links"  # the kind of source that is a list of links
_ENDINGS = frozenset({"txt", "list", "links", "urls"})
_SAYS_SO = re.compile(r"(?:^|[^a-z])(?:links?|urls?)(?:[^a-z]|$)", re.IGNORECASE)
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_COMMENT = re.compile(r"(?:^|\s)#.*")  # `…/page#part` has none: its mark follows no blank
_WEB = re.compile(r"https?://", re.IGNORECASE)
_USER = re.compile(r"[^/?#\\]*@")
_SHOWN = 60  # characters of a line that a note quotes
_NAMED = 5  # lines that a note names
MAX_NOTES = 1_000  # notes about lines that hold no URL; further ones are only counted
_NO_TEXT = "\ufffd"
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(slots=True)
class LinkList:
    """What a file of links lists, and what is to be said about its lines."""

    lines: dict[str, int] = field(default_factory=dict)  # address → the line that names it first, in order
    refused: list[str] = field(default_factory=list)  # lines that name no address, with their numbers
    typed: dict[str, str] = field(default_factory=dict)  # address → as its first line writes it
    repeated: list[int] = field(default_factory=list)  # lines that name an address once more
    unnamed: int = 0  # lines that name no address, beyond MAX_NOTES

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses, each once, in the order of the file."""
        return tuple(self.lines)

    @property
    def notes(self) -> list[str]:
        """What a reader of the file should know."""
        more = [f"{self.unnamed:,} more lines are no addresses"] if self.unnamed else []
        return [*self.refused, *more, *self._repeats()]

    def _repeats(self) -> list[str]:
        if not self.repeated:
            return []
        named = ", ".join(map(str, self.repeated[:_NAMED]))
        more = len(self.repeated) - _NAMED
        tail = f" and {more} more" if more > 0 else ""
        one = len(self.repeated) == 1
        return [f"{'line' if one else 'lines'} {named}{tail}: listed before, read once"]


def is_link_list(name: str, head: bytes) -> bool:
    """Whether a file is meant as a list of links: by its name, or because that is what most lines are."""
    if name.rpartition(".")[2].lower() not in _ENDINGS and "." in name:
        return False
    found = parse_links(head)
    return bool(_SAYS_SO.search(name)) or len(found.lines) > len(found.refused) + found.unnamed


def parse_links(data: bytes) -> LinkList:
    """The links of a file; a line that is no web address is told and costs the others nothing."""
    found = LinkList()
    for number, line in enumerate(_LINE_ENDS.split(_text(data)), 1):
        typed = _COMMENT.sub("", line).strip()
        if not typed:
            continue
        url = _address(typed)
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


def _text(data: bytes) -> str:
    """The file as text; bytes that are none become a mark that no address holds."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def _address(typed: str) -> str | None:
    plain = typed.isprintable() and " " not in typed and _NO_TEXT not in typed
    return canonical(typed) if plain and _WEB.match(typed) else None


def _why(typed: str) -> str:
    """Why a line is left out, without repeating a password."""
    rest = typed.partition("://")[2]
    if _WEB.match(typed) and _USER.match(rest):
        return "the address holds a user name or password; leave it out, it is never sent"
    shown = one_line(typed if len(typed) <= _SHOWN else f"{typed[:_SHOWN]}…")
    if any(letter.isspace() for letter in typed):
        return f"{shown!r} is not one address; write one on each line"
    return f"{shown!r} is not an http or https address"
