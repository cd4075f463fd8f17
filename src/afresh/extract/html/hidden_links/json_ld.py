"""Links in JSON-LD, by which pages tell search engines what they are part of and what they list."""

import re
from collections.abc import Iterator

from afresh.extract.html.hidden_links.found import Hidden, Shown
from afresh.extract.html.hidden_links.values import addresses_in, data_of

_LINKS = frozenset(
    {
        "url",
        "@id",
        "sameas",
        "item",
        "mainentityofpage",
        "relatedlink",
        "significantlink",
        "haspart",
        "ispartof",
    }
)
_NO_PAGE = re.compile(r"Image|Video|Audio|Media|Action|EntryPoint|DataDownload")


def in_json_ld(page: Shown) -> Iterator[Hidden]:
    """What `url`, `@id`, `sameAs` and the items of lists name, unless it is media or a mere name."""
    for data in data_of(each for each in page.scripts if each.type == "application/ld+json"):
        for value in addresses_in(data):
            if value.field in _LINKS and not _NO_PAGE.search(value.kind) and "#" not in value.raw_url:
                yield Hidden(value.raw_url, value.text)
