"""Summarise a text without a model, by its title, first sentences, headings and terms; cut excerpts for models."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files

from afresh.search.stemming import SPACELESS, WORD, all_stop_words
from afresh.text.normalize import headings_in
from afresh.text.outline import Heading, Outline, Paragraph, outline_of
from afresh.text.plain import cut, joined, sentences, shortened, visible, without_marks

_READ = 1_000_000  # characters of a text in which headings are searched
_MAX_HEADING_CHARS = 120
_IDEOGRAPHS = re.compile("[\u3005\u30a1-\u30fa\u30fc\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{2,}")
_FUNCTION = re.compile("[的了是在和与及或也就都而其这那我你他她它们被把个着不有为以可等使用对于从到]")
_SPACELESS = re.compile(f"[{SPACELESS}]")
_SAMPLE = 1_500  # characters that are counted in scripts without spaces, because counting pairs takes long
# Scripts in which words contain combining marks, so that a slower pattern is needed.
_INTRICATE = re.compile("[\u0300-\u036f\u0483-\u0487\u0590-\u1dff\u2e80-\ua4cf\ua500-\uffef\U00010000-\U0010ffff]")
_SIMPLE = re.compile(r"[^\W\d_][^\W_]*")
_SHORTEST = 4  # minimum letters of a term, unless it is in upper case


def excerpt(text: str, most: int) -> str:
    """Return the visible text; if it is too long, its headings and its beginning."""
    whole = visible(text[: max(most, _READ)])
    if len(whole) <= most:
        return whole
    if not (headings := _headings(whole, most // 4)):
        return whole[:most]
    top = f"Headings of the whole document:\n{headings}\n\nIts beginning:\n"
    return top + whole[: max(most - len(top), 0)]


def _headings(text: str, room: int) -> str:
    lines: list[str] = []
    for heading in headings_in(text):
        line = shortened(heading, _MAX_HEADING_CHARS)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


RECIPE = "extract-1"
READ = 40_000  # characters of a text that a summary is made from
WEIGHED = 6_000  # characters of prose in which words are counted
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
_NOTE = 3  # a text that is longer than this many summaries gets a list of its terms


def summary_of(title: str, text: str, most: int = 400) -> str:
    """Return a plain-text summary of at most `most` characters, which is never empty."""
    outline = outline_of(text[:READ])
    prose = _meaningful(outline.paragraphs)
    title = without_marks(title) or next((heading.text for heading in outline.headings), "")
    name = shortened(title, min(most, max(most // 3, 40)))
    sections = _sections(outline.headings, name, most * 3 // 10)
    scraps = [] if prose else _second_best(outline)
    body = " ".join(prose or scraps)
    long = len(body) > _NOTE * most
    room = most - len(name) - len(sections) - 2 - (most // 5 if long else 0)
    lead = _lead(_abstract(outline) or prose, scraps, max(room, most // 3))
    repeats = lead and lead.casefold().startswith(name.casefold())  # leave out a title that the text repeats
    lines = [*([] if repeats else [name]), lead, sections]
    if long:
        left = most - sum(map(len, lines)) - len(lines)
        lines.append(_listed("Terms: ", ", ", keywords(body, " ".join(lines)), left, more=""))
    return _fitted(lines, most) or (UNREADABLE if text.strip() else EMPTY)


def _fitted(lines: Iterable[str], most: int) -> str:
    kept = ""
    for line in filter(None, lines):
        if not kept:
            kept = cut(line, most)
        elif len(kept) + 1 + len(line) <= most:
            kept += f"\n{line}"
    return kept


def _meaningful(paragraphs: Iterable[Paragraph]) -> list[str]:
    found: list[str] = []
    left = WEIGHED
    for each in paragraphs:
        if left > 0 and (words := _prose(each.raw[:left])):
            left -= len(words)
            found.append(words)
    return found


def _prose(raw: str) -> str:
    """Return the plain text of a paragraph; "" for a menu, a badge or a fragment."""
    words = without_marks(raw)
    if len(words) < 12 or _BOILERPLATE.match(words):
        return ""
    linked = sum(map(len, _LINK_TEXT.findall(raw))) if "](" in raw else 0
    whole = words.count(" ") >= 4 or len(_CROWDED.findall(words[:80])) >= 8
    worded = sum(map(str.isalpha, words[:200])) * 2 > len(words[:200])
    return words if whole and worded and linked * 10 < len(words) * 7 else ""


def _lead(prose: Sequence[str], scraps: Sequence[str], room: int) -> str:
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
    at = next((at for at, heading in enumerate(outline.headings, 1) if _ABSTRACT.fullmatch(heading.text)), None)
    return [] if at is None else _meaningful(each for each in outline.paragraphs if each.under == at)


def _second_best(outline: Outline) -> list[str]:
    """Return the lines to summarise for a text without prose: fragments, else lists, else code and tables."""
    scraps = [each.raw[:WEIGHED] for each in outline.paragraphs[:_MOST_LINES]]
    kinds = (scraps, outline.items[:_MOST_LINES], outline.rest[:_MOST_LINES])
    for lines in kinds:
        if words := [words_of_line for line in lines if _LETTERS.search(words_of_line := without_marks(line))]:
            return words
    return [words_of_line for lines in kinds for line in lines if (words_of_line := without_marks(line))]


def _opening(lines: Sequence[str], room: int) -> Iterator[str]:
    for line in dict.fromkeys(lines):
        if room <= 0:
            return
        room -= len(line) + 2
        yield line.rstrip(";,")


def _sections(headings: Sequence[Heading], name: str, room: int) -> str:
    titled = headings[:1] == [each for each in headings if each.level == 1]
    below = headings[1:] if titled else headings
    named = [each for each in below if each.text.casefold() != name.casefold()]
    summaries = [each for each in named if each.text.casefold() not in _DULL_HEADINGS]
    levels = sorted({each.level for each in summaries})
    main = [each.text for level in levels[:1] for each in summaries if each.level == level]
    if len(main) < 2:
        main = [each.text for each in summaries if each.level in levels[:2]]
    return _listed("Sections: ", "; ", [shortened(each, 60) for each in dict.fromkeys(main)], room)


def _listed(label: str, between: str, entries: Sequence[str], room: int, more: str = "…") -> str:
    line = label
    for at, entry in enumerate(entries):
        joined = line + (between if at else "") + entry
        if len(joined) + (len(between) + len(more) if at + 1 < len(entries) else 1) > room:
            return line + (between + more if more else "") if at else ""
        line = joined
    return line if entries else ""


def keywords(text: str, mentioned: str, most: int = 8) -> list[str]:
    """Return the most significant repeated words of a text that are not in `mentioned`."""
    if text.isascii() or not _INTRICATE.search(text):
        return _words(text, mentioned, _SIMPLE)[:most]
    sample = text[:_SAMPLE]
    if len(_SPACELESS.findall(sample)) * 4 <= len(sample):
        return _words(text, mentioned, WORD)[:most]
    known = mentioned.casefold()
    return [term for term in _spaceless_terms(sample) if term.casefold() not in known][:most]


def _words(text: str, mentioned: str, word: re.Pattern[str]) -> list[str]:
    forms = {form: count for form, count in Counter(word.findall(text)).items() if count > 1}
    known = {_key(form) for form in word.findall(mentioned)}
    counts: Counter[str] = Counter()
    spelling: dict[str, str] = {}
    dull = _dull_words()
    for form, count in forms.items():
        if form[0].isdigit() or form.lower() in dull or (key := _key(form)) in known:
            continue
        if len(form) < _SHORTEST and not (len(form) > 1 and (form.isupper() or form[0] >= "\u1100")):
            continue
        counts[key] += count
        if key not in spelling or count > forms[spelling[key]]:
            spelling[key] = form
    return [spelling[key] for key in sorted(counts, key=lambda key: -counts[key] * (10 + min(len(key), 10)))]


@cache
def _dull_words() -> frozenset[str]:
    """Return stop words, and words that are common in any document."""
    return all_stop_words().union(files("afresh.digest").joinpath("dull_words.txt").read_bytes().decode().split())


def _key(form: str) -> str:
    """Return a key that a word and its plural share."""
    key = form.casefold()
    return key[:-1] if len(key) > 4 and key.endswith("s") and not key.endswith("ss") else key


def _spaceless_terms(text: str) -> list[str]:
    """Return the terms of a text without spaces: strings of a few characters that occur three times or more.

    If one string contains another, only the one with the larger product of length and count is returned.
    """
    counts = Counter(_pieces(text))
    often = [piece for piece, count in counts.items() if count > 2]
    ranked = sorted(often, key=lambda piece: -counts[piece] * len(piece))
    kept: list[str] = []
    for piece in ranked[:64]:
        if not any(piece in other or other in piece for other in kept):
            kept.append(piece)
    return kept


def _pieces(text: str) -> Iterable[str]:
    for found in _IDEOGRAPHS.findall(text):
        for run in _FUNCTION.split(found):
            if run and "\u30a1" <= run[0] <= "\u30fc" and len(run) <= 10:
                yield run
                continue
            for size in (2, 3, 4):
                yield from (run[at : at + size] for at in range(len(run) - size + 1))
