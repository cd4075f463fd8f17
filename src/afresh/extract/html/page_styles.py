"""The styles of a page as far as they decide what a reader sees: its `<style>` rules and `style` attributes.

Style sheets of their own files are not fetched; a browser knows them (`crawl.render`).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html.css_rules import Declaration, parse_declarations, parse_sheet
from afresh.extract.html.css_selectors import Features, Selector, matches, parse_selector
from afresh.extract.html.visibility import Style, hidden_by, is_valid, text_colour

MAX_SHEETS = 100
MAX_RULES = 5_000
MAX_SEARCHES = 300  # for elements that a rule may hide
MAX_MATCHES = 100_000  # of a selector with an element, for one page
MAX_STYLE_CHARS = 4_000  # of one `style` attribute

_PROPERTIES = frozenset((
    "display", "visibility", "content-visibility", "opacity", "filter", "-webkit-filter", "font",
    "font-size", "letter-spacing", "line-height", "text-indent", "text-shadow", "color",
    "-webkit-text-fill-color", "background", "background-color", "background-clip",
    "-webkit-background-clip", "position", "left", "top", "right", "bottom", "inset", "margin",
    "margin-left", "margin-top", "translate", "scale", "transform", "-webkit-transform", "width",
    "height", "max-width", "max-height", "overflow", "overflow-x", "overflow-y", "clip", "clip-path",
    "-webkit-clip-path", "mask", "mask-image", "-webkit-mask", "-webkit-mask-image",
))  # fmt: skip
_HIDING = re.compile(
    r"none|hidden|collapse|opacity|\b0|-\d|\d{4}|clip|mask|color|fill|scale|font|filter|indent|var\(|\\",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"var\(\s*(--[-\w]+)\s*(?:,([^()]*))?\)")

_Rule = tuple[Selector, tuple[Declaration, ...], int]
_Rank = tuple[bool, bool, tuple[int, int, int], int]
_INLINE = (0, 0, 0)


class PageStyles:
    """Answers which of the properties that matter here hold for an element."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._rules: list[_Rule] = []
        self._by_key: dict[str, list[_Rule]] = defaultdict(list)
        self._inline: dict[str, tuple[Declaration, ...]] = {}
        self._known: dict[int, Style] = {}
        self._elements: dict[int, Features] = {}
        self._root: dict[str, str] = {}
        self._matches_left = MAX_MATCHES
        for sheet in tree.css("style")[:MAX_SHEETS]:
            self._add_sheet(sheet)

    def suspects(self) -> Iterator[LexborNode]:
        """Yield elements that a `style` attribute or a rule may hide, some of them more than once."""
        yield from self._tree.css("[style], font[color]")
        searches = dict.fromkeys(
            selector.compounds[-1].css or "*"
            for selector, declarations, _ in self._rules
            if _may_hide(declarations)
        )
        for css in list(searches)[:MAX_SEARCHES]:
            yield from self._tree.css(css)

    def of(self, node: LexborNode) -> Style:
        """Return the values that hold for an element, not counting what it inherits."""
        known = self._known.get(node.mem_id)
        if known is None:
            known = self._known[node.mem_id] = self._compute(node)
        return known

    def _add_sheet(self, sheet: LexborNode) -> None:
        text = sheet.text() or ""
        if (sheet.attributes.get("media") or "").strip().lower() == "print" or not _HIDING.search(text):
            return
        for rule in parse_sheet(text):
            declarations = tuple(each for each in rule.declarations if _matters(each))
            if not declarations:
                continue
            for part in rule.selectors.split(","):
                if len(self._rules) >= MAX_RULES:
                    return
                selector = parse_selector(part)
                if selector is not None:
                    self._add_rule((selector, declarations, len(self._rules)))

    def _add_rule(self, rule: _Rule) -> None:
        last = rule[0].compounds[-1]
        self._rules.append(rule)
        if last.id is not None:
            self._by_key[f"#{last.id}"].append(rule)
        elif last.classes:
            self._by_key[f".{min(last.classes)}"].append(rule)
        else:
            self._by_key[last.tag or "*"].append(rule)
        if last.tag in (None, "html") and not last.classes and last.id is None and not last.attributes:
            self._root |= {each.name: each.value for each in rule[1] if each.name.startswith("--")}

    def _compute(self, node: LexborNode) -> Style:
        element = self._features(node)
        held: dict[str, tuple[_Rank, str]] = {}
        for selector, declarations, order in self._rules_for(element):
            self._matches_left -= 1
            if self._matches_left < 0:
                break
            if matches(selector, node, self._features):
                _lay(held, declarations, inline=False, specificity=selector.specificity, order=order)
        if style := element.attributes.get("style"):
            if style not in self._inline:
                self._inline[style] = tuple(filter(_matters, parse_declarations(style[:MAX_STYLE_CHARS])))
            _lay(held, self._inline[style], inline=True, specificity=_INLINE, order=0)
        values = {name: value for name, (_, value) in held.items()}
        return self._with_variables(values) if any("var(" in value for value in values.values()) else values

    def _features(self, node: LexborNode) -> Features:
        found = self._elements.get(node.mem_id)
        if found is None:
            found = self._elements[node.mem_id] = Features.of(node)
        return found

    def _rules_for(self, element: Features) -> Iterable[_Rule]:
        if not self._rules:
            return
        keys = (
            f"#{element.attributes.get('id')}",
            *(f".{each}" for each in element.classes),
            element.tag,
            "*",
        )
        for key in keys:
            yield from self._by_key.get(key, ())

    def _with_variables(self, values: dict[str, str]) -> dict[str, str]:
        known = {**self._root, **values}
        for _ in range(3):
            values = {
                name: _VARIABLE.sub(lambda found: known.get(found[1], found[2] or ""), value)[
                    :MAX_STYLE_CHARS
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


def _matters(declaration: Declaration) -> bool:
    return declaration.name in _PROPERTIES or declaration.name.startswith("--")


def _may_hide(declarations: Iterable[Declaration]) -> bool:
    """Return whether declarations hide an element, maybe together with others."""
    style = {name: value for name, value, _ in declarations}
    if hidden_by(style) is not None or text_colour(style) is not None:
        return True
    if hidden_by({**style, "position": "absolute", "overflow": "hidden"}) is not None:
        return True
    return any("var(" in value for value in style.values())
