"""Remove text that readers of a page do not see, because it may contain instructions for AI agents.

External style sheets are not fetched; only rendering in a browser applies them (`crawl.render`).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html import css, visibility
from afresh.extract.html.css import Compound, Declaration, ElementFeatures, Selector, matches
from afresh.extract.html.main_content import around, detach
from afresh.extract.html.visibility import Colour, HiddenBy, Style, hidden_by, is_valid, text_colour

MAX_CSS_CHARS = 3_000_000  # in all `<style>` elements of a page
MAX_SELECTORS = 60_000  # selectors of rules with a property in `_PROPERTIES`
MAX_STEPS = 100_000  # comparisons of an element with a selector, per page
MAX_NESTED_VARIABLES = 3
MAX_EXPANDED_CHARS = 4_000  # length of a value with its variables replaced

_PROPERTIES = frozenset((
    "display", "visibility", "content-visibility", "opacity", "filter", "-webkit-filter", "font", "font-size",
    "letter-spacing", "line-height", "text-indent", "text-shadow", "color", "-webkit-text-fill-color", "background",
    "background-color", "background-clip", "-webkit-background-clip", "position", "left", "top", "right", "bottom",
    "inset", "margin", "margin-left", "margin-top", "translate", "scale", "transform", "-webkit-transform", "width",
    "height", "max-width", "max-height", "overflow", "overflow-x", "overflow-y", "clip", "clip-path",
    "-webkit-clip-path", "contain", "contain-intrinsic-size", "contain-intrinsic-height", "min-height", "aspect-ratio",
    "zoom", "rotate", "inset-inline", "inset-block", "margin-inline", "margin-block", "mask", "mask-image",
    "-webkit-mask", "-webkit-mask-image",
))  # fmt: skip
_PHYSICAL = {  # for left-to-right, top-to-bottom text
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
_Place = tuple[bool, tuple[int, int, int], int]  # is in a style attribute, specificity, position
_Rank = tuple[bool, _Place]


class _NoStepsLeftError(Exception):
    """Raised if matching selectors on a page would exceed `MAX_STEPS`."""


class PageStyles:
    """Computes for each element the style properties that can make it invisible."""

    def __init__(self, tree: LexborHTMLParser, lower_html: bytes) -> None:
        self._tree = tree
        self._count = 0
        self._by_key: dict[str, list[_Rule]] = defaultdict(list)
        self._variables: dict[str, list[_Rule]] = defaultdict(list)
        self._hiding: set[str] = set()  # keys of rules that may hide elements
        self._sure: dict[str, tuple[Declaration, ...]] = {}  # class or id → declarations that hide elements
        self._inline: dict[str, tuple[Declaration, ...]] = {}
        self._known: dict[int, Style] = {}
        self._elements: dict[int, ElementFeatures] = {}
        self._around: dict[int, frozenset[str]] = {}
        self._root: dict[str, str] = {}
        self._steps_left = MAX_STEPS
        self.is_cut = False  # the styles exceed a limit, so some hidden text may count as visible
        chars_left = MAX_CSS_CHARS
        for sheet in tree.css("style") if b"<style" in lower_html else ():
            text = sheet.text() or ""
            self.is_cut = self.is_cut or len(text) > chars_left
            self._add_sheet(text[:chars_left], sheet.attributes.get("media") or "")
            chars_left = max(0, chars_left - len(text))

    def suspects(self) -> Iterator[LexborNode]:
        yield from self._tree.css("[style], font[color]")
        if not self._hiding:
            return
        only_named = all(key[0] in "#." for key in self._hiding)
        for node in self._tree.css("[id], [class]" if only_named else "*"):
            if not self._hiding.isdisjoint(_keys(ElementFeatures.of(node))):
                yield node

    def of(self, node: LexborNode) -> Style:
        """Return those style properties of an element that matter for its visibility, without inherited ones."""
        known = self._known.get(node.mem_id)
        if known is None:
            known = self._known[node.mem_id] = self._compute(node)
        return known

    def _add_sheet(self, text: str, media: str) -> None:
        if media.strip().lower() == "print" or not _HIDING.search(text):
            return
        for selectors, declared in css.parse_sheet(text):
            matter = _that_matter(declared)
            hides = any(_may_hide(each, by_colour=True) for each in matter)
            sure = tuple(each for each in matter if _may_hide(each, by_colour=False))
            for part in css.split_outside(selectors, ",") if matter else ():
                if self._count >= MAX_SELECTORS:
                    self.is_cut = True
                    return
                self._count += 1
                selector = css.parse_selector(part)
                if selector is None:
                    continue
                last, keys = selector.compounds[-1], selector.keys
                if selector.doubtful and (not sure or "*" in keys):
                    self.is_cut = self.is_cut or bool(sure)
                    continue
                # A selector with unsupported parts may hide elements, but never makes hidden ones visible.
                declarations = sure if selector.doubtful else matter
                plain = tuple(each for each in declarations if not each.name.startswith("--"))
                variables = tuple(each for each in declarations if each.name.startswith("--"))
                for key in keys:
                    if plain:
                        self._by_key[key].append((selector, plain, self._count))
                    if variables:
                        self._variables[key].append((selector, variables, self._count))
                    if sure and key[0] in "#.":
                        self._sure.setdefault(key, sure)
                self._hiding |= keys if hides else set()
                if last._replace(tag=None, combinator="") == Compound() and last.tag in (None, "*", "html"):
                    self._root |= {name: value for name, value, _ in declarations if name.startswith("--")}

    def _compute(self, node: LexborNode) -> Style:
        held: dict[str, tuple[_Rank, str]] = {}
        element = ElementFeatures.of(node)
        self._apply(self._by_key, held, element, node)
        if style := element.attributes.get("style"):
            if style not in self._inline:
                self._inline[style] = _that_matter(css.parse_declarations(style))
            _lay(held, self._inline[style], (True, (0, 0, 0), 0))
        if any("var(" in value for _, value in held.values()):
            self._apply(self._variables, held, element, node)
            return self._with_variables({name: value for name, (_, value) in held.items()})
        return {name: value for name, (_, value) in held.items()}

    def _apply(
        self,
        rules: dict[str, list[_Rule]],
        held: dict[str, tuple[_Rank, str]],
        element: ElementFeatures,
        node: LexborNode,
    ) -> None:
        """Set in `held` what the rules that match an element declare."""
        try:
            for key in _keys(element) if rules else ():
                for selector, declarations, order in rules.get(key, ()):
                    if self._may_match(selector, node) and matches(selector, node, self._features):
                        _lay(held, declarations, (False, selector.specificity, order))
        except _NoStepsLeftError:  # from now on, apply every declaration for a class or id that hides elements
            self.is_cut = True
            for key in _keys(element):
                _lay(held, self._sure.get(key, ()), (False, (1_000, 0, 0), 0))

    def _may_match(self, selector: Selector, node: LexborNode) -> bool:
        """Return False if no ancestor of an element has a name that the selector needs there."""
        needed = selector.outer_keys
        parent = node.parent if needed else None
        return parent is None or needed <= self._keys_around(parent)

    def _keys_around(self, node: LexborNode) -> frozenset[str]:
        """Return the keys of an element and its ancestors."""
        new: list[LexborNode] = []
        found = frozenset[str]()
        for here in around(node):
            if here.mem_id in self._around:
                found = self._around[here.mem_id]
                break
            new.append(here)
        for here in reversed(new):
            found = self._around[here.mem_id] = found.union(_keys(ElementFeatures.of(here)))
        return found

    def _features(self, node: LexborNode) -> ElementFeatures:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _NoStepsLeftError
        found = self._elements.get(node.mem_id)
        if found is None:
            found = self._elements[node.mem_id] = ElementFeatures.of(node)
        return found

    def _with_variables(self, values: dict[str, str]) -> dict[str, str]:
        def value_of(found: re.Match[str]) -> str:
            return values.get(found[1], self._root.get(found[1], found[2] or ""))

        for name, value in values.items():
            if "var(" in value and not name.startswith("--"):
                for _ in range(MAX_NESTED_VARIABLES):
                    values[name] = _VARIABLE.sub(value_of, values[name])[:MAX_EXPANDED_CHARS].strip()
        return values


def _lay(held: dict[str, tuple[_Rank, str]], declarations: Iterable[Declaration], place: _Place) -> None:
    """Set the declared properties in `held`, except those set with a higher precedence than `place`."""
    for name, value, important in declarations:
        rank = (important, place)
        if (name not in held or held[name][0] <= rank) and is_valid(name, value):
            held[name] = rank, value


def _keys(element: ElementFeatures) -> Iterator[str]:
    """Yield the id, classes, attributes and tag of an element in the form in which `Selector.keys` names them."""
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
    """Return whether a declaration can hide an element, alone or with others; `by_colour`: count text colours, too."""
    style = {declaration.name: declaration.value}
    if "var(" in declaration.value or (by_colour and text_colour(style) is not None):
        return True
    return hidden_by({"position": "absolute", "overflow": "hidden", **style}) is not None


MARK = "data-afresh-hidden"  # set by sources/web/browser/page.py on elements that a browser does not show
MAX_CONTROLS = 2_000
MAX_PANELS_IN_PANELS = 5
MAX_INSIDE = 2_000  # elements inside a hidden element that are checked for being visible again
MAX_ASKED = 50_000  # the same for a whole page
MAX_AROUND = 60  # ancestors of a text that are checked for its background colour

NEVER_VISIBLE = ", ".join((
    "template", "noscript", "datalist", "dialog:not([open])", "[popover]", "rp", "noembed", "noframes", "canvas",
    ".sr-only", ".visually-hidden", ".visuallyhidden", ".screen-reader-text", "svg title", "svg desc", "svg metadata",
))  # fmt: skip
_CONTROLS = ", ".join((
    "[aria-controls]", "[data-target]", "[data-bs-target]", "[data-tab]", "[data-toggle]",
    "button[onclick]", "a[onclick]", "[role=tab]",
))  # fmt: skip
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "data-tab", "onclick", "href")
_WORD = re.compile(r"[-\w]+")
_ROOTS = frozenset({"html", "head", "body"})
_ABSOLUTE_SIZES = ("px", "rem", "pt", "vw", "medium", "large", "small")


class RemovedText(NamedTuple):
    some: bool  # whether anything was removed
    by_styles: bool = False  # whether some of the removed text was hidden by styles
    is_cut: bool = False  # whether the styles exceed a limit, so that hidden text may remain


def drop_hidden(tree: LexborHTMLParser, lower_html: bytes, rare: Collection[str], *, rendered: bool) -> RemovedText:
    """Remove and return elements that no reader sees; `lower_html` and `rare` tags show which searches to skip."""
    never_visible = tree.css(NEVER_VISIBLE) if rare else []
    for node in never_visible:
        detach(node)
    some = bool(never_visible)
    styled = not rendered and tree.css_first("style, [style], font[color]") is not None
    styles = PageStyles(tree, lower_html) if styled else None
    controls = _Controls(tree, styles, rendered=rendered)
    for node in tree.css(f"[{MARK}]" if rendered else "[hidden]") if rendered or rare else ():
        switched = not rendered or node.attributes.get(MARK) == "switched"
        if node.tag not in _ROOTS and not (switched and controls.can_open(node)):
            detach(node)
            some = True
    if styles is None:
        return RemovedText(some)
    by_styles = _Pruning(tree, controls, styles).drop()
    return RemovedText(some or by_styles, by_styles, styles.is_cut)


class _Controls:
    """Finds hidden elements that a reader can open: tab panels, and those that a visible control refers to."""

    def __init__(self, tree: LexborHTMLParser, styles: PageStyles | None, *, rendered: bool) -> None:
        self._tree = tree
        self._styles = styles
        self._rendered = rendered
        self._named: set[str] | None = None
        self._has_tabs = False

    def can_open(self, node: LexborNode) -> bool:
        named = self._names()
        if node.attributes.get("role") == "tabpanel":
            return self._has_tabs
        return (node.attributes.get("id") or "") in named

    def _names(self) -> set[str]:
        if self._named is None:
            self._named = set()
            controls = self._tree.css(_CONTROLS)[:MAX_CONTROLS]
            waiting = [(control, self._hidden_around(control)) for control in controls]
            for _ in range(MAX_PANELS_IN_PANELS):
                closed = []
                for control, hidden in waiting:
                    if not all(map(self.can_open, hidden)):
                        closed.append((control, hidden))
                        continue
                    attributes = control.attributes
                    self._has_tabs = self._has_tabs or attributes.get("role") == "tab"
                    for name in _REFERENCES:
                        self._named.update(_WORD.findall((attributes.get(name) or "")[:500]))
                if len(closed) == len(waiting):
                    break
                waiting = closed
        return self._named

    def _hidden_around(self, control: LexborNode) -> list[LexborNode]:
        mark, styles = MARK if self._rendered else "hidden", self._styles
        inside = takewhile(lambda here: here.tag not in _ROOTS, islice(around(control), MAX_AROUND))
        return [here for here in inside if mark in here.attributes or (styles and hidden_by(styles.of(here)))]


class _Pruning:
    def __init__(self, tree: LexborHTMLParser, controls: _Controls, styles: PageStyles) -> None:
        self._tree = tree
        self._controls = controls
        self._styles = styles
        self._plain = tree.css_first("link[rel~=stylesheet]") is None  # no external style sheet can set backgrounds
        self._backgrounds: dict[int, Colour | None] = {}
        self._asked = 0

    def drop(self) -> bool:
        dropped, seen = False, set()
        for node in self._styles.suspects():
            if node.mem_id in seen or node.tag in _ROOTS or node.tag in ("style", "script"):
                continue
            seen.add(node.mem_id)
            style = self._styles.of(node)
            hidden = hidden_by(style) or self._melts(node, style)
            if hidden is None or (hidden.switched and self._controls.can_open(node)):
                continue
            if "katex-mathml" in (node.attributes.get("class") or "").split():  # a formula
                continue
            dropped = True
            if not hidden.inherited or not self._drop_around(node, hidden):
                detach(node)
        return dropped

    def _melts(self, node: LexborNode, style: Style) -> HiddenBy | None:
        """Return how text is hidden if it has the same colour as its background, else None."""
        colour = text_colour(style) or visibility.colour_of((node.attributes.get("color") or "").lower())
        if colour is None:
            return None
        behind = self._behind(node)
        return HiddenBy("color", inherited=True) if behind is not None and colour.is_like(behind) else None

    def _behind(self, node: LexborNode) -> Colour | None:
        passed: list[int] = []
        found: Colour | None = visibility.WHITE if self._plain else None
        for here in islice(around(node), MAX_AROUND):
            if here.mem_id in self._backgrounds:
                found = self._backgrounds[here.mem_id]
                break
            passed.append(here.mem_id)
            if here.tag in ("pre", "code"):  # code themes are usually in external style sheets
                found = visibility.background_of(self._styles.of(here))
                break
            bgcolor = (here.attributes.get("bgcolor") or "").lower()
            own = visibility.background_of(self._styles.of(here)) or visibility.colour_of(bgcolor)
            if own is not None:
                found = own
                break
        self._backgrounds |= dict.fromkeys(passed, found)
        return found

    def _drop_around(self, node: LexborNode, hidden: HiddenBy) -> bool:
        """Remove the content of a hidden element except its visible parts; if there are none, only return False."""
        inside = list(islice(node.traverse(), min(MAX_INSIDE, max(0, MAX_ASKED - self._asked))))
        self._asked += len(inside)
        undoing = [each for each in inside if each.mem_id != node.mem_id and self._undoes(each, hidden)]
        if not undoing:
            return False
        kept: set[int] = set()
        for each in undoing:
            kept.update(here.mem_id for here in takewhile(lambda here: here.mem_id != node.mem_id, around(each)))
        _thin(node, kept, {each.mem_id for each in undoing})
        return True

    def _undoes(self, node: LexborNode, hidden: HiddenBy) -> bool:
        style = self._styles.of(node)
        match hidden.by:
            case "visibility":
                return style.get("visibility") == "visible"
            case "font-size":
                size = visibility.font_size(style)
                value = style.get("font-size", style.get("font", ""))
                absolute = any(unit in value for unit in _ABSOLUTE_SIZES)
                return absolute and (size is None or size > visibility.TINY_FONT_PX)
            case _:
                is_coloured = hidden.by == "color" and text_colour(style) is not None
                return is_coloured and self._melts(node, style) is None


def _thin(node: LexborNode, kept: set[int], tops: set[int]) -> None:
    for child in list(node.iter(include_text=True)):
        if child.mem_id not in kept:
            detach(child)
        elif child.mem_id not in tops:
            _thin(child, kept, tops)
