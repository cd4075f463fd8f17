"""Plain text: Markdown without its marks, nothing that cannot be seen, cut where a sentence ends."""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator

_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# What steers a terminal, turns the direction of text, hides in it, or is no character at all.
# The two joiners stay: words of Persian and families of emoji are written with them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
# It begins with one sign of a set: places where none stands are skipped at ten times the speed.
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
_LINK = re.compile(
    r"\[([^\[\]]{0,500})\](?:\([^()]{0,2000}(?:\([^()]{0,200}\)[^()]{0,200})?\)|\[[^\[\]]{0,200}\])"
)
_LEADING = re.compile(r"(?:#{1,6}(?=\s)|>|[-*+•](?=\s)|\|+|~{3,}|\[[ xX]\](?=\s)|\s)+")
_ITEM = re.compile(r"^ *(?:[-*+]|\d{1,9}[.)]) ", re.MULTILINE)  # of a list
_SENTENCE_END = re.compile(r"[。！？]+[」』”）]*|(?<![.!?…।॥؟۔።։။។])[.!?…।॥؟۔።։။។]++[\"'”’»)\]]*+(?=\s|$)")
_SHORTENED = re.compile(
    r"(?:\b\w|\b(?:e\.g|i\.e|etc|vs|cf|approx|dr|mrs?|ms|prof|st|no|nos|fig|figs|sec|vol|pp|ca|bzw|z\.b|usw|nr))\.",
    re.IGNORECASE,
)
_WIDE_ENDS = "。！？」』）"
_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_JOINING = "\u200c\u200d\ufe0e\ufe0f"


def visible(text: str) -> str:
    """The text with `\\n` line ends and without characters that are not meant to be seen."""
    return _UNSEEN.sub("", _BREAKS.sub("\n", text))


def dedent_lists(markdown: str) -> str:
    """The text with lists that begin at the margin, each level four spaces in.

    A passage may begin deep in a list. What stands there would be taken for code, with all its marks.
    """
    if not _ITEM.search(markdown):
        return markdown
    lines: list[str] = []
    levels: list[int] = []  # how far in each open level stood
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
    """What a model answered without what it thought before."""
    thoughts = _THOUGHTS.match(answer)
    return answer[thoughts.end() :] if thoughts else answer


def without_marks(markdown: str) -> str:
    """The words of a piece of Markdown on one line."""
    text = html.unescape(markdown) if "&" in markdown else markdown
    text = _MARKS.sub(_unmarked, visible(text))
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", text).replace("](", " (")
    line = " ".join(text.split())
    leading = _LEADING.match(line)
    return line[leading.end() :] if leading else line


def _unmarked(found: re.Match[str]) -> str:
    return found["code"] or found["escaped"] or ""


def sentences(text: str) -> list[str]:
    """The sentences of a text on one line, in order; what ends without a stop is one too."""
    found, start = [], 0
    for end in (*_ends(text), len(text)):
        found.append(text[start:end].strip())
        start = end
    return [each for each in found if each]


def _ends(text: str) -> Iterator[int]:
    for found in _SENTENCE_END.finditer(text):
        if found[0] != "." or not _ends_shortened(text, found.end()):
            yield found.end()


def joined(parts: Iterable[str]) -> str:
    """Sentences as one text, with spaces where their script has them."""
    text = ""
    for part in parts:
        text += part if not text or text[-1] in _WIDE_ENDS else f" {part}"
    return text


def _ends_shortened(text: str, end: int) -> bool:
    """Whether a full stop belongs to `e.g.` or to an initial."""
    word = text[max(0, end - 10) : end].rpartition(" ")[2].lstrip("(\"'“‘[")
    return _SHORTENED.fullmatch(word) is not None


def cut(text: str, most: int) -> str:
    """At most so many characters of a text on one line: whole sentences where they fill half of it."""
    if len(text) <= most:
        return text
    end = max((end for end in _ends(text[: most + 1]) if end <= most), default=0)
    return text[:end] if end * 2 >= most else shortened(text, most)


def shortened(text: str, most: int) -> str:
    """At most so many characters of a text, cut after a word where there are any, with an ellipsis."""
    if len(text) <= most:
        return text
    end = max(most - 1, 0)
    while end and (unicodedata.combining(text[end]) or text[end] in _JOINING or text[end - 1] == "\u200d"):
        end -= 1
    space = text.rfind(" ", end // 2, end + 1)
    kept = text[: space if space > 0 else end].rstrip(" ,;:–—-(")
    return f"{kept}…" if kept else text[:most]
