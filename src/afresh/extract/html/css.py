"""Parse CSS in linear time (declarations, rules that apply on a screen, selectors) and match selectors.

The HTML parser has its own selector engine, but with some selectors it would take unlimited time.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from selectolax.lexbor import LexborNode

MAX_NESTED_BLOCKS = 100
MAX_SELECTOR_CHARS = 500
MAX_VALUE_CHARS = 500

_PIECE = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|\\.|[{};,()\[\]]|[^\"'\\{};,()\[\]]+|.", re.DOTALL)
_COMMENT = re.compile(r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n\r\f]?|(.))", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important$")
_SIZE = r"(?P<size>\d++\.?\d*+|\.\d++)(?P<unit>px|em|rem)?"
_FEATURE = re.compile(rf"\(\s*(?P<how>min-|max-)?(?P<name>width|height|aspect-ratio)\s*:\s*{_SIZE}\s*\)")
_RANGE = re.compile(rf"\(\s*(?P<name>width|height)\s*(?P<how>>=?|<=?)\s*{_SIZE}\s*\)")
_SCREEN = {"width": 1280.0, "height": 800.0, "aspect-ratio": 1.6}
_USUAL_FEATURES = frozenset((
    "color", "screen", "hover:hover", "any-hover:hover", "pointer:fine", "any-pointer:fine", "scripting:enabled",
    "orientation:landscape", "prefers-color-scheme:light", "prefers-reduced-motion:no-preference",
    "prefers-contrast:no-preference", "display-mode:browser", "update:fast", "grid:0",
))  # fmt: skip
_TRANSPARENT_BLOCKS = ("@supports", "@layer", "@starting-style")


class Declaration(NamedTuple):
    """One property and its value, both in lower case and with escapes resolved."""

    name: str
    value: str
    important: bool = False


def parse_declarations(text: str) -> tuple[Declaration, ...]:
    text = _without_comments(text)
    return _declarations(split_outside(text, ";") if any(mark in text for mark in "\"'(\\{") else text.split(";"))


def parse_sheet(text: str) -> Iterator[tuple[str, tuple[Declaration, ...]]]:
    """Yield selectors and declarations of the rules for screens; selectors of nested rules include the outer ones."""
    # Selectors (None if the block never applies on a screen) and content of each open block.
    blocks: list[tuple[str | None, list[str]]] = [("", [])]
    prelude: list[str] = []
    closing = ["}"] * (MAX_NESTED_BLOCKS + 1)
    for piece in chain(_PIECE.findall(_without_comments(text)), closing):
        if piece == "{" and len(blocks) <= MAX_NESTED_BLOCKS:
            blocks.append((_selectors_of(blocks[-1][0], "".join(prelude).strip()), []))
        elif piece in ("}", ";"):
            blocks[-1][1].append("".join(prelude))
        else:
            prelude.append(piece)
            continue
        prelude = []
        if piece == "}" and len(blocks) > 1:
            selectors, body = blocks.pop()
            if selectors and (found := _declarations(body)):
                yield selectors, found


def unescape(text: str) -> str:
    return _ESCAPE.sub(_resolve_escape, text) if "\\" in text else text


def _resolve_escape(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _without_comments(text: str) -> str:
    if "/*" not in text:
        return text
    return _COMMENT.sub(" ", text).replace("<!--", " ").replace("-->", " ")


def _declarations(pieces: Iterable[str]) -> tuple[Declaration, ...]:
    found: list[Declaration] = []
    for piece in pieces:
        name, colon, value = piece.partition(":")
        name = unescape(name).strip().lower()
        if colon and name:
            value = " ".join(unescape(value).split()).lower()
            important = _IMPORTANT.search(value)
            value = value[: important.start()].rstrip() if important else value
            if value:
                found.append(Declaration(name, value[:MAX_VALUE_CHARS], important is not None))
    return tuple(found)


def split_outside(text: str, mark: str) -> list[str]:
    """Split a text at each `mark` that is outside of strings and brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for piece in _PIECE.findall(text):
        if piece == mark and depth <= 0:
            parts.append([])
        else:
            depth += (piece in "([") - (piece in ")]")
            parts[-1].append(piece)
    return ["".join(part) for part in parts]


