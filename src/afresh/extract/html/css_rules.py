"""A small CSS parser: declarations, and the style rules that hold on a screen. Linear in its input."""

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_NESTED_BLOCKS = 100
MAX_SELECTOR_CHARS = 500
MAX_VALUE_CHARS = 500

_PIECE = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|\\.|[{};,()\[\]]|[^\"'\\{};,()\[\]]+|.", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n\r\f]?|(.))", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important$")
_FEATURE = re.compile(r"\(\s*(min-|max-)?(width|height|aspect-ratio)\s*:\s*([\d.]+)(px|em|rem)?\s*\)")
_RANGE = re.compile(r"\(\s*(width|height)\s*(>=?|<=?)\s*([\d.]+)(px|em|rem)?\s*\)")
_SCREEN = {"width": 1280.0, "height": 800.0, "aspect-ratio": 1.6}
_USUAL_FEATURES = frozenset((
    "color", "screen", "hover:hover", "any-hover:hover", "pointer:fine", "any-pointer:fine",
    "scripting:enabled", "orientation:landscape", "prefers-color-scheme:light",
    "prefers-reduced-motion:no-preference", "prefers-contrast:no-preference", "display-mode:browser",
    "update:fast", "grid:0",
))  # fmt: skip
_TRANSPARENT_BLOCKS = ("@supports", "@layer", "@starting-style")


class Declaration(NamedTuple):
    """One property with its value, both in lower case and without escapes."""

    name: str
    value: str
    important: bool = False


class StyleRule(NamedTuple):
    """The declarations for what a list of selectors matches."""

    selectors: str
    declarations: tuple[Declaration, ...]


def parse_declarations(text: str) -> tuple[Declaration, ...]:
    """Return the declarations of a block or of a `style` attribute, as they stand."""
    text = _without_comments(text)
    plain = not any(mark in text for mark in "\"'(\\{")
    pieces = text.split(";") if plain else split_outside(text, ";")
    return tuple(found for piece in pieces if (found := _declaration(piece)) is not None)


def parse_sheet(text: str) -> Iterator[StyleRule]:
    """Return the rules of a style sheet that hold on a screen, nested ones with what they are nested in."""
    yield from _rules(_without_comments(text))


def unescape(text: str) -> str:
    """Return a text with its escapes (`dis\\70lay`) replaced by what they mean."""
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _without_comments(text: str) -> str:
    if "/*" not in text:
        return text
    pieces, at = [], 0
    while (start := text.find("/*", at)) >= 0:
        pieces.append(text[at:start])
        end = text.find("*/", start + 2)
        at = len(text) if end < 0 else end + 2
    return " ".join((*pieces, text[at:])).replace("<!--", " ").replace("-->", " ")


def _declaration(piece: str) -> Declaration | None:
    name, colon, value = piece.partition(":")
    name = unescape(name).strip().lower()
    if not colon or not name:
        return None
    value = " ".join(unescape(value).split()).lower()
    important = _IMPORTANT.search(value)
    if important is not None:
        value = value[: important.start()].rstrip()
    return Declaration(name, value[:MAX_VALUE_CHARS], important is not None) if value else None


def split_outside(text: str, mark: str) -> list[str]:
    """Return the pieces between marks that stand in no string and no brackets."""
    pieces: list[str] = []
    part: list[str] = []
    depth = 0
    for piece in _PIECE.findall(text):
        if piece == mark and depth <= 0:
            pieces.append("".join(part))
            part = []
            continue
        depth += (piece in "([") - (piece in ")]")
        part.append(piece)
    return [*pieces, "".join(part)]


class _Block(NamedTuple):
    selectors: str | None  # None: what is in it holds nowhere, or not on a screen
    body: list[str]


def _rules(text: str) -> Iterator[StyleRule]:
    """Walk over braces; a block that is never closed ends with the sheet."""
    blocks: list[_Block] = [_Block("", [])]
    prelude: list[str] = []
    for piece in _PIECE.findall(text):
        if piece == "{" and len(blocks) <= MAX_NESTED_BLOCKS:
            blocks.append(_Block(_meaning(blocks[-1].selectors, "".join(prelude).strip()), []))
            prelude = []
        elif piece == "}":
            block = blocks.pop() if len(blocks) > 1 else blocks[0]
            yield from _closed(block, prelude)
            prelude = []
        elif piece == ";":
            blocks[-1].body.append("".join(prelude))
            prelude = []
        else:
            prelude.append(piece)
    for block in reversed(blocks[1:]):
        yield from _closed(block, prelude)
        prelude = []


def _closed(block: _Block, rest: list[str]) -> Iterator[StyleRule]:
    if not block.selectors:
        return
    pieces = (*block.body, "".join(rest))
    found = tuple(each for piece in pieces if (each := _declaration(piece)) is not None)
    if found:
        yield StyleRule(block.selectors, found)


def _meaning(outer: str | None, prelude: str) -> str | None:
    """Return the selectors that hold within a block; "" where it only groups rules."""
    if outer is None:
        return None
    if not prelude.startswith("@"):
        return _nested(outer, prelude) if outer else prelude
    name = prelude.lower()
    if name.startswith(_TRANSPARENT_BLOCKS):
        return None if name.startswith("@supports not") else outer
    if name.startswith("@scope"):
        root = prelude[6:].partition(" to ")[0].strip().removeprefix("(").removesuffix(")")
        return _nested(outer, root) if outer else root
    return outer if name.startswith("@media") and _holds_on_screen(name.removeprefix("@media")) else None


def _nested(outer: str, inner: str) -> str:
    outers = split_outside(outer, ",")
    around = outers[0].strip() if len(outers) == 1 else f":is({outer})"
    return ", ".join(_within(around, each.strip()) for each in split_outside(inner, ","))


def _within(outer: str, inner: str) -> str:
    inner = inner.replace(":scope", "&")
    if len(outer) * (1 + inner.count("&")) + len(inner) > 2 * MAX_SELECTOR_CHARS:
        return ""
    return inner.replace("&", outer) if "&" in inner else f"{outer} {inner}"


def _holds_on_screen(queries: str) -> bool:
    """Return whether one of several media queries holds for a usual browser."""
    return any(_query_holds(query.strip()) for query in queries.split(","))


def _query_holds(query: str) -> bool:
    if query.startswith("not "):
        return not _query_holds(query.removeprefix("not ").strip())
    parts = [part.strip() for part in query.removeprefix("only ").split(" and ")]
    return all(map(_part_holds, parts))


def _part_holds(part: str) -> bool:
    if part in ("", "all", "screen"):
        return True
    if found := _FEATURE.fullmatch(part):
        size = float(found[3]) * (16 if found[4] in ("em", "rem") else 1)
        here = _SCREEN[found[2]]
        return here >= size if found[1] == "min-" else here <= size if found[1] == "max-" else here == size
    if found := _RANGE.fullmatch(part):
        size, here = float(found[3]) * (16 if found[4] in ("em", "rem") else 1), _SCREEN[found[1]]
        return here >= size if found[2].startswith(">") else here <= size
    return part.strip("() ").replace(" ", "") in _USUAL_FEATURES
