"""Find the main content of a page, and remove navigation, banners and small tools such as edit links."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile

from selectolax.lexbor import LexborHTMLParser, LexborNode

FEWEST_CHARS = 80
FEWEST_SHARE = 0.45  # the main content has at least this share of the text outside of links, navigation and banners

GENERATORS = {  # name prefix of a documentation generator, and its content selectors
    "sphinx": ("article.bd-article", "[role=main]", "div.body", "div.document"),
    "docbook": ("#docContent", "body"),
    "mkdocs": ("article.md-content__inner", "[role=main]", "main"),
    "docusaurus": (".theme-doc-markdown", "article", "main"),
    "javadoc": ("main", "[role=main]", ".contentContainer"),
    "mediawiki": (".mw-parser-output", "#mw-content-text"),
}
USUAL_PLACES = (
    ".markdown-body", "article.md-content__inner", ".theme-doc-markdown", "article.bd-article",
    "[itemprop=articleBody]", ".mw-parser-output", "#docContent", "[role=main]", "main", "article",
    "div.book, div.chapter, div.refentry, div.sect1",
    ".entry-content, .post-content, .article-content, .article-body, .post-body",
    "#main-content, #content, #main, .main-content",
)  # fmt: skip
HOLDERS = frozenset((
    "div", "section", "article", "main", "table", "tbody", "tr", "td", "form", "center", "font",
    "span", "ul", "li", "dl", "dd", "blockquote", "body",
))  # fmt: skip
NEARLY_ALL = 0.85
HALF = 0.5
DEEPEST = 60
LINK_LIST = 0.8  # a block in which more of the text is link text is a list of links

INNER_PLACES = (
    "[itemprop=articleBody]",
    ".entry-content, .post-content, .article-content, .article-body, .post-body, .article__body, .article__content, "
    ".post__content, .content-body, .rich-text, .prose, .blog-content, .post-text, .single-content",
    "article", "main",
)  # fmt: skip
MOST = 0.8  # an inner element with less of the text is only a part of the main content


def find_main(tree: LexborHTMLParser, generator: str) -> LexborNode | None:
    """Return the element with the main content of a page; navigation and banners may be removed from the tree."""
    if tree.body is None:
        return None
    for name, selectors in GENERATORS.items():
        for selector in selectors if generator.startswith(name) else ():
            node = tree.css_first(selector)
            if node is not None and _size(node) >= FEWEST_CHARS:
                return node
    drop_chrome(tree, tree.body)
    drop_named(tree.body)
    main = narrowed(_usual(tree, tree.body) or densest(tree.body) or tree.body)
    drop_before_heading(main)
    drop_link_lists(main)
    return main


def _usual(tree: LexborHTMLParser, body: LexborNode) -> LexborNode | None:
    whole = plain_size(body)
    for selector in USUAL_PLACES:
        nodes = tree.css(selector)
        if not nodes or (selector == "article" and len(nodes) > 1):
            continue  # several articles are a list of teasers, none of which is the content
        size = plain_size(nodes[0])
        if size >= FEWEST_CHARS and size >= FEWEST_SHARE * whole:
            return nodes[0]
    return None


def narrowed(main: LexborNode) -> LexborNode:
    """Return the body of the article inside a main content, if it has nearly all text and the main heading."""
    most, heading = MOST * plain_size(main), main.css_first("h1")
    for selector in INNER_PLACES:
        inner, *others = main.css(selector) or [main]
        has_heading = heading is None or inner.css_first("h1") is not None
        if not others and inner.mem_id != main.mem_id and has_heading and plain_size(inner) >= most:
            return inner
    return main


def _size(node: LexborNode) -> int:
    return len(node.text(skip_empty=True))


def densest(body: LexborNode) -> LexborNode | None:
    """Remove lists of links; return the smallest element with nearly all text and the main heading, or None."""
    node, whole = body, plain_size(body)
    if whole < FEWEST_CHARS:
        return None
    for _ in range(DEEPEST):
        sized = ((child, plain_size(child)) for child in node.iter())
        inner, size = next((pair for pair in sized if pair[1] >= NEARLY_ALL * whole), (None, 0))
        if inner is None or inner.tag not in HOLDERS:
            break
        if node.css_first("h1") is not None and inner.css_first("h1") is None:
            break
        node, whole = inner, size
    most = HALF * _ink_of(node)
    for block in node.css("ul, ol, table, tr, div, p"):  # remove the rest of menus: blocks that consist of links
        links = block.css("a[href]")
        if len(links) >= 3 and block.mem_id != node.mem_id and block.css_first("pre, h1") is None:
            ink = _ink_of(block)
            if 0 < ink <= most and sum(map(_ink_of, links)) > LINK_LIST * ink:
                detach(block)
    return node


def plain_size(node: LexborNode) -> int:
    """Return the number of characters outside of links, without white space."""
    links = sum(_ink_of(link) for link in node.css("a[href]"))
    return max(0, _ink_of(node) - links)


def _ink_of(node: LexborNode) -> int:
    return len("".join(node.text(skip_empty=True).split()))


# Elements that are never content. The converter skips most of them, but their text would be counted.
SILENT_TAGS = ", ".join((
    "script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "audio",
    "video", "select", "textarea", "dialog", "noembed", "noframes", "xmp", "plaintext", "map",
))  # fmt: skip

# Navigation and banners around the content, on pages of unknown generators.
CHROME = ", ".join((
    "nav", "footer", "body > header", "[role=navigation]", "[role=banner]", "[role=contentinfo]", "[role=search]",
    "[role=complementary]", "[role=dialog]", "#header", "#footer", "#sidebar", "#nav", "#navigation", "#menu",
    "#comments", "#disqus_thread", ".site-header", ".site-footer", ".page-header-nav", ".navbar", ".nav", ".menu",
    ".sidebar", ".side-bar", ".widget", ".breadcrumb", ".breadcrumbs", ".pagination", ".pager", ".prev-next", ".share",
    ".sharing", ".social", ".social-share", ".related", ".related-posts", ".recommended", ".newsletter", ".subscribe",
    ".comments", ".comment-list", ".advertisement", ".advert", ".ad", ".ads", ".promo", ".sponsor", ".skip-link",
    ".screen-reader-text", ".visually-hidden", ".sr-only", ".noprint", ".printfooter", ".catlinks", ".mw-jump-link",
    ".navbox", ".metadata", ".footer", ".header-nav", ".topbar", ".top-bar", ".bottom-bar",
))  # fmt: skip
CONSENT = "[id*=cookie], [class*=cookie], [id*=consent], [class*=consent], [id*=gdpr], [class*=gdpr]"

# Small tools within the content.
TOOLS = ", ".join((
    "nav", "a.headerlink", "a.hash-link", "a.header-anchor", "a.anchorjs-link", "a.anchor", "a.heading-anchor",
    ".anchor-link", ".navheader", ".navfooter", ".linenos", ".lineno", ".linenodiv", ".line-numbers-rows",
    ".viewcode-link", ".theme-edit-this-page", ".edit-this-page", ".edit-page-link", ".md-content__button",
    ".md-source-file", ".mw-editsection", ".theme-doc-breadcrumbs", ".theme-doc-toc-mobile", ".theme-doc-footer",
    ".breadcrumbs", "[role=navigation]", "[aria-hidden=true]", "footer", "form", "a[href*='/edit/']", "button",
    "select", "textarea", "dialog", "iframe", "object", "video", "audio", "noembed", "noframes", "xmp", "plaintext",
))  # fmt: skip
# For Sphinx and DocBook these few selectors are enough, and faster.
FEW_TOOLS = {
    "sphinx": "nav, a.headerlink, .linenos, .viewcode-link, [role=navigation], form, footer, button",
    "docbook": ".navheader, .navfooter, form",
}
CONTENTS = ".toc, #toc, .contents"
CALLOUT_NAMES = ("admonition", "aside", "note", "tip", "warn", "caution", "callout")

_EDIT_WORDS = ("edit", "improve", "suggest")
_LONG_FORM = 400
LARGE_FORM = 0.4  # a form with more of the main content holds it
_LONG_BANNER = 1_500
MOST_CONTENTS = 20  # tables of contents that are checked, per page


def around(node: LexborNode) -> Iterator[LexborNode]:
    """Yield a node and its ancestors, innermost first."""
    here: LexborNode | None = node
    while here is not None:
        yield here
        here = here.parent


def lower_html_of(html: str) -> bytes:
    """Return HTML as bytes in lower case; searching these for a tag is much faster than searching the tree."""
    return html.encode("utf-8", "surrogatepass").lower()


def detach(node: LexborNode) -> None:
    """Remove a node with its content from the tree; do nothing if it is already removed."""
    node.decompose(recursive=False)


# Words in the names of elements that are around the content or between its parts, and never in it.
NOISE_WORDS = frozenset((
    "actions", "advert", "advertisement", "author", "authors", "avatar", "badge", "badges", "bio", "breadcrumb",
    "breadcrumbs", "btn", "btns", "button", "buttons", "byline", "cart", "checkbox", "comment", "comments", "contact",
    "controls", "cookie", "cookies", "dropdown", "facet", "facets", "feedback", "fieldset", "filter", "filters",
    "follow", "footer", "form", "login", "menu", "meta", "modal", "modified", "nav", "navbar", "navigation",
    "newsletter", "overlay", "pager", "pagination", "popover", "popup", "profile", "promo", "promotion", "quantity",
    "rating", "ratings", "recommendation", "recommendations", "recommended", "related", "search", "share", "sharing",
    "sidebar", "signature", "signin", "signup", "social", "sponsor", "sponsored", "subscribe", "subscription", "tags",
    "toolbar", "tooltip", "updated", "upsell",
))  # fmt: skip
KEPT_TAGS = frozenset(("html", "body", "main", "article", "pre", "code", "h1", "table", "tbody"))
LARGE = 0.3  # elements with more of the text of a page are kept, whatever their names say
LITTLE = 0.2
MOST_LINKS = 0.35  # with more of its text in links, the main content is a list of links
LONG_PROSE = 600  # characters outside of links: beside less text, a list of links is content
LINK_SHARE, FEWEST_LINKS = 0.6, 2  # a block with more of its text in links is a list of links
BLOCK_TAGS = frozenset(("ul", "ol", "div", "section", "aside", "article", "table", "tr", "dl"))
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@lru_cache(maxsize=8_192)
def _noise_word(names: str) -> str:
    return next((word for word in map(str.lower, _NAME_WORD.findall(names)) if word in NOISE_WORDS), "")


def drop_named(body: LexborNode) -> None:
    """Remove elements whose class or id says that they are not content, unless all of a kind hold much of the text."""
    groups: dict[str, dict[int, LexborNode]] = {}
    for node in body.css("[class], [id]"):
        attributes = node.attributes
        word = _noise_word(f"{attributes.get('class') or ''} {attributes.get('id') or ''}")
        if word and node.tag not in KEPT_TAGS:
            group = groups.setdefault(word, {})
            if not any(here.mem_id in group for here in around(node)):
                group[node.mem_id] = node
    whole = plain_size(body) if groups else 0
    for group in groups.values():
        if sum(map(plain_size, group.values())) <= LARGE * whole:
            for node in group.values():
                if node.css_first("h1, pre, main, [role=main]") is None:
                    detach(node)


def drop_before_heading(main: LexborNode) -> None:
    """Remove what is before the only main heading, if it has little of the text."""
    headings = main.css("h1")
    before: list[LexborNode] = []
    for here in takewhile(lambda here: here.mem_id != main.mem_id, around(headings[0]) if len(headings) == 1 else ()):
        sibling = here.prev
        while sibling is not None:
            before.append(sibling)
            sibling = sibling.prev
    if sum(map(plain_size, before)) <= LITTLE * plain_size(main):
        for node in before:
            detach(node)


def drop_link_lists(main: LexborNode) -> None:
    """Remove blocks that consist of links, such as related pages, from a long text.

    Where there is code, little text, or more links than text, links are content.
    """
    links = main.css("a[href]")
    if len(links) < FEWEST_LINKS or main.css_first("pre, code") is not None or plain_size(main) < LONG_PROSE:
        return
    blocks: dict[int, tuple[LexborNode, list[int]]] = {}  # by id: an element, and the sizes of the links in it
    for link in links:
        size = _ink_of(link)
        for here in takewhile(lambda here: here.mem_id != main.mem_id, around(link)):
            blocks.setdefault(here.mem_id, (here, []))[1].append(size)
    if sum(map(_ink_of, links)) > MOST_LINKS * _ink_of(main):
        return
    for block, sizes in blocks.values():
        is_block = len(sizes) >= FEWEST_LINKS and block.tag in BLOCK_TAGS and block.css_first("h1") is None
        if is_block and sum(sizes) > LINK_SHARE * _ink_of(block):
            detach(block)


def drop_chrome(tree: LexborHTMLParser, body: LexborNode) -> None:
    for node in tree.css(SILENT_TAGS):
        detach(node)
    for node in tree.css(CONSENT):
        if node.css_first("button, input, a[href='#'], a[role=button]") and len(node.text()) < _LONG_BANNER:
            detach(node)
    chrome = [node for node in tree.css(CHROME) if node.tag not in ("html", "body", "main", "article")]
    for share in (HALF, NEARLY_ALL) if chrome else ():  # an element that then has nearly all text is the content
        most = share * plain_size(body)
        for node in chrome:
            if plain_size(node) <= most:
                detach(node)
    for node in tree.css("aside"):
        names = node.attributes.get("class") or ""
        if not any(word in names for word in CALLOUT_NAMES):
            detach(node)


def drop_tools(main: LexborNode, generator: str, url: str) -> None:
    """Remove permalinks, line numbers, edit links, hidden parts and tables of contents from the main content."""
    few = next((tools for name, tools in FEW_TOOLS.items() if generator.startswith(name)), None)
    whole = _size(main)
    for node in main.css(few or TOOLS):
        if not _is_kept(node, whole):
            detach(node)
    page = url.rpartition("/")[2].partition("#")[0].partition("?")[0]
    for node in main.css(CONTENTS)[:MOST_CONTENTS]:
        links = node.css("a[href]")
        targets = [(link.attributes.get("href") or "").partition("#") for link in links]
        if links and all(mark and path.rpartition("/")[2] in ("", page) for path, mark, _ in targets):
            detach(node)  # a table of contents: all its links lead to the same page


def _is_kept(node: LexborNode, whole: int) -> bool:
    """Return whether to keep an element that looks like a tool: a tab panel, a long form, a link not for editing."""
    attributes = node.attributes
    if node.tag == "form":
        return len(node.text()) > max(_LONG_FORM, LARGE_FORM * whole)
    if "/edit/" in (attributes.get("href") or ""):
        return not node.text().strip().lower().startswith(_EDIT_WORDS)
    return attributes.get("role") == "tabpanel"