def _selectors_of(outer: str | None, prelude: str) -> str | None:
    """Return the selectors of a block inside one with `outer`: `outer` itself for `@media`, None if not on screens."""
    if outer is None:
        return None
    if not prelude.startswith("@"):
        return _nested(outer, prelude)
    name = prelude.lower()
    if name.startswith(_TRANSPARENT_BLOCKS):
        return None if name.startswith("@supports not") else outer
    if name.startswith("@scope"):
        return _nested(outer, prelude[6:].partition(" to ")[0].strip().removeprefix("(").removesuffix(")"))
    queries = name.removeprefix("@media").split(",") if name.startswith("@media") else ()
    return outer if any(_query_holds(query.strip()) for query in queries) else None


def _nested(outer: str, inner: str) -> str:
    if not outer:
        return inner
    outers = split_outside(outer, ",")
    around = outers[0].strip() if len(outers) == 1 else f":is({outer})"
    found = []
    for each in split_outside(inner, ","):
        inside = each.strip().replace(":scope", "&")
        is_long = len(around) * (1 + inside.count("&")) + len(inside) > 2 * MAX_SELECTOR_CHARS
        found.append("" if is_long else inside.replace("&", around) if "&" in inside else f"{around} {inside}")
    return ", ".join(found)


def _query_holds(query: str) -> bool:
    if query.startswith("not "):
        return not _query_holds(query.removeprefix("not ").strip())
    return all(_part_holds(part.strip()) for part in query.removeprefix("only ").split(" and "))


def _part_holds(part: str) -> bool:
    if part in ("", "all", "screen"):
        return True
    found = _FEATURE.fullmatch(part) or _RANGE.fullmatch(part)
    if found is None:
        return part.strip("() ").replace(" ", "") in _USUAL_FEATURES
    size, here = float(found["size"]) * (16 if found["unit"] in ("em", "rem") else 1), _SCREEN[found["name"]]
    if found["how"] is None:
        return here == size
    return here >= size if found["how"] in ("min-", ">", ">=") else here <= size


MAX_COMPOUNDS = 12
MAX_ANCESTORS = 400
MAX_DEPTH = 6  # maximum nesting of selectors

_NAME = r"(?:[-\w]|\\[0-9a-fA-F]{1,6}+[ \t\n\r\f]?+|\\[^0-9a-fA-F\n])++"
_SIMPLE = re.compile(
    rf"(?P<tag>\*|{_NAME})|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})"
    rf"|\[\s*+(?P<attribute>{_NAME})\s*+(?:(?P<how>[~|^$*]?=)\s*+(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s\]\"']++)\s*+(?:[is]\s*+)?)?\]"
    rf"|(?P<pseudo>::?[-\w]+)(?P<open>\()?"
)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_COUNTED = re.compile(r"(?:([-+]?\d*+)n)?\s*+([-+]?\s*+\d++)?")
_ALWAYS = frozenset({":root", ":link", ":any-link", ":-webkit-any-link", ":enabled", ":defined", ":read-only"})
_NEVER = frozenset((
    ":hover", ":focus", ":focus-within", ":focus-visible", ":active", ":target", ":target-within", ":visited",
    ":indeterminate", ":fullscreen", ":autofill", ":placeholder-shown", ":invalid",
    ":user-invalid", ":user-valid", ":before", ":after", ":first-letter", ":first-line", ":modal",
    ":popover-open", ":playing", ":current", ":past", ":future", ":host", ":host-context", ":state",
))  # fmt: skip
_ATTRIBUTES = frozenset({":checked", ":disabled", ":required"})
_ANY = frozenset({":is", ":where", ":matches", ":-webkit-any", ":-moz-any"})
_PLACES = frozenset((
    ":nth-child", ":nth-last-child", ":nth-of-type", ":nth-last-of-type", ":first-child", ":last-child",
    ":only-child", ":first-of-type", ":last-of-type", ":only-of-type",
))  # fmt: skip


