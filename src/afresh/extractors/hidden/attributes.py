"""Links in attributes that scripts act on: onclick, data-href, data-url, formaction."""

import re
from collections.abc import Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from afresh.extractors.hidden.found import Hidden, Shown, words_of

MOST = 2_000  # elements
LONGEST_SCRIPT = 2_000
SELECTOR = "[onclick], [data-href], [data-url], button[formaction], input[formaction]"

_SENT_TO = re.compile(
    r"(?:\blocation(?:\.href)?\s*=(?!=)\s*|\blocation\.(?:assign|replace)\(\s*|\bwindow\.open\(\s*)"
    r"(?:'([^'+]+)'|\"([^\"+]+)\")\s*[,;)}]?\s*(?![\s+])"
)
_SHARED = re.compile(r"share|tweet|twitter|facebook|fb-|addthis|disqus|linkedin|pinterest")
_ADDRESS = ("/", "http://", "https://", "./", "../", "?")


def in_attributes(page: Shown) -> Iterator[Hidden]:
    """Where elements lead that are clicked like links, with what a reader sees of them."""
    for node in islice(page.tree.css(SELECTOR), MOST):
        attributes = node.attributes
        raw_url = (
            _sent_to(attributes.get("onclick") or "")
            or _address(attributes.get("data-href"))
            or (_address(attributes.get("data-url")) if not _is_shared(attributes) else "")
            or (_address(attributes.get("formaction")) if _asks_only(node) else "")
        )
        text = words_of(node) if raw_url else ""
        if raw_url and (text or not attributes.get("data-url")):
            yield Hidden(raw_url, text)


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
