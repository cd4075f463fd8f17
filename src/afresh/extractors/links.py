"""Every link of a page, navigation included: where it leads and what a reader sees of it."""

from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.core.model import Link
from afresh.core.urls import canonical

MOST_LINKS = 5_000
LONGEST_TEXT = 300
MANY_TAGS = 200_000  # above this, nodes are walked one by one, so that memory stays bounded

_TAGS = frozenset({"a", "area", "frame"})


def collect_links(tree: LexborHTMLParser, base: str, tag_count: int) -> tuple[Link, ...]:
    """The links of a page, one per target in document order, at most `MOST_LINKS`."""
    by_href: dict[str, Link] = {}
    for node in _anchors(tree, tag_count):
        attributes = node.attributes
        href = (attributes.get("href") or attributes.get("src") or "").partition("#")[0].strip()
        if not href:
            continue
        known = by_href.get(href)
        if known is None and len(by_href) >= MOST_LINKS:
            continue
        follow = "nofollow" not in (attributes.get("rel") or "").lower()
        if known is None or not known.text or (follow and not known.follow):
            text = (known.text if known else "") or _visible_text(node, attributes)
            by_href[href] = Link(href, text, follow or (known is not None and known.follow))
    return _by_target(by_href.values(), base)


def _anchors(tree: LexborHTMLParser, tag_count: int) -> Iterable[LexborNode]:
    if tag_count <= MANY_TAGS:
        return tree.css("a[href], area[href], frame[src]")
    return _walk(tree)


def _walk(tree: LexborHTMLParser) -> Iterator[LexborNode]:
    for node in tree.root.traverse() if tree.root is not None else ():
        if node.tag in _TAGS:
            yield node


def _by_target(raw_links: Iterable[Link], base: str) -> tuple[Link, ...]:
    found: dict[str, Link] = {}
    for raw in raw_links:
        url = canonical(raw.url, base)
        if url is None:
            continue
        known = found.get(url)
        if known is None:
            found[url] = Link(url, raw.text, raw.follow)
        elif not known.text or (raw.follow and not known.follow):
            found[url] = Link(url, known.text or raw.text, known.follow or raw.follow)
    return tuple(found.values())


def _visible_text(node: LexborNode, attributes: dict[str, str | None]) -> str:
    text = " ".join(node.text().split())
    if not text:
        picture = node.css_first("img[alt]")
        alternative = picture.attributes.get("alt") if picture is not None else None
        spoken = alternative or attributes.get("aria-label") or attributes.get("alt") or attributes.get("title")
        text = " ".join((spoken or "").split())
    return text[:LONGEST_TEXT].rstrip()
