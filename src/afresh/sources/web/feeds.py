"""Feeds: what a root page says of its RSS and Atom feeds; they are read like sitemaps."""

import html
import re

from afresh.model.fetch import Body
from afresh.urls.canonical import canonical, origin_of

MOST_FEEDS = 2  # the entries, and perhaps the comments on them
LARGEST_BYTES = 5 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_HTML = frozenset({"text/html", "application/xhtml+xml", ""})
_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
_LINK = re.compile(r"<link\s([^<>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(?<![a-z])([a-z]+)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def feeds_of(body: Body) -> tuple[str, ...]:
    """The feeds on the same site that the head of a page names."""
    if body.media_type not in _HTML:
        return ()
    head = body.data[:_HEAD_BYTES].decode("utf-8", "replace")
    feeds: dict[str, None] = {}
    for link in _LINK.finditer(head):
        told = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(link[1])}
        rel, media = told.get("rel", "").lower().split(), told.get("type", "").partition(";")[0]
        if "alternate" not in rel or media.strip().lower() not in _TYPES or not told.get("href"):
            continue
        url = canonical(told["href"], body.url)
        if url is not None:
            feeds.setdefault(url)
    near = [url for url in feeds if origin_of(url) == origin_of(body.url)]
    return tuple(near[:MOST_FEEDS])
