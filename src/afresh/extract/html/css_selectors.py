"""CSS selectors, matched without the parser's own engine: that needs time without bound for some."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from afresh.extract.html.css_rules import MAX_SELECTOR_CHARS, split_outside, unescape

MAX_COMPOUNDS = 12
MAX_ANCESTORS = 400
MAX_DEPTH = 6  # of selectors inside selectors

_NAME = r"(?:[-\w]|\\[0-9a-fA-F]{1,6}+[ \t\n\r\f]?+|\\[^0-9a-fA-F\n])++"
_SIMPLE = re.compile(
    rf"(?P<tag>\*|{_NAME})|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})"
    rf"|\[\s*+(?P<attribute>{_NAME})\s*+(?:(?P<how>[~|^$*]?=)\s*+(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s\]\"']++)\s*+(?:[is]\s*+)?)?\]"
    rf"|(?P<pseudo>::?[-\w]+)(?P<open>\()?"
)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_COUNTED = re.compile(r"(?:([-+]?\d*+)n)?\s*+([-+]?\s*+\d++)?")
_ALWAYS = frozenset((
    ":root", ":link", ":any-link", ":-webkit-any-link", ":enabled", ":defined", ":read-only",
))  # fmt: skip
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


class Attribute(NamedTuple):
    """What a selector asks of an attribute."""

    name: str
    how: str | None
    value: str


class Place(NamedTuple):
    """What a selector asks of the place among its siblings: every `step`-th from `first` on."""

    step: int
    first: int
    from_end: bool
    of_type: bool


class Compound(NamedTuple):
    """What a selector asks of one element."""

    tag: str | None = None
    id: str | None = None
    classes: frozenset[str] = frozenset()
    attributes: tuple[Attribute, ...] = ()
    excluded: tuple["Selector", ...] = ()
    any_of: tuple[tuple["Selector", ...], ...] = ()  # one of each
    has: tuple[tuple["Selector", ...], ...] = ()  # one of each is inside or beside it
    places: tuple[Place, ...] = ()
    combinator: str = ""  # how the compound before it is related: " ", ">", "+" or "~"

    @property
    def key(self) -> str:
        """Return what every element that it matches has: id, class, attribute or tag; "*" for nothing."""
        if self.id is not None:
            return f"#{self.id}"
        if self.classes:
            return f".{min(self.classes)}"
        if self.attributes:
            return f"[{self.attributes[0].name}"
        return self.tag or "*"


class Selector(NamedTuple):
    """Compounds from the outermost to that of the element itself, and how specific they are."""

    compounds: tuple[Compound, ...]
    specificity: tuple[int, int, int]
    doubtful: bool = False  # it asks more than is understood: it matches at least what a browser does

    @property
    def keys(self) -> frozenset[str]:
        """Return keys one of which every element that it matches has."""
        last = self.compounds[-1]
        if last.key == "*" and last.any_of:
            return frozenset().union(*(each.keys for each in last.any_of[0]))
        return frozenset({last.key})


class Features(NamedTuple):
    """An element as selectors see it."""

    tag: str
    attributes: dict[str, str | None]
    classes: frozenset[str]

    @classmethod
    def of(cls, node: LexborNode) -> "Features":
        """Return the features of an element."""
        attributes = node.attributes
        return cls(node.tag or "", attributes, frozenset((attributes.get("class") or "").split()))


FeaturesOf = Callable[[LexborNode], Features]


def parse_selector(text: str, depth: int = 0) -> Selector | None:
    """Return a selector; None for one that matches no element as it is shown at first, or is no selector."""
    text = text.strip()
    if not text or len(text) > 2 * MAX_SELECTOR_CHARS or depth > MAX_DEPTH:
        return None
    reader = _Reader(text, depth)
    compounds: list[Compound] = []
    combinator = ""
    while not reader.at_end():
        compound = reader.compound(combinator)
        if compound is None or len(compounds) >= MAX_COMPOUNDS:
            return None
        compounds.append(compound)
        if reader.at_end():
            break
        combinator = reader.combinator()
        if not combinator:
            return None
    ids = sum(each.id is not None for each in compounds)
    classes = sum(len(each.classes) + len(each.attributes) + len(each.places) for each in compounds)
    tags = sum(each.tag not in (None, "*") for each in compounds)
    ids, classes, tags = map(sum, zip((ids, classes, tags), *reader.inner, strict=True))
    return Selector(tuple(compounds), (ids, classes, tags), reader.doubtful) if compounds else None


class _Reader:
    """Reads the compounds of one selector."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._depth = depth
        self._at = 0
        self.doubtful = False
        self.inner: list[tuple[int, int, int]] = []  # how specific selectors inside are

    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def combinator(self) -> str:
        found = _COMBINATOR.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[1] or " "

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
                asked = Attribute(unescape(found["attribute"]).lower(), found["how"], value)
                parts = parts._replace(attributes=(*parts.attributes, asked))
            else:
                more = self._pseudo(parts, found["pseudo"].lower(), argument)
                if more is None:
                    return None
                parts = more
        return parts if self._at > begin else None

    def _argument(self) -> str:
        """Return what is in the brackets that were just opened."""
        begin, depth = self._at, 1
        while self._at < len(self._text) and depth:
            depth += {"(": 1, ")": -1}.get(self._text[self._at], 0)
            self._at += 1
        return self._text[begin : self._at - (not depth)].strip()

    def _pseudo(self, parts: Compound, name: str, argument: str) -> Compound | None:
        if name.startswith("::") or name in _NEVER:
            return None
        if name in _ALWAYS:
            return parts
        if name in _ATTRIBUTES:
            return parts._replace(attributes=(*parts.attributes, Attribute(name[1:], None, "")))
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
            self.doubtful = self.doubtful or not plain  # where the rest of it begins is not looked at
            return parts._replace(has=(*parts.has, found)) if found else None
        if name.startswith(":-"):
            return None
        self.doubtful = True
        return parts

    def _selectors(self, argument: str, *, weighs: bool = True) -> tuple[Selector, ...]:
        read = (parse_selector(each, self._depth + 1) for each in split_outside(argument, ","))
        found = tuple(each for each in read if each is not None)
        self.doubtful = self.doubtful or any(each.doubtful for each in found)
        if found and weighs:
            self.inner.append(max(each.specificity for each in found))
        return found