class AttributeTest(NamedTuple):
    name: str
    how: str | None = None
    value: str = ""


class NthRule(NamedTuple):
    """A condition such as `:nth-child(2n+1)`: the positions `first`, `first + step` and so on among siblings."""

    step: int
    first: int
    from_end: bool
    of_type: bool


class Compound(NamedTuple):
    tag: str | None = None
    id: str | None = None
    classes: frozenset[str] = frozenset()
    attributes: tuple[AttributeTest, ...] = ()
    excluded: tuple["Selector", ...] = ()
    any_of: tuple[tuple["Selector", ...], ...] = ()  # of each group, one selector must match the element
    has: tuple[tuple["Selector", ...], ...] = ()  # of each group, one must match inside or beside the element
    places: tuple[NthRule, ...] = ()
    combinator: str = ""  # relation to the previous compound: " ", ">", "+" or "~"

    @property
    def key(self) -> str:
        """Return an id, class, attribute or tag that all matching elements have; "*" if there is none."""
        if self.id is not None:
            return f"#{self.id}"
        if self.classes:
            return f".{min(self.classes)}"
        if self.attributes:
            return f"[{self.attributes[0].name}"
        return self.tag or "*"


class Selector(NamedTuple):
    """A selector such as `nav > a.button`: its compounds (`nav` and `a.button`) in order, and its specificity."""

    compounds: tuple[Compound, ...]
    specificity: tuple[int, int, int]
    doubtful: bool = False  # has unsupported parts; matches all elements that a browser matches, and maybe more
    outer_keys: frozenset[str] = frozenset()  # each is a key of some ancestor of every matching element

    @property
    def keys(self) -> frozenset[str]:
        """Return ids, classes, attributes or tags (as `Compound.key` does); each matching element has at least one."""
        last = self.compounds[-1]
        if last.key == "*" and last.any_of:
            return frozenset().union(*(each.keys for each in last.any_of[0]))
        return frozenset({last.key})


class ElementFeatures(NamedTuple):
    tag: str
    attributes: dict[str, str | None]
    classes: frozenset[str]

    @classmethod
    def of(cls, node: LexborNode) -> "ElementFeatures":
        attributes = node.attributes
        return cls(node.tag or "", attributes, frozenset((attributes.get("class") or "").split()))


FeaturesOf = Callable[[LexborNode], ElementFeatures]


