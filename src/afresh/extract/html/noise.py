"""What is on a page but is not its content: chrome around it, and small tools within it."""

from selectolax.lexbor import LexborHTMLParser, LexborNode

# Never content, wherever it stands; the converter leaves out most of them, but their text would be counted.
SILENT_TAGS = ", ".join((
    "script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "audio",
    "video", "select", "textarea", "dialog", "noembed", "noframes", "xmp", "plaintext", "map",
))  # fmt: skip

# Chrome around the content, on pages whose generator is unknown.
CHROME = ", ".join((
    "nav", "footer", "body > header", "[role=navigation]", "[role=banner]", "[role=contentinfo]",
    "[role=search]", "[role=complementary]", "[role=dialog]", "#header", "#footer", "#sidebar", "#nav",
    "#navigation", "#menu", "#comments", "#disqus_thread", ".site-header", ".site-footer",
    ".page-header-nav", ".navbar", ".nav", ".menu", ".sidebar", ".side-bar", ".widget", ".breadcrumb",
    ".breadcrumbs", ".pagination", ".pager", ".prev-next", ".share", ".sharing", ".social",
    ".social-share", ".related", ".related-posts", ".recommended", ".newsletter", ".subscribe",
    ".comments", ".comment-list", ".advertisement", ".advert", ".ad", ".ads", ".promo", ".sponsor",
    ".skip-link", ".screen-reader-text", ".visually-hidden", ".sr-only", ".noprint", ".printfooter",
    ".catlinks", ".mw-jump-link", ".navbox", ".metadata", ".footer", ".header-nav", ".topbar", ".top-bar",
    ".bottom-bar",
))  # fmt: skip
CONSENT = "[id*=cookie], [class*=cookie], [id*=consent], [class*=consent], [id*=gdpr], [class*=gdpr]"

# Small tools within the content.
TOOLS = ", ".join((
    "nav", "a.headerlink", "a.hash-link", "a.header-anchor", "a.anchorjs-link", "a.anchor",
    "a.heading-anchor", ".anchor-link", ".navheader", ".navfooter", ".linenos", ".lineno", ".linenodiv",
    ".line-numbers-rows", ".viewcode-link", ".theme-edit-this-page", ".edit-this-page", ".edit-page-link",
    ".md-content__button", ".md-source-file", ".mw-editsection", ".theme-doc-breadcrumbs",
    ".theme-doc-toc-mobile", ".theme-doc-footer", ".breadcrumbs", "[role=navigation]",
    "[aria-hidden=true]", "footer", "form",
    "a[href*='/edit/']", "button", "select", "textarea", "dialog", "iframe", "object", "video", "audio",
    "noembed", "noframes", "xmp", "plaintext",
))  # fmt: skip
# Sphinx and DocBook pages need just these, and matching few selectors is what makes them fast.
FEW_TOOLS = {
    "sphinx": "nav, a.headerlink, .linenos, .viewcode-link, [role=navigation], form, footer, button",
    "docbook": ".navheader, .navfooter, form",
}
CONTENTS = ".toc, #toc, .contents"

_EDIT_WORDS = ("edit", "improve", "suggest")
_LONG_FORM = 400
_LONG_BANNER = 1_500
MOST_CONTENTS = 20  # a page with more is no page with contents, but one that wants to keep us busy


def detach(node: LexborNode) -> None:
    """Take a node with all it holds off the tree; harmless for one that is off already."""
    node.decompose(recursive=False)


def drop_chrome(tree: LexborHTMLParser) -> None:
    """Take navigation, banners, footers, consent boxes and asides off the whole page."""
    for node in tree.css(SILENT_TAGS):
        detach(node)
    for node in tree.css(CONSENT):
        if node.css_first("button, input, a[href='#'], a[role=button]") and len(node.text()) < _LONG_BANNER:
            detach(node)
    for node in tree.css(CHROME):
        if node.tag not in ("html", "body", "main", "article"):
            detach(node)
    for node in tree.css("aside"):
        if not _is_callout(node):
            detach(node)


def drop_tools(main: LexborNode, generator: str, url: str) -> None:
    """Take permalinks, line numbers, edit links, hidden parts and in-page contents off the content."""
    few = next((tools for name, tools in FEW_TOOLS.items() if generator.startswith(name)), None)
    for node in main.css(few or TOOLS):
        if not _is_kept(node):
            detach(node)
    page = url.rpartition("/")[2].partition("#")[0].partition("?")[0]
    for node in main.css(CONTENTS)[:MOST_CONTENTS]:
        if _leads_nowhere_else(node, page):
            detach(node)


def _is_kept(node: LexborNode) -> bool:
    """Whether something that looks like a tool is content: a tab panel, a form around the page, a link."""
    attributes = node.attributes
    if node.tag == "form":
        return len(node.text()) > _LONG_FORM
    if "/edit/" in (attributes.get("href") or ""):
        return not node.text().strip().lower().startswith(_EDIT_WORDS)
    return attributes.get("role") == "tabpanel"


def _is_callout(node: LexborNode) -> bool:
    names = node.attributes.get("class") or ""
    return any(word in names for word in ("admonition", "aside", "note", "tip", "warn", "caution", "callout"))


def _leads_nowhere_else(node: LexborNode, page: str) -> bool:
    """Whether all links of a table of contents stay on the page."""
    links = node.css("a[href]")
    targets = ((link.attributes.get("href") or "").partition("#") for link in links)
    return bool(links) and all(mark and path.rpartition("/")[2] in ("", page) for path, mark, _ in targets)
