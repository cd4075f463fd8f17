"""Every link of a page, navigation included: where it leads and what a reader sees of it."""

from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.core.looks import Link
from afresh.core.urls import canonical

MOST_LINKS = 5_000
LONGEST_TEXT = 300
MANY_TAGS = 200_000  # above this, nodes are walked one by one, so that memory stays bounded

_TAGS = frozenset({"a", "area", "frame"})


def collect_links(tree: LexborHTMLParser, base: str, tag_count: int) -> tuple[Link, ...]:
    """The links of a page, one per target in document order, at most `MOST_LINKS`."""
    by_href: dict[str, tuple[str, bool]] = {}
    for node in _anchors(tree, tag_count):
        attributes = node.attributes
        href = (attributes.get("href") or attributes.get("src") or "").partition("#")[0].strip()
        if not href:
            continue
        known = by_href.get(href)
        if known is None and len(by_href) >= MOST_LINKS:
            continue
        follow = "nofollow" not in (attributes.get("rel") or "").lower()
        if known is None:
            by_href[href] = _visible_text(node, attributes), follow
        elif not known[0] or follow > known[1]:
            by_href[href] = known[0] or _visible_text(node, attributes), follow or known[1]
    return _by_target(by_href, base)


def _anchors(tree: LexborHTMLParser, tag_count: int) -> Iterable[LexborNode]:
    if tag_count <= MANY_TAGS:
        return tree.css("a[href], area[href], frame[src]")
    return _walk(tree)


def _walk(tree: LexborHTMLParser) -> Iterator[LexborNode]:
    for node in tree.root.traverse() if tree.root is not None else ():
        if node.tag in _TAGS:
            yield node


def _by_target(by_href: dict[str, tuple[str, bool]], base: str) -> tuple[Link, ...]:
    """The links by canonical address: many spellings may lead to one page."""
    found: dict[str, tuple[str, bool]] = {}
    for href, (text, follow) in by_href.items():
        url = canonical(href, base)
        if url is not None:
            known = found.get(url)
            found[url] = (text, follow) if known is None else (known[0] or text, known[1] or follow)
    return tuple([Link(url, text, follow) for url, (text, follow) in found.items()])


def _visible_text(node: LexborNode, attributes: dict[str, str | None]) -> str:
    text = " ".join(node.text().split())
    if not text:
        picture = node.css_first("img[alt]")
        alternative = picture.attributes.get("alt") if picture is not None else None
        spoken = (
            alternative or attributes.get("aria-label") or attributes.get("alt") or attributes.get("title")
        )
        text = " ".join((spoken or "").split())
    return text[:LONGEST_TEXT].rstrip()
