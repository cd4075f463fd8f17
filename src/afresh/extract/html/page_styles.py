"""The styles of a page as far as they decide what a reader sees: its `<style>` rules and `style` attributes.

Style sheets of their own files are not fetched; a browser knows them (`crawl.render`).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html.css_rules import Declaration, parse_declarations, parse_sheet, split_outside
from afresh.extract.html.css_selectors import Compound, Features, Selector, matches, parse_selector
from afresh.extract.html.visibility import Style, hidden_by, is_valid, text_colour

MAX_CSS_CHARS = 3_000_000  # of all `<style>` elements of a page
MAX_SELECTORS = 60_000  # of rules with a property that matters here
MAX_STEPS = 100_000  # elements that are compared with selectors, for one page
MAX_EXPANDED_CHARS = 4_000  # of a value with its variables

_PROPERTIES = frozenset((
    "display", "visibility", "content-visibility", "opacity", "filter", "-webkit-filter", "font",
    "font-size", "letter-spacing", "line-height", "text-indent", "text-shadow", "color",
    "-webkit-text-fill-color", "background", "background-color", "background-clip",
    "-webkit-background-clip", "position", "left", "top", "right", "bottom", "inset", "margin",
    "margin-left", "margin-top", "translate", "scale", "transform", "-webkit-transform", "width",
    "height", "max-width", "max-height", "overflow", "overflow-x", "overflow-y", "clip", "clip-path",
    "-webkit-clip-path", "contain", "contain-intrinsic-size",
    "contain-intrinsic-height", "min-height", "aspect-ratio", "zoom", "rotate", "inset-inline", "inset-block",
    "margin-inline", "margin-block", "mask", "mask-image", "-webkit-mask", "-webkit-mask-image",
))  # fmt: skip
_PHYSICAL = {  # of properties that follow the direction of writing: left to right, top to bottom
    "block-size": "height", "inline-size": "width", "max-block-size": "max-height",
    "max-inline-size": "max-width", "min-block-size": "min-height", "inset-inline-start": "left",
    "inset-inline-end": "right", "inset-block-start": "top", "inset-block-end": "bottom",
    "margin-inline-start": "margin-left", "margin-block-start": "margin-top", "overflow-inline": "overflow-x",
    "overflow-block": "overflow-y", "contain-intrinsic-block-size": "contain-intrinsic-height",
}  # fmt: skip
_HIDING = re.compile(
    r"none|hidden|collapse|opacity|\b0|-\d|\d{4}|clip|mask|color|fill|scale|font|filter|indent|zoom|contain|rotate|matrix|var\(|\\",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"var\(\s*(--[-\w]+)\s*(?:,([^()]*))?\)")

_Rule = tuple[Selector, tuple[Declaration, ...], int]
_Rank = tuple[bool, bool, tuple[int, int, int], int]
_INLINE = (0, 0, 0)
_MOST = (1_000, 0, 0)


class _NoStepsLeftError(Exception):
    """All steps for one page are spent."""


class PageStyles:
    """Answers which of the properties that matter here hold for an element."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._count = 0
        self._by_key: dict[str, list[_Rule]] = defaultdict(list)
        self._hiding: set[str] = set()  # keys of rules that may hide
        self._sure: dict[str, tuple[Declaration, ...]] = {}  # what hides by a class or an id
        self._inline: dict[str, tuple[Declaration, ...]] = {}
        self._known: dict[int, Style] = {}
        self._elements: dict[int, Features] = {}
        self._root: dict[str, str] = {}
        self._steps_left = MAX_STEPS
        self.is_cut = False  # there is more than is read: what it hides may be seen as shown
        chars_left = MAX_CSS_CHARS
        for sheet in tree.css("style"):
            text = sheet.text() or ""
            self.is_cut = self.is_cut or len(text) > chars_left
            self._add_sheet(text[:chars_left], sheet.attributes.get("media") or "")
            chars_left = max(0, chars_left - len(text))

    def suspects(self) -> Iterator[LexborNode]:
        """Yield elements that a `style` attribute or a rule may hide, some of them more than once."""
        yield from self._tree.css("[style], font[color]")
        if not self._hiding:
            return
        only_named = all(key[0] in "#." for key in self._hiding)
        for node in self._tree.css("[id], [class]" if only_named else "*"):
            if not self._hiding.isdisjoint(_keys(Features.of(node))):
                yield node

    def of(self, node: LexborNode) -> Style:
        """Return the values that hold for an element, not counting what it inherits."""
        known = self._known.get(node.mem_id)
        if known is None:
            known = self._known[node.mem_id] = self._compute(node)
        return known

    def _add_sheet(self, text: str, media: str) -> None:
        if media.strip().lower() == "print" or not _HIDING.search(text):
            return
        for rule in parse_sheet(text):
            declarations = _that_matter(rule.declarations)
            if not declarations:
                continue
            hides = any(_may_hide(each, by_colour=True) for each in declarations)
            sure = tuple(each for each in declarations if _may_hide(each, by_colour=False))
            for part in split_outside(rule.selectors, ","):
                if self._count >= MAX_SELECTORS:
                    self.is_cut = True
                    return
                self._count += 1
                selector = parse_selector(part)
                if selector is not None:
                    # What is not understood may hide, but it does not show what others hide.
                    self._add_rule(selector, sure if selector.doubtful else declarations, sure, hides=hides)

    def _add_rule(
        self,
        selector: Selector,
        declarations: tuple[Declaration, ...],
        sure: tuple[Declaration, ...],
        *,
        hides: bool,
    ) -> None:
        last, keys = selector.compounds[-1], selector.keys
        if selector.doubtful and (not sure or "*" in keys):
            self.is_cut = self.is_cut or bool(sure)
            return
        for key in keys:
            self._by_key[key].append((selector, declarations, self._count))
            if sure and key[0] in "#.":
                self._sure.setdefault(key, sure)
        if hides:
            self._hiding |= keys
        if last._replace(tag=None, combinator="") == Compound() and last.tag in (None, "*", "html"):
            self._root |= {each.name: each.value for each in declarations if each.name.startswith("--")}

    def _compute(self, node: LexborNode) -> Style:
        held: dict[str, tuple[_Rank, str]] = {}
        element = Features.of(node)
        try:
            for selector, declarations, order in self._rules_for(element):
                if matches(selector, node, self._features):
                    _lay(held, declarations, inline=False, specificity=selector.specificity, order=order)
        except _NoStepsLeftError:  # from here on every class and id that may hide does
            self.is_cut = True
            for key in _keys(element):
                _lay(held, self._sure.get(key, ()), inline=False, specificity=_MOST, order=0)
        if style := element.attributes.get("style"):
            if style not in self._inline:
                self._inline[style] = _that_matter(parse_declarations(style))
            _lay(held, self._inline[style], inline=True, specificity=_INLINE, order=0)
        values = {name: value for name, (_, value) in held.items()}
        return self._with_variables(values) if any("var(" in value for value in values.values()) else values

    def _features(self, node: LexborNode) -> Features:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _NoStepsLeftError
        found = self._elements.get(node.mem_id)
        if found is None:
            found = self._elements[node.mem_id] = Features.of(node)
        return found

    def _rules_for(self, element: Features) -> Iterable[_Rule]:
        if self._by_key:
            for key in _keys(element):
                yield from self._by_key.get(key, ())

    def _with_variables(self, values: dict[str, str]) -> dict[str, str]:
        known = {**self._root, **values}
        for _ in range(3):
            values = {
                name: _VARIABLE.sub(lambda found: known.get(found[1], found[2] or ""), value)[
                    :MAX_EXPANDED_CHARS
                ].strip()
                for name, value in values.items()
            }
        return values


