"""What a model answered, and as a summary that may be kept; everything else is refused."""

import re
from typing import Any

from afresh.text.plain import cut, joined, visible, without_marks, without_thoughts

_LONGEST = 100_000  # characters of an answer that are looked at
_LABEL = re.compile(r"(?:summary|zusammenfassung|résumé|摘要|概要)\s*[:：]\s*", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:(?:i(?:['’]m| am) (?:very |so )?)?sorry[,.]? (?:but )?i\b|as an ai\b"
    r"|i(?:['’]m| am) (?:unable|not able) to\b|i do(?:n['’]t| not) have (?:access|enough)"
    r"|i (?:can(?:['’]t|not| not)|won['’]t|will not) (?:help|assist|provide|summari[sz]e|comply|process"
    r"|access|fulfil|create|generate|write|answer|do)\b)",
    re.IGNORECASE,
)


class Unusable(ValueError):
    """An answer of no use; the message says what it is instead."""


def summary_in(answer: Any, most: int) -> str:
    """The summary that a chat completion holds: plain, without blank lines, cut at a sentence."""
    return _checked(content_in(answer)[:_LONGEST], most)


def content_in(answer: Any) -> str:
    """What the model says in a chat completion; Unusable where it says nothing or refuses."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        refused, content = message.get("refusal"), message["content"]
    except (TypeError, KeyError, IndexError, AttributeError):
        raise Unusable("something other than a chat completion") from None
    if refused or choice.get("finish_reason") == "content_filter":
        raise Unusable("a refusal")
    if not isinstance(content, str):
        raise Unusable("no text")
    return content


def _checked(content: str, most: int) -> str:
    said = without_thoughts(visible(content))
    lines = [line for raw in said.split("\n") if (line := without_marks(raw))]
    text = joined(lines)
    text = _unquoted(text[label.end() :] if (label := _LABEL.match(text)) else text)
    if not any(map(str.isalnum, text)):
        raise Unusable("an empty text")
    if _REFUSAL.match(text):
        raise Unusable("a refusal")
    return cut(text, most)


def _unquoted(text: str) -> str:
    """The text without quotation marks around all of it."""
    around = text[:1] + text[-1:]
    return text[1:-1].strip() if around in ('""', "“”", "„“", "«»", "「」") and len(text) > 2 else text
