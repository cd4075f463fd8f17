"""Where the text is on a page that does not say so: inwards, while one part holds nearly all of it."""

from selectolax.lexbor import LexborNode

from afresh.extract.html.noise import detach

HOLDERS = frozenset(
    [
        "div",
        "section",
        "article",
        "main",
        "table",
        "tbody",
        "tr",
        "td",
        "form",
        "center",
        "font",
        "span",
        "ul",
        "li",
        "dl",
        "dd",
        "blockquote",
        "body",
    ]
)
NEARLY_ALL = 0.85
FEWEST_CHARS = 80
DEEPEST = 60
LINK_LIST = 0.8  # share of link text above which a block is a list of links


def densest(body: LexborNode) -> LexborNode | None:
    """The smallest element with nearly all running text and the main heading; link lists are taken off."""
    node, whole = body, plain_size(body)
    if whole < FEWEST_CHARS:
        return None
    for _ in range(DEEPEST):
        inner = _next_inside(node, whole)
        if inner is None:
            break
        node, whole = inner
    _drop_link_lists(node)
    return node


def plain_size(node: LexborNode) -> int:
    """How much text is not link text."""
    links = sum(_size(link) for link in node.css("a[href]"))
    return max(0, _size(node) - links)


def _next_inside(node: LexborNode, whole: int) -> tuple[LexborNode, int] | None:
    """The child that holds nearly all text of a node, unless the main heading stands beside it."""
    for child in node.iter():
        size = plain_size(child)
        if size >= NEARLY_ALL * whole:
            heading = node.css_first("h1")
            if child.tag not in HOLDERS or (heading is not None and child.css_first("h1") is None):
                return None
            return child, size
    return None


def _drop_link_lists(node: LexborNode) -> None:
    """Take off lists, tables and boxes that consist of links, and what is left of menus."""
    for block in node.css("ul, ol, table, tr, div, p"):
        links = block.css("a[href]")
        if len(links) >= 3 and block.mem_id != node.mem_id and block.css_first("pre, h1") is None:
            whole = _size(block)
            if whole and sum(map(_size, links)) > LINK_LIST * whole:
                detach(block)


def _size(node: LexborNode) -> int:
    return len("".join(node.text(skip_empty=True).split()))