def _lay(
    held: dict[str, tuple[_Rank, str]],
    declarations: Iterable[Declaration],
    *,
    inline: bool,
    specificity: tuple[int, int, int],
    order: int,
) -> None:
    """Lay declarations over those that hold so far, by the rules of the cascade."""
    for name, value, important in declarations:
        rank = (important, inline, specificity, order)
        if (name not in held or held[name][0] <= rank) and is_valid(name, value):
            held[name] = rank, value


def _keys(element: Features) -> Iterator[str]:
    """Yield the keys of selectors that may match an element; see `Selector.keys`."""
    if name := element.attributes.get("id"):
        yield f"#{name}"
    yield from (f".{each}" for each in element.classes)
    yield from (f"[{each}" for each in element.attributes)
    yield element.tag
    yield "*"


def _that_matter(declarations: Iterable[Declaration]) -> tuple[Declaration, ...]:
    named = (each._replace(name=_PHYSICAL.get(each.name, each.name)) for each in declarations)
    return tuple(each for each in named if each.name in _PROPERTIES or each.name.startswith("--"))


@lru_cache(maxsize=4_096)
def _may_hide(declaration: Declaration, *, by_colour: bool) -> bool:
    """Return whether a declaration hides an element, maybe together with others."""
    style = {declaration.name: declaration.value}
    if "var(" in declaration.value or (by_colour and text_colour(style) is not None):
        return True
    return hidden_by({"position": "absolute", "overflow": "hidden", **style}) is not None
