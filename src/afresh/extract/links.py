"""Collect the links of a page, including its navigation, with their targets and visible texts."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.model.fetch import Link
from afresh.urls.canonical import MAX_LENGTH, canonical, directory_of
from afresh.urls.files import link_target

MAX_LINKS = 5_000
MAX_LINK_TEXT_CHARS = 300
MANY_TAGS = 200_000  # in a page with more tags, nodes are visited one by one to save memory

_TAGS = frozenset({"a", "area", "frame"})
_NO_PAGES = ("data:", "javascript:", "mailto:", "blob:")
_cached_target = lru_cache(maxsize=4_096)(link_target)  # most pages of a site share most links
_SAME_IN_DIRECTORY = re.compile(r"https?://|[A-Za-z0-9_./~-][^?:]*+(?:\?|\Z)")  # links that ignore the page's own name


class Links(NamedTuple):
    kept: tuple[Link, ...]
    left_out: int = 0  # number of links beyond `MAX_LINKS`
    too_long: int = 0  # number of links with too long a URL
    by_href: Mapping[str, tuple[str, bool]] = MappingProxyType({})  # raw URL → text, and whether to follow the link


def collect_links(
    tree: LexborHTMLParser, base: str, tag_count: int, refresh: str = "", alternate: str | None = None
) -> Links:
    """Return the links of a page and the target of its meta refresh (`refresh`), each target once, up to `MAX_LINKS`.

    Links to `alternate`, the Markdown version of the page, are left out. A page with a large `tag_count` is searched
    in a way that saves memory.
    """
    by_href, left_out = _by_href(tree, tag_count, refresh)
    links = _by_target(by_href, base)._replace(left_out=left_out, by_href=by_href)
    if alternate is None:
        return links
    return links._replace(kept=tuple(link for link in links.kept if link.url != alternate))


def with_hidden(links: Links, hidden: Iterable[tuple[str, str]], base: str, same: Collection[str | None]) -> Links:
    """Return the links with the hidden ones added, up to `MAX_LINKS`, without those to the page itself (`same`).

    If both have the same target, the visible link is kept; it gets the text of the hidden one if it has none.
    """
    found = {link.url: link for link in links.kept}
    left_out = set()
    for raw_url, text in hidden:
        url = canonical(raw_url, base)
        if url is None or url in same:
            continue
        known = found.get(url)
        if known is not None:
            found[url] = known if known.text else known._replace(text=text)
        elif len(found) < MAX_LINKS:
            found[url] = Link(url, text)
        else:
            left_out.add(url)
    return links._replace(kept=tuple(found.values()), left_out=links.left_out + len(left_out))


def with_seen_words(links: Links, tree: LexborHTMLParser, base: str, tag_count: int) -> Links:
    """Return the links with the texts that they still have in `tree`, from which hidden text was removed."""
    left, _ = _by_href(tree, tag_count)
    by_href = {href: (left.get(href, ("",))[0], follow) for href, (_, follow) in links.by_href.items()}
    if by_href == links.by_href:
        return links
    words = {link.url: link.text for link in _by_target(by_href, base).kept}
    return links._replace(kept=tuple([link._replace(text=words.get(link.url, "")) for link in links.kept]))


def _by_href(tree: LexborHTMLParser, tag_count: int, refresh: str = "") -> tuple[dict[str, tuple[str, bool]], int]:
    """Return the links of a page (raw URL: text, whether to follow) and the number of omitted links."""
    by_href: dict[str, tuple[str, bool]] = {refresh: ("", True)} if refresh else {}
    left_out = 0
    nodes: Iterable[LexborNode] = ()
    if tag_count <= MANY_TAGS:
        nodes = tree.css("a[href], area[href], frame[src]")
    elif tree.root is not None:
        nodes = (node for node in tree.root.traverse() if node.tag in _TAGS)
    for node in nodes:
        attributes = node.attributes
        href = (attributes.get("href") or attributes.get("src") or "").partition("#")[0].strip()
        if not href:
            continue
        known = by_href.get(href)
        if known is None and len(by_href) >= MAX_LINKS:
            left_out += 1
            continue
        follow = "nofollow" not in (attributes.get("rel") or "").lower()
        if known is None:
            by_href[href] = _visible_text(node, attributes), follow
        elif not known[0] or follow > known[1]:
            by_href[href] = known[0] or _visible_text(node, attributes), follow or known[1]
    return by_href, left_out


def _by_target(by_href: dict[str, tuple[str, bool]], base: str) -> Links:
    """Merge links with different spellings of one URL, and return one link per canonical URL."""
    found: dict[str, tuple[str, bool]] = {}
    too_long = 0
    directory = directory_of(base)
    for href, (text, follow) in by_href.items():
        if len(href) <= MAX_LENGTH and _SAME_IN_DIRECTORY.match(href):
            url = _cached_target(href, directory)
        else:
            url = link_target(href, base)
        if url is not None:
            known = found.get(url)
            found[url] = (text, follow) if known is None else (known[0] or text, known[1] or follow)
        elif len(href) > MAX_LENGTH - len(base) and not href.startswith(_NO_PAGES):
            too_long += 1
    return Links(tuple([Link(url, text, follow) for url, (text, follow) in found.items()]), too_long=too_long)


def _visible_text(node: LexborNode, attributes: dict[str, str | None]) -> str:
    text = " ".join(node.text().split())
    if not text:
        picture = node.css_first("img[alt]")
        alternative = picture.attributes.get("alt") if picture is not None else None
        spoken = (alternative, *map(attributes.get, ("aria-label", "alt", "title")))
        text = " ".join(next(filter(None, spoken), "").split())
    return text[:MAX_LINK_TEXT_CHARS].rstrip()
