"""Links in the head: the pages before and after this one, and what it belongs to.

Other forms of the same page are left out on purpose: its translations (`alternate`), its `amphtml` and its
`canonical` would each double a crawl of documentation and bring nothing new.
"""

from collections.abc import Iterator

from afresh.extract.html.hidden_links.found import Hidden, Shown


def in_head(page: Shown) -> Iterator[Hidden]:
    """What `<link rel=next>` and its like name."""
    return (Hidden(href, title) for href, title in page.head.onward)
