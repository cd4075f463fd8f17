"""Links in jump menus: a select element that leads to the page whose address is chosen."""

import re
from collections.abc import Iterator

from afresh.extract.html.hidden_links.found import Hidden, Shown, words_of

MOST_OPTIONS = 2_000  # of one page

_JUMPS = re.compile(r"jump|goto|go-to|quick|navig|redirect|location|open\(|href")
_ADDRESS = ("/", "http://", "https://", "./", "../")


def in_jump_menus(page: Shown) -> Iterator[Hidden]:
    """The addresses among the options of menus that say of themselves that they lead somewhere."""
    left = MOST_OPTIONS
    for menu in page.tree.tags("select"):
        attributes = menu.attributes
        named = " ".join(attributes.get(name) or "" for name in ("onchange", "class", "id", "name"))
        if not _JUMPS.search(named.lower()[:1_000]):
            continue
        for option in menu.css("option[value]"):
            left -= 1
            if left < 0:
                return
            raw_url = (
                (option.attributes.get("value") or "").rpartition("::")[2].strip()
            )  # as ctools writes it
            if raw_url.startswith(_ADDRESS) and raw_url != "/":
                yield Hidden(raw_url, words_of(option))
