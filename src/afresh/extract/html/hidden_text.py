"""Text that a reader does not see: taken off a page before it is read, so that it reaches no agent."""

import re
from itertools import islice
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html.css_values import WHITE, Colour, colour_of
from afresh.extract.html.noise import detach
from afresh.extract.html.page_styles import PageStyles
from afresh.extract.html.visibility import (
    TINY_FONT_PX,
    Hidden,
    Style,
    background_of,
    font_size,
    hidden_by,
    text_colour,
)

MARK = "data-afresh-hidden"  # what a browser does not show, marked by sources/web/browser/scripts.py
MAX_CONTROLS = 2_000
MAX_PANELS_IN_PANELS = 5
MAX_INSIDE = 2_000  # elements inside one that are asked whether they undo what hides it
MAX_ASKED = 50_000  # of those, for one page
MAX_AROUND = 60  # elements around text that may have a background

NEVER_SHOWN = ", ".join((
    "template", "noscript", "datalist", "dialog:not([open])", "[popover]", "rp", "noembed", "noframes",
    "canvas", ".sr-only", ".visually-hidden", ".visuallyhidden", ".screen-reader-text", "svg title",
    "svg desc", "svg metadata",
))  # fmt: skip
_CONTROLS = ", ".join((
    "[aria-controls]", "[data-target]", "[data-bs-target]", "[data-tab]", "[data-toggle]",
    "button[onclick]", "a[onclick]", "[role=tab]",
))  # fmt: skip
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "data-tab", "onclick", "href")
_WORD = re.compile(r"[-\w]+")
_ROOTS = frozenset({"html", "head", "body"})
_FORMULAS = frozenset({"katex-mathml"})


class Dropped(NamedTuple):
    """What was taken off a page."""

    some: bool  # whether there was anything to take off
    by_styles: bool  # whether styles hid some of it
    is_cut: bool = False  # whether the styles are more than is read, so that hidden text may be left


def drop_hidden(tree: LexborHTMLParser, *, rendered: bool) -> Dropped:
    """Take off what a reader does not see."""
    never_shown = tree.css(NEVER_SHOWN)
    for node in never_shown:
        detach(node)
    some = bool(never_shown)
    styled = not rendered and tree.css_first("style, [style], font[color]") is not None
    styles = PageStyles(tree) if styled else None
    controls = _Controls(tree, styles, rendered=rendered)
    for node in tree.css(f"[{MARK}]" if rendered else "[hidden]"):
        switched = not rendered or node.attributes.get(MARK) == "switched"
        if node.tag not in _ROOTS and not (switched and controls.can_open(node)):
            detach(node)
            some = True
    if styles is None:
        return Dropped(some, by_styles=False)
    by_styles = _Pruning(tree, controls, styles).drop()
    return Dropped(some or by_styles, by_styles, styles.is_cut)


class _Controls:
    """What a reader can open: panels of tabs, and elements that a control names which is seen itself."""

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
                    if all(map(self.can_open, hidden)):
                        self._add(control)
                    else:
                        closed.append((control, hidden))
                if len(closed) == len(waiting):
                    break
                waiting = closed
        return self._named

    def _add(self, control: LexborNode) -> None:
        attributes = control.attributes
        self._has_tabs = self._has_tabs or attributes.get("role") == "tab"
        for name in _REFERENCES:
            self._names().update(_WORD.findall((attributes.get(name) or "")[:500]))

    def _hidden_around(self, control: LexborNode) -> list[LexborNode]:
        """Return which of a control and the elements around it are hidden."""
        found = []
        here: LexborNode | None = control
        for _ in range(MAX_AROUND):
            if here is None or here.tag in _ROOTS:
                break
            if self._is_hidden(here):
                found.append(here)
            here = here.parent
        return found

    def _is_hidden(self, node: LexborNode) -> bool:
        if self._rendered:
            return MARK in node.attributes
        if "hidden" in node.attributes:
            return True
        return self._styles is not None and hidden_by(self._styles.of(node)) is not None


class _Pruning:
    """Takes off what the styles of one page hide."""

    def __init__(self, tree: LexborHTMLParser, controls: _Controls, styles: PageStyles) -> None:
        self._tree = tree
        self._controls = controls
        self._styles = styles
        self._plain = tree.css_first("link[rel~=stylesheet]") is None  # no background is known elsewhere
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
            if hidden is None or (hidden.switched and self._controls.can_open(node)) or _is_formula(node):
                continue
            dropped = True
            if not hidden.inherited or not self._drop_around(node, hidden):
                detach(node)
        return dropped

    def _melts(self, node: LexborNode, style: Style) -> Hidden | None:
        """Return whether text has the colour of what is behind it, as far as that is known."""
        colour = text_colour(style) or colour_of((node.attributes.get("color") or "").lower())
        if colour is None:
            return None
        behind = self._behind(node)
        return Hidden("color", inherited=True) if behind is not None and colour.is_like(behind) else None

    def _behind(self, node: LexborNode) -> Colour | None:
        passed: list[int] = []
        here: LexborNode | None = node
        found: Colour | None = WHITE if self._plain else None
        for _ in range(MAX_AROUND):
            if here is None:
                break
            if here.mem_id in self._backgrounds:
                found = self._backgrounds[here.mem_id]
                break
            passed.append(here.mem_id)
            if here.tag in ("pre", "code"):  # themes of code are in style sheets that are not read
                found = background_of(self._styles.of(here))
                break
            own = self._own_background(here)
            if own is not None:
                found = own
                break
            here = here.parent
        self._backgrounds |= dict.fromkeys(passed, found)
        return found

    def _own_background(self, node: LexborNode) -> Colour | None:
        return background_of(self._styles.of(node)) or colour_of(
            (node.attributes.get("bgcolor") or "").lower()
        )

    def _drop_around(self, node: LexborNode, hidden: Hidden) -> bool:
        """Take off what is hidden inside an element but for parts that undo it; False if no part does."""
        inside = list(islice(node.traverse(), min(MAX_INSIDE, max(0, MAX_ASKED - self._asked))))
        self._asked += len(inside)
        shown = [each for each in inside if each.mem_id != node.mem_id and self._undoes(each, hidden)]
        if not shown:
            return False
        kept = set()
        for each in shown:
            here: LexborNode | None = each
            while here is not None and here.mem_id != node.mem_id:
                kept.add(here.mem_id)
                here = here.parent
        tops = {each.mem_id for each in shown}
        self._thin(node, kept, tops)
        return True

    def _thin(self, node: LexborNode, kept: set[int], tops: set[int]) -> None:
        for child in list(node.iter(include_text=True)):
            if child.mem_id not in kept:
                detach(child)
            elif child.mem_id not in tops:
                self._thin(child, kept, tops)

    def _undoes(self, node: LexborNode, hidden: Hidden) -> bool:
        style = self._styles.of(node)
        match hidden.by:
            case "visibility":
                return style.get("visibility") == "visible"
            case "font-size":
                size = font_size(style)
                value = style.get("font-size", style.get("font", ""))
                absolute = any(
                    unit in value for unit in ("px", "rem", "pt", "vw", "medium", "large", "small")
                )
                return absolute and (size is None or size > TINY_FONT_PX)
            case "color":
                return text_colour(style) is not None and self._melts(node, style) is None
            case _:
                return False


def _is_formula(node: LexborNode) -> bool:
    return not _FORMULAS.isdisjoint((node.attributes.get("class") or "").split())
