"""What a model answered when it was asked to score links: read with care, whatever it is."""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from afresh.links.score import LONGEST_COMMENT, LONGEST_KEYWORD, AskedLink, Verdict, usual
from afresh.text.json_input import MAX_JSON_VALUES, BadJson, count_values, read_json
from afresh.text.plain import shortened, without_marks, without_thoughts

MOST_UNKNOWN = 5  # keywords of one link that nobody asked for
_LONGEST = 1_000_000  # characters of an answer that are looked at
_CLAMPED = "(a score was beyond 0 to 1)"
_LIST = re.compile(r'"links"\s*:\s*\[|\A[^{\[]*\[')
_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


class BadAnswer(ValueError):
    """An answer that no scores can be taken from; the message says what it is instead."""


@dataclass(slots=True)
class Reading:
    """The scores that an answer holds, and what of it was left out."""

    verdicts: list[Verdict] = field(default_factory=list)
    is_whole: bool = True  # the list ended where it should: what it does not name fits no keyword
    invented: int = 0  # links that were not asked for
    clamped: int = 0  # scores beyond 0 and 1
    refused: int = 0  # links and scores that were of no form


def read_answer(content: str, links: Sequence[AskedLink], keywords: Sequence[str]) -> Reading:
    """The verdicts on links that were asked for; BadAnswer where there is no list of any."""
    entries, is_whole = _entries(without_thoughts(content[:_LONGEST]))
    reading = Reading(is_whole=is_whole)
    found: dict[str, tuple[dict[str, float], str]] = {}
    exact = frozenset(link.url for link in links)
    loose = _written_loosely(exact)
    for entry in entries:
        url = entry.get("url") if isinstance(entry, dict) else None
        if not isinstance(url, str):
            reading.refused += 1
        elif (known := url if url in exact else loose.get(_loosely(url))) is None:
            reading.invented += 1
        else:
            scores, comment = found.setdefault(known, ({}, ""))
            is_clamped = _merge(scores, entry.get("keywords"), reading)
            found[known] = scores, comment or _comment(entry.get("comment"), is_clamped)
    if entries and reading.refused and not (found or reading.invented):
        raise BadAnswer("a list of something other than links")
    asked = frozenset(keywords)
    for link in links:
        scores, comment = found.get(link.url, ({}, ""))
        if kept := _kept(scores, asked):
            reading.verdicts.append(Verdict(link.url, link.text, kept, comment))
    return reading


def named_urls(reading: Reading) -> frozenset[str]:
    """The links that an answer speaks of."""
    return frozenset(verdict.url for verdict in reading.verdicts)


def _entries(content: str) -> tuple[list[Any], bool]:
    """The entries of the list, and whether it is whole; one that was cut off or framed is repaired."""
    raw = content.encode("utf-8", "surrogatepass")
    if count_values(raw) > MAX_JSON_VALUES:
        raise BadAnswer("JSON with more values than scores have")
    try:
        answer = read_json(raw, max_bytes=len(raw))
    except BadJson:
        return _repaired(content)
    entries = answer.get("links") if isinstance(answer, dict) else answer
    if not isinstance(entries, list):
        raise BadAnswer("JSON without a list of links")
    return entries, True


def _repaired(content: str) -> tuple[list[Any], bool]:
    """What stands in the list as far as it goes, whatever is around it."""
    begun = _LIST.search(content)
    if begun is None:
        raise BadAnswer("no JSON" if content.strip() else "an empty text")
    entries, at = [], begun.end()
    while True:
        gap = _GAP.match(content, at)
        at = gap.end() if gap else at
        if content[at : at + 1] != "{":
            break
        try:
            entry, at = _DECODER.raw_decode(content, at)
        except (ValueError, RecursionError):
            break
        entries.append(entry)
    is_whole = content[at : at + 1] == "]"
    if not entries and not is_whole:
        raise BadAnswer("JSON that breaks off")
    return entries, is_whole


def _written_loosely(urls: Collection[str]) -> dict[str, str]:
    """Addresses by what a model may make of them when it writes them down, where only one can be meant."""
    counts = Counter(map(_loosely, urls))
    return {key: url for url in urls if counts[key := _loosely(url)] == 1}


def _loosely(url: str) -> str:
    return unquote(url.strip().strip("<>"), errors="replace").rstrip("/").casefold()


def _merge(scores: dict[str, float], given: Any, reading: Reading) -> bool:
    """Add the scores of an entry, of one keyword the highest; whether any had to be clamped."""
    before = reading.clamped
    for keyword, score in _pairs(given, reading):
        value = min(1.0, max(0.0, score))
        reading.clamped += value != score
        scores[keyword] = max(value, scores.get(keyword, 0.0))
    return reading.clamped > before


def _pairs(given: Any, reading: Reading) -> Iterator[tuple[str, float]]:
    pairs: list[tuple[Any, Any]] = []
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list):
        pairs = [(each.get("keyword"), each.get("score")) for each in given if isinstance(each, Mapping)]
        reading.refused += len(given) - len(pairs)
    for keyword, score in pairs:
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        word = usual(keyword) if isinstance(keyword, str) else ""
        if is_number and _is_finite(score) and word.isprintable() and 0 < len(word) <= LONGEST_KEYWORD:
            yield word, float(score)
        else:
            reading.refused += 1


def _is_finite(score: float) -> bool:
    try:
        return math.isfinite(score)
    except OverflowError:  # a whole number with hundreds of digits
        return False


def _kept(scores: Mapping[str, float], asked: frozenset[str]) -> dict[str, float]:
    """The keywords that fit, best first; of those that nobody asked for only a few."""
    ranked = sorted(((word, score) for word, score in scores.items() if score > 0), key=lambda item: -item[1])
    unknown = frozenset([word for word, _ in ranked if word not in asked][MOST_UNKNOWN:])
    return {word: score for word, score in ranked if word not in unknown}


def _comment(given: Any, is_clamped: bool) -> str:
    said = without_marks(given[: 10 * LONGEST_COMMENT]) if isinstance(given, str) else ""
    if not is_clamped:
        return shortened(said, LONGEST_COMMENT)
    return f"{shortened(said, LONGEST_COMMENT - len(_CLAMPED) - 1)} {_CLAMPED}".strip()
