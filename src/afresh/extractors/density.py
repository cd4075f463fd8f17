"""Where the text is on a page that does not say so: blocks with much text and few links win."""

from selectolax.lexbor import LexborNode

from afresh.extractors.noise import detach

BLOCKS = "p, pre, blockquote, li, dd, td"
HOLDERS = frozenset({"div", "section", "article", "main", "td", "body", "form", "center", "table", "ul", "dl"})
FEWEST_CHARS = 25
LINK_HEAVY = 0.5


def densest(body: LexborNode) -> LexborNode | None:
    """The element that holds most of the running text, link lists within it taken off."""
    scores: dict[int, float] = {}
    nodes: dict[int, LexborNode] = {}
    for block in body.css(BLOCKS):
        score = _score(block)
        holder, weight = block.parent, 1.0
        while score > 0 and holder is not None and weight > 0.1:
            if holder.tag in HOLDERS:
                scores[holder.mem_id] = scores.get(holder.mem_id, 0.0) + score * weight
                nodes[holder.mem_id] = holder
                weight /= 2
            holder = holder.parent
    if not scores:
        return None
    best = nodes[max(scores, key=lambda key: scores[key])]
    best = _widened(best, scores)
    drop_link_lists(best)
    return best


def drop_link_lists(node: LexborNode) -> None:
    """Take off lists, tables and boxes that consist of links."""
    for block in node.css("ul, ol, table, div, p, td"):
        links = block.css("a[href]")
        if len(links) >= 3 and block.css_first("pre, h1") is None and _link_share(block, links) > 0.8:
            detach(block)


def _score(block: LexborNode) -> float:
    """The running text of a block, links not counted; cells and items count only what is theirs."""
    own = len(block.text(deep=block.tag not in ("td", "li", "dd")).strip())
    if own < FEWEST_CHARS:
        return 0.0
    links = block.css("a[href]")
    if links and _link_share(block, links) > LINK_HEAVY:
        return 0.0
    return float(own)


def _link_share(block: LexborNode, links: list[LexborNode]) -> float:
    whole = len(block.text().strip())
    return sum(len(link.text().strip()) for link in links) / whole if whole else 1.0


def _widened(best: LexborNode, scores: dict[int, float]) -> LexborNode:
    """The parent instead, while it holds clearly more: sections beside each other, a heading above."""
    score = scores[best.mem_id]
    holder = best.parent
    while holder is not None and holder.tag != "html":
        total = len(holder.text(skip_empty=True))
        if scores.get(holder.mem_id, 0.0) > 0.75 * score and best.css_first("h1") is None:
            wanted = holder.css_first("h1")
            if wanted is not None and total < 2 * max(1, len(best.text(skip_empty=True))):
                return holder
        holder = holder.parent
    return best
