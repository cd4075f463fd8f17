"""Which element of a page holds its content: known generators by name, others by what is usual."""

from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html.density import densest
from afresh.extract.html.noise import drop_chrome

FEWEST_CHARS = 80
FEWEST_SHARE = 0.2  # of the text of the whole body, once the chrome is gone


@dataclass(frozen=True, slots=True)
class Generator:
    """A documentation generator: how its name starts in the page, and where it puts the content."""

    name: str
    main: tuple[str, ...]


GENERATORS = (
    Generator("sphinx", ("article.bd-article", "[role=main]", "div.body", "div.document")),
    Generator("docbook", ("#docContent", "body")),
    Generator("mkdocs", ("article.md-content__inner", "[role=main]", "main")),
    Generator("docusaurus", (".theme-doc-markdown", "article", "main")),
    Generator("javadoc", ("main", "[role=main]", ".contentContainer")),
    Generator("mediawiki", (".mw-parser-output", "#mw-content-text")),
)
USUAL_PLACES = (
    ".markdown-body",
    "article.md-content__inner",
    ".theme-doc-markdown",
    "article.bd-article",
    "[itemprop=articleBody]",
    ".mw-parser-output",
    "#docContent",
    "[role=main]",
    "main",
    "article",
    "div.book, div.chapter, div.refentry, div.sect1",
    ".entry-content, .post-content, .article-content, .article-body, .post-body",
    "#main-content, #content, #main, .main-content",
)


def find_main(tree: LexborHTMLParser, generator: str) -> LexborNode | None:
    """The element that holds the content of a page; chrome may be taken off the tree on the way."""
    if tree.body is None:
        return None
    for known in GENERATORS:
        if generator.startswith(known.name):
            found = _first(tree, known.main)
            if found is not None:
                return found
    drop_chrome(tree)
    return _usual(tree, tree.body) or densest(tree.body) or tree.body


def _first(tree: LexborHTMLParser, selectors: tuple[str, ...]) -> LexborNode | None:
    for selector in selectors:
        node = tree.css_first(selector)
        if node is not None and _size(node) >= FEWEST_CHARS:
            return node
    return None


def _usual(tree: LexborHTMLParser, body: LexborNode) -> LexborNode | None:
    whole = _size(body)
    for selector in USUAL_PLACES:
        nodes = tree.css(selector)
        if not nodes or (selector == "article" and len(nodes) > 1):
            continue  # several articles are a list of teasers: none of them is the page
        size = _size(nodes[0])
        if size >= FEWEST_CHARS and size >= FEWEST_SHARE * whole:
            return nodes[0]
    return None


def _size(node: LexborNode) -> int:
    return len(node.text(skip_empty=True))
