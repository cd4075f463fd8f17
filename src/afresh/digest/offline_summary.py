"""What a document is, in a few plain lines taken from itself: title, first sentences, headings, terms."""

import re
from collections.abc import Iterable, Iterator, Sequence

from afresh.digest.key_terms import keywords
from afresh.text.outline import Heading, Outline, Paragraph, outline_of
from afresh.text.plain import cut, joined, sentences, shortened, without_marks

RECIPE = "extract-1"
READ = 40_000  # characters; what a document is shows long before
WEIGHED = 6_000  # characters of prose whose words are counted
EMPTY = "(empty document)"
UNREADABLE = "(no readable text)"
_ABSTRACT = re.compile(
    r"(?:abstract|summary|executive summary|tl;?dr|synopsis|zusammenfassung|kurzfassung|résumé|resumen"
    r"|riassunto|resumo|samenvatting|аннотация|摘要|概要|要約|요약|초록)[.:]?",
    re.IGNORECASE,
)
_DULL_HEADINGS = frozenset(
    {"contents", "table of contents", "toc", "see also", "references", "links", "further reading"}
    | {"inhalt", "inhaltsverzeichnis", "目录", "目次"}
)
_BOILERPLATE = re.compile(
    r"(?:last (?:updated|modified|edited)|published|updated|edit this page|skip to|copyright"
    r"|all rights reserved|table of contents|this (?:page|site) uses cookies|we use cookies|loading)\b|©",
    re.IGNORECASE,
)
_LINK_TEXT = re.compile(r"\[([^\[\]]{0,500})\]\(")
_LETTERS = re.compile(r"[^\W\d_]")
_CROWDED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MOST_LINES = 100
_NOTE = 3  # a text of so many summaries has terms worth telling


def summary_of(title: str, text: str, most: int = 400) -> str:
    """At most so many characters: never empty, no blank line, no marks, the same for the same document."""
    outline = outline_of(text[:READ])
    prose = _telling(outline.paragraphs)
    name = shortened(without_marks(title) or _first_title(outline), min(most, max(most // 3, 40)))
    sections = _sections(outline.headings, name, most * 3 // 10)
    scraps = [] if prose else _second_best(outline)
    body = " ".join(prose or scraps)
    long = len(body) > _NOTE * most
    room = most - len(name) - len(sections) - 2 - (most // 5 if long else 0)
    lead = _lead(_abstract(outline) or prose, scraps, max(room, most // 3))
    lines = [lead] if _repeats(lead, name) else [name, lead]
    lines = [*lines, sections]
    if long:
        lines.append(_terms(body, " ".join(lines), most - sum(map(len, lines)) - len(lines)))
    return _fitted(lines, most) or _nothing(text)


def _fitted(lines: Iterable[str], most: int) -> str:
    """The lines that fit as a whole; the first one in any case."""
    kept = ""
    for line in filter(None, lines):
        if not kept:
            kept = cut(line, most)
        elif len(kept) + 1 + len(line) <= most:
            kept += f"\n{line}"
    return kept


def _nothing(text: str) -> str:
    return UNREADABLE if text.strip() else EMPTY


def _first_title(outline: Outline) -> str:
    return next((heading.text for heading in outline.headings), "")


def _repeats(lead: str, name: str) -> bool:
    """Whether the first sentence begins with the title, so that it says nothing more."""
    return bool(lead) and lead.casefold().startswith(name.casefold())


def _telling(paragraphs: Iterable[Paragraph]) -> list[str]:
    """The words of the first paragraphs that tell something."""
    found: list[str] = []
    left = WEIGHED
    for each in paragraphs:
        if left > 0 and (words := _prose(each.raw[:left])):
            left -= len(words)
            found.append(words)
    return found


def _prose(raw: str) -> str:
    """The words of a paragraph that tells something; nothing of a menu, a badge or a scrap."""
    words = without_marks(raw)
    if len(words) < 12 or _BOILERPLATE.match(words):
        return ""
    linked = sum(map(len, _LINK_TEXT.findall(raw))) if "](" in raw else 0
    whole = words.count(" ") >= 4 or len(_CROWDED.findall(words[:80])) >= 8
    return words if whole and linked * 10 < len(words) * 7 and _worded(words) else ""


def _worded(words: str) -> bool:
    """Whether it is letters rather than signs."""
    start = words[:200]
    return sum(map(str.isalpha, start)) * 2 > len(start)


def _lead(prose: Sequence[str], scraps: Sequence[str], room: int) -> str:
    """How the prose begins; where there is none, how lists, tables or code begin."""
    if not prose:
        return shortened("; ".join(_opening(scraps, room)), room)
    found: list[str] = []
    taken = 0
    for paragraph in prose[:3]:
        for sentence in dict.fromkeys(sentences(paragraph)):
            if found and taken + len(sentence) > room:
                return joined(found)
            if sentence not in found:
                found.append(shortened(sentence, room))
                taken += len(sentence) + 1
        if taken * 2 > room:
            break
    return joined(found)


def _abstract(outline: Outline) -> list[str]:
    """The prose under the first heading that announces one."""
    for at, heading in enumerate(outline.headings, start=1):
        if _ABSTRACT.fullmatch(heading.text):
            return _telling(each for each in outline.paragraphs if each.under == at)
    return []


def _second_best(outline: Outline) -> list[str]:
    """What is left to tell of a text without prose: scraps, else lists, else code and tables."""
    scraps = [each.raw[:WEIGHED] for each in outline.paragraphs[:_MOST_LINES]]
    kinds = (scraps, outline.items[:_MOST_LINES], outline.rest[:_MOST_LINES])
    for lines in kinds:
        if words := [said for line in lines if _LETTERS.search(said := without_marks(line))]:
            return words
    return [said for lines in kinds for line in lines if (said := without_marks(line))]


def _opening(lines: Sequence[str], room: int) -> Iterator[str]:
    """The first lines, each once, until the room is taken."""
    for line in dict.fromkeys(lines):
        if room <= 0:
            return
        room -= len(line) + 2
        yield line.rstrip(";,")


def _sections(headings: Sequence[Heading], name: str, room: int) -> str:
    """The main headings below the title."""
    titled = headings[:1] == [each for each in headings if each.level == 1]
    below = headings[1:] if titled else headings
    named = [each for each in below if each.text.casefold() != name.casefold()]
    telling = [each for each in named if each.text.casefold() not in _DULL_HEADINGS]
    levels = sorted({each.level for each in telling})
    main = [each.text for level in levels[:1] for each in telling if each.level == level]
    if len(main) < 2:
        main = [each.text for each in telling if each.level in levels[:2]]
    return _listed("Sections: ", "; ", [shortened(each, 60) for each in dict.fromkeys(main)], room)


def _terms(text: str, told: str, room: int) -> str:
    return _listed("Terms: ", ", ", keywords(text, told), room, more="")


def _listed(label: str, between: str, entries: Sequence[str], room: int, more: str = "…") -> str:
    """As many entries as fit on a line, or nothing if none does."""
    line = label
    for at, entry in enumerate(entries):
        joined = line + (between if at else "") + entry
        if len(joined) + (len(between) + len(more) if at + 1 < len(entries) else 1) > room:
            return line + (between + more if more else "") if at else ""
        line = joined
    return line if entries else ""