def parse_selector(text: str, depth: int = 0) -> Selector | None:
    """Parse a selector; return None if it is invalid, or only matches in a state such as `:hover`."""
    text = text.strip()
    if not text or len(text) > 2 * MAX_SELECTOR_CHARS or depth > MAX_DEPTH:
        return None
    reader = _Reader(text, depth)
    compounds: list[Compound] = []
    combinator: str | None = ""
    while combinator is not None and not reader.at_end():
        compound = reader.compound(combinator)
        if compound is None or len(compounds) >= MAX_COMPOUNDS:
            return None
        compounds.append(compound)
        combinator = reader.combinator()
    if not reader.at_end():
        return None
    ids = sum(each.id is not None for each in compounds)
    classes = sum(len(each.classes) + len(each.attributes) + len(each.places) for each in compounds)
    tags = sum(each.tag not in (None, "*") for each in compounds)
    ids, classes, tags = map(sum, zip((ids, classes, tags), *reader.inner, strict=True))
    upwards = all(each.combinator in ("", " ", ">") for each in compounds)
    outer_keys = frozenset(each.key for each in compounds[:-1] if each.key != "*") if upwards else frozenset[str]()
    return Selector(tuple(compounds), (ids, classes, tags), reader.doubtful, outer_keys)


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._depth = depth
        self._at = 0
        self.doubtful = False
        self.inner: list[tuple[int, int, int]] = []  # specificities of nested selectors

    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def combinator(self) -> str | None:
        found = _COMBINATOR.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return (found[1] or " ") if found else None

    def compound(self, combinator: str) -> Compound | None:
        parts = Compound(combinator=combinator)
        begin = self._at
        while found := _SIMPLE.match(self._text, self._at):
            if found["tag"] and self._at != begin:
                return None
            self._at = found.end()
            argument = self._argument() if found["open"] else ""
            if found["tag"]:
                parts = parts._replace(tag=unescape(found["tag"]).lower())
            elif found["id"]:
                parts = parts._replace(id=unescape(found["id"]))
            elif found["class"]:
                parts = parts._replace(classes=parts.classes | {unescape(found["class"])})
            elif found["attribute"]:
                value = unescape((found["value"] or "").strip("\"'"))
                test = AttributeTest(unescape(found["attribute"]).lower(), found["how"], value)
                parts = parts._replace(attributes=(*parts.attributes, test))
            elif (more := self._pseudo(parts, found["pseudo"].lower(), argument)) is not None:
                parts = more
            else:
                return None
        return parts if self._at > begin else None

    def _argument(self) -> str:
        begin, depth = self._at, 1
        while self._at < len(self._text) and depth:
            depth += {"(": 1, ")": -1}.get(self._text[self._at], 0)
            self._at += 1
        return self._text[begin : self._at - (not depth)].strip()

    def _pseudo(self, parts: Compound, name: str, argument: str) -> Compound | None:
        if name.startswith("::") or name in _NEVER:
            return None
        if name in _ATTRIBUTES:
            return parts._replace(attributes=(*parts.attributes, AttributeTest(name[1:])))
        if name in _PLACES:
            place = _place(name, argument)
            self.doubtful = self.doubtful or not place
            return parts._replace(places=(*parts.places, *place))
        if name == ":not":
            excluded = [each for each in self._selectors(argument) if not each.doubtful]
            return parts._replace(excluded=(*parts.excluded, *excluded))
        if name in _ANY:
            found = self._selectors(argument, weighs=name != ":where")
            return parts._replace(any_of=(*parts.any_of, found)) if found else None
        if name == ":has":
            argument = ", ".join(f"* {each.strip()}" for each in split_outside(argument, ","))
            found = self._selectors(argument)
            plain = all(len(each.compounds) == 2 and each.compounds[1].combinator == " " for each in found)
            self.doubtful = self.doubtful or not plain  # `_finds` ignores the start of such selectors
            return parts._replace(has=(*parts.has, found)) if found else None
        if name.startswith(":-") and name not in _ALWAYS:
            return None
        self.doubtful = self.doubtful or name not in _ALWAYS
        return parts

    def _selectors(self, argument: str, *, weighs: bool = True) -> tuple[Selector, ...]:
        read = (parse_selector(each, self._depth + 1) for each in split_outside(argument, ","))
        found = tuple(each for each in read if each is not None)
        self.doubtful = self.doubtful or any(each.doubtful for each in found)
        if found and weighs:
            self.inner.append(max(each.specificity for each in found))
        return found


def _place(name: str, argument: str) -> tuple[NthRule, ...]:
    of_type = name.endswith("type")
    if not name.startswith(":nth"):
        ends = {":first": (False,), ":last": (True,), ":only": (False, True)}[name.partition("-")[0]]
        return tuple(NthRule(0, 1, end, of_type) for end in ends)
    argument = {"even": "2n", "odd": "2n+1"}.get(argument.lower(), argument.lower())
    found = _COUNTED.fullmatch(argument)
    if found is None or not argument:
        return ()
    step = found[1]
    count = 0 if step is None else int(f"{step}1" if step in ("", "+", "-") else step[:9])
    first = int((found[2] or "0").replace(" ", "")[:9])
    return (NthRule(count, first, "last" in name, of_type),)


