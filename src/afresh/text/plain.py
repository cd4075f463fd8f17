"""Convert Markdown to plain text, remove invisible characters, and shorten text at the end of a sentence."""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain

_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Terminal controls, direction marks, invisible characters and noncharacters, but not the two joiners that
# Persian words and emoji sequences need.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
# The pattern begins with a character set, because that makes the search ten times faster.
_MARKS = re.compile(
    r"[`!\[{¶<\\*_~](?:"
    r"(?<=`)(?P<ticks>`*)(?P<code>[^`]{1,500})`(?P=ticks)(?!`)"
    r"|(?<=!)\[[^\[\]]{0,500}\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])"  # an image
    r"|(?<=\[)\^[^\[\]\s]{1,100}\]"  # a footnote
    r"|(?<=\{)[ ]?[#.:][^{}\n]{1,200}\}|(?<=¶)"
    r"|(?<=<)/?[A-Za-z!][^<>]{0,500}>"
    r"|(?<=\\)(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?<=`)`*|(?<=\*)\*{1,2}|(?<=~)~"
    r"|(?<=[*_])(?<!\w[*_])[*_]{0,2}(?=\S)|(?<=\S[*_])[*_]{0,2}(?!\w))"
)
_LINK = re.compile(r"\[([^\[\]]{0,500})\](?:\([^()]{0,2000}(?:\([^()]{0,200}\)[^()]{0,200})?\)|\[[^\[\]]{0,200}\])")
_LEADING = re.compile(r"(?:#{1,6}(?=\s)|>|[-*+•](?=\s)|\|+|~{3,}|\[[ xX]\](?=\s)|\s)+")
_ITEM = re.compile(r"^ *(?:[-*+]|\d{1,9}[.)]) ", re.MULTILINE)  # the start of a list item
_SENTENCE_END = re.compile(r"[。！？]+[」』”）]*|(?<![.!?…।॥؟۔።։။។])[.!?…।॥؟۔።։။។]++[\"'”’»)\]]*+(?=\s|$)")
_SHORTENED = re.compile(
    r"(?:\b\w|\b(?:e\.g|i\.e|etc|vs|cf|approx|dr|mrs?|ms|prof|st|no|nos|fig|figs|sec|vol|pp|ca|bzw|z\.b|usw|nr))\.",
    re.IGNORECASE,
)
_WIDE_ENDS = "。！？」』）"
_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_JOINING = "\u200c\u200d\ufe0e\ufe0f"
# `](https://host/path "title"` of a link without the final parenthesis; parentheses in it are in pairs.
_TARGET = re.compile(
    r"\]\(<?https?://[^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,4}"
    r"(?: \"[^\"\n]{0,500}\")?(?=\))"
)


def visible(text: str) -> str:
    """Return the text without invisible characters and with newlines as line ends."""
    return _UNSEEN.sub("", _BREAKS.sub("\n", text))


def dedent_lists(markdown: str) -> str:
    """Return Markdown with its lists at the margin: in a passage from inside of a list, indents would mean code."""
    if not _ITEM.search(markdown):
        return markdown
    lines: list[str] = []
    levels: list[int] = []  # original indent of each open level
    shift, fence = 0, ""
    for line in markdown.expandtabs(4).split("\n"):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if bare[:3] in ("```", "~~~") and fence in ("", bare[:3]):
            fence = "" if fence else bare[:3]
        elif bare and not fence and _ITEM.match(line):
            while levels and levels[-1] >= indent:
                levels.pop()
            shift = indent - 4 * len(levels)
            levels.append(indent)
        elif bare and not fence and not indent:
            levels, shift = [], 0
        lines.append(" " * max(0, indent - shift) + bare)
    return "\n".join(lines)


def without_thoughts(answer: str) -> str:
    """Return a model's answer without its reasoning (`<think>…</think>`) at the start."""
    thoughts = _THOUGHTS.match(answer)
    return answer[thoughts.end() :] if thoughts else answer


def without_marks(markdown: str) -> str:
    """Return the text of a piece of Markdown without markup, on one line."""
    text = html.unescape(markdown) if "&" in markdown else markdown
    text = _MARKS.sub(lambda found: found["code"] or found["escaped"] or "", visible(text))
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", text).replace("](", " (")
    line = " ".join(text.split())
    leading = _LEADING.match(line)
    return line[leading.end() :] if leading else line


def sentences(text: str) -> list[str]:
    """Return the sentences of a one-line text in order; the last one may lack its full stop."""
    found, start = [], 0
    for end in (*_ends(text), len(text)):
        found.append(text[start:end].strip())
        start = end
    return [each for each in found if each]


def _ends(text: str) -> Iterator[int]:
    for found in _SENTENCE_END.finditer(text):
        end = found.end()
        word = text[max(0, end - 10) : end].rpartition(" ")[2].lstrip("(\"'“‘[") if found[0] == "." else ""
        if not _SHORTENED.fullmatch(word):  # an abbreviation such as `e.g.`, or an initial
            yield end


def joined(parts: Iterable[str]) -> str:
    """Join sentences to one text, with spaces between them except in scripts without spaces."""
    text = ""
    for part in parts:
        text += part if not text or text[-1] in _WIDE_ENDS else f" {part}"
    return text


def cut(text: str, most: int) -> str:
    """Return a one-line text cut to `most` characters: after a sentence if at least `most / 2` characters remain."""
    if len(text) <= most:
        return text
    end = max((end for end in _ends(text[: most + 1]) if end <= most), default=0)
    return text[:end] if end * 2 >= most else shortened(text, most)


def shortened(text: str, most: int) -> str:
    """Return a text cut to `most` characters, with an ellipsis; if possible, cut after a word."""
    if len(text) <= most:
        return text
    end = max(most - 1, 0)
    while end and (unicodedata.combining(text[end]) or text[end] in _JOINING or text[end - 1] == "\u200d"):
        end -= 1
    space = text.rfind(" ", end // 2, end + 1)
    kept = text[: space if space > 0 else end].rstrip(" ,;:–—-(")
    return f"{kept}…" if kept else text[:most]


def without_targets(markdown: str) -> str:
    """Return Markdown with empty link targets, so that a change of targets does not change the text."""
    return _TARGET.sub("](", markdown)


class TargetlessText:
    """A Markdown text without link targets; converts positions in it to positions in the original."""

    def __init__(self, markdown: str) -> None:
        self.whole = markdown
        spans = [(found.start() + len("]("), found.end()) for found in _TARGET.finditer(markdown)]
        borders = [0, *chain.from_iterable(spans), len(markdown)]
        self.short = "".join([markdown[at:end] for at, end in zip(borders[::2], borders[1::2], strict=True)])
        self._gone = [0, *accumulate(end - start for start, end in spans)]
        self._at = [start - gone for (start, _), gone in zip(spans, self._gone, strict=False)]

    def between(self, start: int, end: int) -> str:
        return self.whole[self._in_whole(start) : self._in_whole(end)]

    def _in_whole(self, place: int) -> int:
        return place + self._gone[bisect_right(self._at, place)]
