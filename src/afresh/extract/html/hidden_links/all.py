"""Links that a reader can follow although no anchor names them: each kind has a finder of its own.

A finder first looks for a sign that it is needed, so a page without hidden links costs next to nothing.
What it finds comes after the visible links and takes nothing from them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from afresh.extract.html.hidden_links.attributes import in_attributes
from afresh.extract.html.hidden_links.drupal import in_drupal_settings
from afresh.extract.html.hidden_links.found import Hidden, Shown, scripts_of
from afresh.extract.html.hidden_links.head_links import in_head
from afresh.extract.html.hidden_links.hydration import in_hydration_data
from afresh.extract.html.hidden_links.json_ld import in_json_ld
from afresh.extract.html.hidden_links.jump_menus import in_jump_menus
from afresh.extract.html.hidden_links.wanted import leads_to_page

__all__ = ["FINDERS", "Finder", "Hidden", "Shown", "hidden_links", "scripts_of"]


class Finder(NamedTuple):
    """One kind of hidden link; a row of the table below."""

    name: str
    find: Callable[[Shown], Iterable[Hidden]]  # looks for a sign of its links before it does any work
    of_elements: bool = False  # its words are those of elements, which may be hidden, too


# In the order in which they are kept where a page has more links than are kept at all.
FINDERS = (
    Finder("attributes", in_attributes, of_elements=True),
    Finder("jump menus", in_jump_menus, of_elements=True),
    Finder("head", in_head),
    Finder("Drupal settings", in_drupal_settings),
    Finder("hydration data", in_hydration_data),
    Finder("JSON-LD", in_json_ld),
)


def hidden_links(page: Shown, *, of_elements: bool) -> Iterator[Hidden]:
    """The hidden links of a page that may lead to pages, as they are written, in the order of the finders:
    those of elements, or those of data."""
    for finder in FINDERS:
        for found in finder.find(page) if finder.of_elements is of_elements else ():
            if not page.shows(found.raw_url) and leads_to_page(found.raw_url):
                yield found