def _place(name: str, argument: str) -> tuple[Place, ...]:
    of_type = name.endswith("type")
    if not name.startswith(":nth"):
        ends = {":first": (False,), ":last": (True,), ":only": (False, True)}[name.partition("-")[0]]
        return tuple(Place(0, 1, end, of_type) for end in ends)
    argument = {"even": "2n", "odd": "2n+1"}.get(argument.lower(), argument.lower())
    found = _COUNTED.fullmatch(argument)
    if found is None or not argument:
        return ()
    step = found[1]
    count = 0 if step is None else int(f"{step}1" if step in ("", "+", "-") else step[:9])
    first = int((found[2] or "0").replace(" ", "")[:9])
    return (Place(count, first, "last" in name, of_type),)


def matches(selector: Selector, node: LexborNode, features: FeaturesOf) -> bool:
    """Return whether an element is matched; `features` is asked once for each element that is looked at."""
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
    """Look at each ancestor once."""
    open_ends = {(len(outer), last.combinator)}  # how many compounds are left, and where the next is
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
    """Yield the elements that the compound before may match."""
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
    if compound.tag not in (None, "*", element.tag):
        return False
    if compound.id is not None and element.attributes.get("id") != compound.id:
        return False
    if not compound.classes <= element.classes:
        return False
    if compound.attributes and not all(_has(each, element) for each in compound.attributes):
        return False
    if compound.places and not all(_stands(each, node, element.tag, features) for each in compound.places):
        return False
    if compound.excluded and any(matches(each, node, features) for each in compound.excluded):
        return False
    if not all(any(matches(each, node, features) for each in some) for some in compound.any_of):
        return False
    return not compound.has or all(
        any(_finds(each, node, features) for each in some) for some in compound.has
    )


def _stands(place: Place, node: LexborNode, tag: str, features: FeaturesOf) -> bool:
    count, here = 1, _beside(node, features, back=not place.from_end)
    while here is not None:
        count += not place.of_type or features(here).tag == tag
        here = _beside(here, features, back=not place.from_end)
    if place.step == 0:
        return count == place.first
    return (count - place.first) % place.step == 0 and (count - place.first) // place.step >= 0


def _finds(selector: Selector, node: LexborNode, features: FeaturesOf) -> bool:
    """Return whether an element has what `:has()` asks for: inside, or for `+` and `~` beside it."""
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


def _has(asked: Attribute, element: Features) -> bool:
    if asked.name not in element.attributes:
        return False
    value = element.attributes[asked.name] or ""
    match asked.how:
        case None:
            return True
        case "=":
            return value.lower() == asked.value.lower()
        case "~=":
            return asked.value in value.split()
        case "^=":
            return bool(asked.value) and value.startswith(asked.value)
        case "$=":
            return bool(asked.value) and value.endswith(asked.value)
        case "*=":
            return bool(asked.value) and asked.value in value
        case _:
            return value == asked.value or value.startswith(f"{asked.value}-")