def matches(selector: Selector, node: LexborNode, features: FeaturesOf) -> bool:
    *outer, last = selector.compounds
    if not _fits(last, node, features):
        return False
    if not outer:
        return True
    if all(each.combinator in ("", " ", ">") for each in selector.compounds):
        return _matches_upwards(outer, last, node, features)
    before = Selector(tuple(outer), selector.specificity)
    return any(matches(before, each, features) for each in _related(node, last.combinator, features))


def _matches_upwards(outer: list[Compound], last: Compound, node: LexborNode, features: FeaturesOf) -> bool:
    """Return whether ancestors of `node`, which matches `last`, match the compounds in `outer`; check each once."""
    open_ends = {(len(outer), last.combinator)}  # number of remaining compounds, and the combinator after them
    here = node.parent
    for _ in range(MAX_ANCESTORS):
        if here is None or not open_ends:
            return False
        fitting = {left for left, _ in open_ends if _fits(outer[left - 1], here, features)}
        if 1 in fitting:
            return True
        found = {(left - 1, outer[left - 1].combinator) for left in fitting}
        open_ends = {each for each in open_ends if each[1] != ">"} | found
        here = here.parent
    return False


def _related(node: LexborNode, combinator: str, features: FeaturesOf) -> Iterator[LexborNode]:
    sideways = combinator in ("+", "~")
    here = _beside(node, features, back=True) if sideways else node.parent
    while here is not None:
        yield here
        if combinator in ("+", ">"):
            return
        here = _beside(here, features, back=True) if sideways else here.parent


def _beside(node: LexborNode, features: FeaturesOf, *, back: bool) -> LexborNode | None:
    here = node.prev if back else node.next
    while here is not None and not features(here).tag[:1].isalpha():
        here = here.prev if back else here.next
    return here


def _fits(compound: Compound, node: LexborNode, features: FeaturesOf) -> bool:
    element = features(node)
    return (
        compound.tag in (None, "*", element.tag)
        and compound.id in (None, element.attributes.get("id"))
        and compound.classes <= element.classes
        and (not compound.attributes or all(_has(each, element) for each in compound.attributes))
        and (not compound.places or all(_stands(each, node, element.tag, features) for each in compound.places))
        and not (compound.excluded and any(matches(each, node, features) for each in compound.excluded))
        and all(any(matches(each, node, features) for each in some) for some in compound.any_of)
        and (not compound.has or all(any(_finds(each, node, features) for each in some) for some in compound.has))
    )


def _stands(place: NthRule, node: LexborNode, tag: str, features: FeaturesOf) -> bool:
    count, here = 1, _beside(node, features, back=not place.from_end)
    while here is not None:
        count += not place.of_type or features(here).tag == tag
        here = _beside(here, features, back=not place.from_end)
    steps, rest = divmod(count - place.first, place.step) if place.step else (0, count - place.first)
    return rest == 0 and steps >= 0


def _finds(selector: Selector, node: LexborNode, features: FeaturesOf) -> bool:
    """Return whether a selector in `:has()` matches inside an element, or beside it for `+` and `~`."""
    if len(selector.compounds) < 2:
        return False
    inside = selector.compounds[1].combinator in (" ", ">")
    start = Selector((Compound(), *selector.compounds[1:]), selector.specificity)
    begin = node if inside else _beside(node, features, back=False)
    while begin is not None:
        for each in begin.traverse():
            if each.mem_id != node.mem_id and matches(start, each, features):
                return True
        begin = None if inside else _beside(begin, features, back=False)
    return False


def _has(test: AttributeTest, element: ElementFeatures) -> bool:
    if test.name not in element.attributes:
        return False
    return test.how is None or _OPERATORS[test.how](element.attributes[test.name] or "", test.value)


_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda value, wanted: value.lower() == wanted.lower(),
    "~=": lambda value, wanted: wanted in value.split(),
    "^=": lambda value, wanted: wanted != "" and value.startswith(wanted),
    "$=": lambda value, wanted: wanted != "" and value.endswith(wanted),
    "*=": lambda value, wanted: wanted != "" and wanted in value,
    "|=": lambda value, wanted: value == wanted or value.startswith(f"{wanted}-"),
}
