"""What a model on loopback says of links: a plain scorer, and the ways in which its answers go wrong."""

import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from afresh.links.score import LinkToScore

_WORD = re.compile(r"[^\W_]+")
Scores = Mapping[str, float]


class Odd(Enum):
    """An answer to a request for scores that is not as it should be."""

    FENCED = "fenced"  # in a code block, with words around it
    TRUNCATED = "truncated"  # it breaks off in the middle of its last link
    NO_JSON = "no json"
    EMPTY = "empty"
    WRONG_SCHEMA = "wrong schema"
    INVENTED = "invented"  # it also names a link that nobody sent
    OUT_OF_RANGE = "out of range"  # scores of -1 and 2
    NO_NUMBERS = "no numbers"  # scores of NaN, "high" and true beside the right ones
    UNKNOWN_KEYWORD = "unknown keyword"
    TWICE = "twice"  # every link twice, once with half the score
    ERROR_OBJECT = "error object"  # a status 200 that says it is overloaded
    CUT = "cut"  # the connection ends in the middle
    DRIP = "drip"  # a byte now and then, without end


def literal_scores(link: LinkToScore, keywords: Sequence[str]) -> Scores:
    """1 for each keyword that stands in the text or path of a link, alone or with an `s`."""
    path = link.url.partition("://")[2].partition("/")[2]
    words = {word.casefold() for word in _WORD.findall(f"{link.text} {path}")}
    return {
        keyword: 1.0
        for keyword in keywords
        if all(not words.isdisjoint({word, f"{word}s"}) for word in keyword.split())
    }


def entry(url: str, scores: Scores, comment: str = "It says so.") -> dict[str, Any]:
    """One link of an answer."""
    pairs = [{"keyword": keyword, "score": score} for keyword, score in scores.items()]
    return {"url": url, "keywords": pairs, "comment": comment}


def write_answer(entries: Sequence[Mapping[str, Any]], odd: Odd | None = None) -> str:
    """The text of an answer."""
    match odd:
        case Odd.FENCED:
            return f"Here are the scores:\n```json\n{write_answer(entries)}\n```\nAnything else?"
        case Odd.TRUNCATED:
            whole = write_answer(entries)
            return whole[: whole.rindex('"comment"') + 4] if entries else whole[:-2]
        case Odd.NO_JSON:
            return "The first link looks good to me."
        case Odd.EMPTY:
            return ""
        case Odd.WRONG_SCHEMA:
            return json.dumps({"results": list(entries)})
    return json.dumps({"links": [each for link in entries for each in _spoilt(link, odd)]})


def _spoilt(link: Mapping[str, Any], odd: Odd | None) -> Sequence[Mapping[str, Any]]:
    pairs = link["keywords"]
    match odd:
        case Odd.INVENTED:
            return link, {**link, "url": "https://nobody.example/sent-this"}
        case Odd.OUT_OF_RANGE:
            return ({**link, "keywords": [{**pair, "score": 2.0 - 3 * (at % 2)} for at, pair in enumerate(pairs)]},)
        case Odd.NO_NUMBERS:
            wrong = (float("nan"), "high", True, None, float("inf"))
            extra = [{"keyword": f"odd {at}", "score": score} for at, score in enumerate(wrong)]
            return ({**link, "keywords": [*pairs, *extra, "budget", {"score": 1}]},)
        case Odd.UNKNOWN_KEYWORD:
            return ({**link, "keywords": [*pairs, {"keyword": "Own Idea", "score": 0.9}]},)
        case Odd.TWICE:
            half = [{**pair, "score": pair["score"] / 2} for pair in pairs]
            return link, {**link, "keywords": half, "comment": "Said again."}
    return (link,)
