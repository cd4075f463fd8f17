"""Links in attributes that scripts act on: onclick, data-href, data-url, formaction."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from afresh.extract.html.hidden_links.found import Hidden, Shown, words_of

MOST = 2_000  # elements
LONGEST_SCRIPT = 2_000
SIGNS = ("lick=", "data-href=", "data-url=")  # the first stands in onClick too

_SENT_TO = re.compile(
    r"(?:\blocation(?:\.href)?\s*=(?!=)\s*|\blocation\.(?:assign|replace)\(\s*|\bwindow\.open\(\s*)"
    r"(?:'([^'+]+)'|\"([^\"+]+)\")\s*+[,;)}]?\s*+(?!\+)"
)
_SHARED = re.compile(r"share|tweet|twitter|facebook|fb-|addthis|disqus|linkedin|pinterest")
_ADDRESS = ("/", "http://", "https://", "./", "../", "?")


def in_attributes(page: Shown) -> Iterator[Hidden]:
    """Where elements lead that are clicked like links, with what a reader sees of them."""
    for node in islice(_clicked(page), MOST):
        attributes = node.attributes
        raw_url = _sent_to(attributes.get("onclick") or "") or _address(attributes.get("data-href"))
        if not raw_url and not _is_shared(attributes):
            raw_url = _address(attributes.get("data-url"))
        if raw_url and (text := words_of(node)):
            yield Hidden(raw_url, text)
    for node in islice(page.tree.tags("button"), MOST):
        raw_url = _address(node.attributes.get("formaction"))
        if raw_url and _asks_only(node):
            yield Hidden(raw_url, words_of(node))


def _clicked(page: Shown) -> Iterable[LexborNode]:
    named = any(sign in page.html for sign in SIGNS)
    return page.tree.css("[onclick], [data-href], [data-url]") if named else ()


def _sent_to(script: str) -> str:
    found = _SENT_TO.search(script) if len(script) <= LONGEST_SCRIPT else None
    return (found[1] or found[2]).strip() if found else ""


def _address(value: str | None) -> str:
    value = (value or "").strip()
    return value if value.startswith(_ADDRESS) or value.partition("?")[0].endswith((".html", ".htm")) else ""


def _is_shared(attributes: dict[str, str | None]) -> bool:
    return _SHARED.search((attributes.get("class") or "").lower()) is not None


def _asks_only(node: LexborNode) -> bool:
    """Whether a button asks for a page and changes nothing."""
    here: LexborNode | None = node
    method = node.attributes.get("formmethod")
    while method is None and here is not None and here.tag != "form":
        here = here.parent
        method = here.attributes.get("method") if here is not None and here.tag == "form" else None
    return (method or "get").lower() == "get"
