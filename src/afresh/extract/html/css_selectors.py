"""Simple CSS selectors, matched without the parser's own engine: that needs time without bound for some."""

import re
from collections.abc import Callable
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from afresh.extract.html.css_rules import MAX_SELECTOR_CHARS, unescape

MAX_COMPOUNDS = 6
MAX_ANCESTORS = 400

_NAME = r"(?:[-\w]|\\[0-9a-fA-F]{1,6}+[ \t\n\r\f]?+|\\[^0-9a-fA-F\n])++"
_SIMPLE = re.compile(
    rf"(?P<tag>\*|{_NAME})|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})"
    rf"|\[\s*+(?P<attribute>{_NAME})\s*+(?:(?P<how>[~|^$*]?=)\s*+(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s\]\"']++)\s*+(?:[is]\s*+)?)?\]"
    rf"|(?P<pseudo>::?[-\w]+(?:\([^()]*\))?)"
)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_ALWAYS = frozenset({":root", ":link", ":any-link", ":enabled"})  # pseudo-classes that are taken to hold
_NEGATION = re.compile(r":not\((.*)\)")


class Attribute(NamedTuple):
    """What a selector asks of an attribute."""

    name: str
    how: str | None
    value: str


class Compound(NamedTuple):
    """What a selector asks of one element."""

    tag: str | None = None
    id: str | None = None
    classes: frozenset[str] = frozenset()
    attributes: tuple[Attribute, ...] = ()
    excluded: tuple["Compound", ...] = ()
    child: bool = False  # the compound before it is that of its parent, else of any ancestor

    @property
    def css(self) -> str | None:
        """Return a selector for the parser's engine that matches at least what this one does."""
        if self.id and re.fullmatch(r"[A-Za-z][-\w]*", self.id):
            return f"#{self.id}"
        for name in sorted(self.classes):
            if re.fullmatch(r"[A-Za-z][-\w]*", name):
                return f".{name}"
        for each in self.attributes:
            if re.fullmatch(r"[a-z][-\w]*", each.name):
                return f"[{each.name}]"
        return self.tag if self.tag and re.fullmatch(r"[a-z][a-z0-9]*", self.tag) else None


class Selector(NamedTuple):
    """Compounds from the outermost to that of the element itself, and how specific they are."""

    compounds: tuple[Compound, ...]
    specificity: tuple[int, int, int]


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


def parse_selector(text: str) -> Selector | None:
    """Return a selector; None for one that asks what only a browser knows, or is no selector."""
    compounds: list[Compound] = []
    at, child = 0, False
    text = text.strip()
    if len(text) > MAX_SELECTOR_CHARS:
        return None
    while at < len(text):
        compound, at = _compound(text, at, child=child)
        if compound is None or len(compounds) >= MAX_COMPOUNDS:
            return None
        compounds.append(compound)
        if at == len(text):
            break
        combinator = _COMBINATOR.match(text, at)
        if combinator is None or combinator[1] in ("+", "~"):
            return None
        child, at = combinator[1] == ">", combinator.end()
    if not compounds:
        return None
    ids = sum(each.id is not None for each in compounds)
    classes = sum(len(each.classes) + len(each.attributes) + len(each.excluded) for each in compounds)
    tags = sum(each.tag not in (None, "*") for each in compounds)
    return Selector(tuple(compounds), (ids, classes, tags))


def _compound(text: str, at: int, *, child: bool) -> tuple[Compound | None, int]:
    tag = name = None
    classes: list[str] = []
    attributes: list[Attribute] = []
    excluded: list[Compound] = []
    begin = at
    while found := _SIMPLE.match(text, at):
        if found["tag"]:
            if at != begin:
                return None, at
            tag = unescape(found["tag"]).lower()
        elif found["id"]:
            name = unescape(found["id"])
        elif found["class"]:
            classes.append(unescape(found["class"]))
        elif found["attribute"]:
            value = unescape((found["value"] or "").strip("\"'"))
            attributes.append(Attribute(unescape(found["attribute"]).lower(), found["how"], value))
        elif negation := _NEGATION.fullmatch(found["pseudo"]):
            other, end = _compound(negation[1].strip(), 0, child=False)
            if other is None or end != len(negation[1].strip()):
                return None, at
            excluded.append(other)
        elif found["pseudo"] not in _ALWAYS:
            return None, at
        at = found.end()
    if at == begin:
        return None, at
    return Compound(tag, name, frozenset(classes), tuple(attributes), tuple(excluded), child), at


def matches(selector: Selector, node: LexborNode, features: Callable[[LexborNode], Features]) -> bool:
    """Return whether an element is matched; from the element upwards, each ancestor is looked at once."""
    *outer, last = selector.compounds
    if not _fits(last, features(node)):
        return False
    open_ends = {(len(outer), last.child)}  # how many compounds are left, and whether for the parent alone
    here = node.parent
    for _ in range(MAX_ANCESTORS):
        if (0, False) in open_ends or (0, True) in open_ends:
            return True
        if here is None or not open_ends:
            return False
        element = features(here)
        found = {
            (left - 1, outer[left - 1].child) for left, _ in open_ends if _fits(outer[left - 1], element)
        }
        open_ends = {(left, child) for left, child in open_ends if not child} | found
        here = here.parent
    return False


def _fits(compound: Compound, element: Features) -> bool:
    if compound.tag not in (None, "*", element.tag):
        return False
    if compound.id is not None and element.attributes.get("id") != compound.id:
        return False
    if not compound.classes <= element.classes:
        return False
    if not all(_has(each, element) for each in compound.attributes):
        return False
    return not any(_fits(each, element) for each in compound.excluded)


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
