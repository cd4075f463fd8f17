"""Links in the data with which pages of Next, Nuxt and their like come to life in a browser."""

import re
from collections.abc import Iterator
from typing import Any

from afresh.extract.html.hidden_links.found import Hidden, Script, Shown
from afresh.extract.html.hidden_links.values import Value, addresses_in, data_of, is_address, words_beside

NUXT = "__NUXT_DATA__"

_LINK = re.compile(r"(?:url|uri|href|link|path|pathname|route|permalink|slug|location)$|^(?:to|page|target)$")
_NO_LINK = re.compile(
    r"image|img|icon|logo|thumb|avatar|poster|asset|font|api|endpoint|base|edit|source|repo|feed"
)


def in_hydration_data(page: Shown) -> Iterator[Hidden]:
    """The addresses in fields that are named like links and have words beside them."""
    held = [each for each in page.scripts if _holds_data(each)]
    for data in data_of(each for each in held if each.attributes.get("id") != NUXT):
        for value in addresses_in(data):
            if _is_link(value):
                yield Hidden(value.raw_url, value.text)
    for data in data_of(each for each in held if each.attributes.get("id") == NUXT):
        yield from _in_nuxt(data)


def _holds_data(script: Script) -> bool:
    """Whether it holds the data of a page, as `__NEXT_DATA__` does; Drupal's has a finder of its own."""
    return script.type == "application/json" and "data-drupal-selector" not in script.attributes


def _is_link(value: Value) -> bool:
    field = value.field
    return bool(value.text) and _LINK.search(field) is not None and _NO_LINK.search(field) is None


def _in_nuxt(data: Any) -> Iterator[Hidden]:
    """Nuxt writes every value once into one list; objects name them by their place in it."""
    values = data if isinstance(data, list) else []
    for held in values:
        if isinstance(held, dict):
            written = {name: _at(values, place) for name, place in held.items()}
            texts = {name: value for name, value in written.items() if isinstance(value, str)}
            if any(map(is_address, texts.values())):
                beside = words_beside(texts)
                found = (value for value in addresses_in(texts) if _is_link(value._replace(text=beside)))
                yield from (Hidden(value.raw_url, beside) for value in found)


def _at(values: list[Any], place: Any) -> Any:
    is_place = isinstance(place, int) and not isinstance(place, bool) and 0 <= place < len(values)
    return values[place] if is_place else None
