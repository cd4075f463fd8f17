"""Find the main content of a page, and remove navigation, banners and small tools such as edit links."""

from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

FEWEST_CHARS = 80
FEWEST_SHARE = 0.2  # the main content has at least this share of the text without navigation and banners

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
DEEPEST = 60
LINK_LIST = 0.8  # a block in which more of the text is link text is a list of links


def find_main(tree: LexborHTMLParser, generator: str) -> LexborNode | None:
    """Return the element with the main content of a page; navigation and banners may be removed from the tree."""
    if tree.body is None:
        return None
    for name, selectors in GENERATORS.items():
        for selector in selectors if generator.startswith(name) else ():
            node = tree.css_first(selector)
            if node is not None and _size(node) >= FEWEST_CHARS:
                return node
    drop_chrome(tree)
    return _usual(tree, tree.body) or densest(tree.body) or tree.body


def _usual(tree: LexborHTMLParser, body: LexborNode) -> LexborNode | None:
    whole = _size(body)
    for selector in USUAL_PLACES:
        nodes = tree.css(selector)
        if not nodes or (selector == "article" and len(nodes) > 1):
            continue  # several articles are a list of teasers, none of which is the content
        size = _size(nodes[0])
        if size >= FEWEST_CHARS and size >= FEWEST_SHARE * whole:
            return nodes[0]
    return None


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
    for block in node.css("ul, ol, table, tr, div, p"):  # remove the rest of menus: blocks that consist of links
        links = block.css("a[href]")
        if len(links) >= 3 and block.mem_id != node.mem_id and block.css_first("pre, h1") is None:
            ink = _ink_of(block)
            if ink and sum(map(_ink_of, links)) > LINK_LIST * ink:
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


def drop_chrome(tree: LexborHTMLParser) -> None:
    for node in tree.css(SILENT_TAGS):
        detach(node)
    for node in tree.css(CONSENT):
        if node.css_first("button, input, a[href='#'], a[role=button]") and len(node.text()) < _LONG_BANNER:
            detach(node)
    for node in tree.css(CHROME):
        if node.tag not in ("html", "body", "main", "article"):
            detach(node)
    for node in tree.css("aside"):
        names = node.attributes.get("class") or ""
        if not any(word in names for word in CALLOUT_NAMES):
            detach(node)


def drop_tools(main: LexborNode, generator: str, url: str) -> None:
    """Remove permalinks, line numbers, edit links, hidden parts and tables of contents from the main content."""
    few = next((tools for name, tools in FEW_TOOLS.items() if generator.startswith(name)), None)
    for node in main.css(few or TOOLS):
        if not _is_kept(node):
            detach(node)
    page = url.rpartition("/")[2].partition("#")[0].partition("?")[0]
    for node in main.css(CONTENTS)[:MOST_CONTENTS]:
        links = node.css("a[href]")
        targets = [(link.attributes.get("href") or "").partition("#") for link in links]
        if links and all(mark and path.rpartition("/")[2] in ("", page) for path, mark, _ in targets):
            detach(node)  # a table of contents: all its links lead to the same page


def _is_kept(node: LexborNode) -> bool:
    """Return whether to keep an element that looks like a tool: a tab panel, a long form, a link not for editing."""
    attributes = node.attributes
    if node.tag == "form":
        return len(node.text()) > _LONG_FORM
    if "/edit/" in (attributes.get("href") or ""):
        return not node.text().strip().lower().startswith(_EDIT_WORDS)
    return attributes.get("role") == "tabpanel"
