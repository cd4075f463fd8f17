"""What of a long document is shown to a model: its headings and its beginning."""

from afresh.text.normalize import headings_in
from afresh.text.plain import shortened, visible

_OUTLINE = "Headings of the whole document:"
_BEGINNING = "Its beginning:"
_READ = 1_000_000  # characters in which headings are looked for
_LONGEST_HEADING = 120


def excerpt(text: str, most: int) -> str:
    """The text without what cannot be seen; of one that is longer its headings, then how it begins."""
    whole = visible(text[: max(most, _READ)])
    if len(whole) <= most:
        return whole
    headings = _headings(whole, most // 4)
    if not headings:
        return whole[:most]
    top = f"{_OUTLINE}\n{headings}\n\n{_BEGINNING}\n"
    return top + whole[: max(most - len(top), 0)]


def _headings(text: str, room: int) -> str:
    lines: list[str] = []
    for heading in headings_in(text):
        line = shortened(heading, _LONGEST_HEADING)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)
