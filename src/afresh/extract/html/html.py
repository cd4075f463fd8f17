"""HTML to a document: parsed once, links of the whole page, Markdown of its content."""

from selectolax.lexbor import LexborHTMLParser

from afresh.extract.decode import decode
from afresh.extract.html.depth import flatten
from afresh.extract.html.head import Head, choose_title, foreign_canonical, one_line, read_head
from afresh.extract.html.hidden_links.all import Hidden, Shown, hidden_links, scripts_of
from afresh.extract.html.hidden_text import drop_hidden
from afresh.extract.html.login_forms import find_login
from afresh.extract.html.main_content import find_main
from afresh.extract.html.markdown import render
from afresh.extract.html.noise import drop_tools
from afresh.extract.html.tidy import tidy
from afresh.extract.language import language_of
from afresh.extract.links import MANY_TAGS, Links, collect_links, with_hidden, with_seen_words
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import links_hash, text_hash
from afresh.urls.canonical import canonical, domain_of

_PERMALINKS = " ¶#§🔗"


class HtmlExtractor:
    """Reads HTML pages."""

    version = recipe.HTML

    def __init__(self, *, hidden_links: bool = True) -> None:
        self._hidden_links = hidden_links

    def extract(self, body: Body) -> Document:
        """The document of an HTML body: title, Markdown of the main content, every link, language, hashes."""
        html = decode(body.data, body.charset, html=True)
        tag_count = html.count("<")
        tree = LexborHTMLParser(flatten(html, tag_count))
        head = read_head(tree, body.url)
        base = head.base or body.url
        twin = canonical(head.markdown, base) if head.markdown else None
        finds = self._hidden_links and tag_count <= MANY_TAGS
        links = collect_links(tree, base, tag_count, head.refresh, twin)
        scripts = scripts_of(tree) if finds else ()
        shown = Shown(html, tree, head, domain_of(body.url), scripts, links.by_href)
        clicked = tuple(hidden_links(shown, of_elements=True)) if finds else ()
        told = tuple(hidden_links(shown, of_elements=False)) if finds else ()
        leads_on = bool(head.refresh) or tree.css_first("frameset") is not None
        dropped = drop_hidden(tree, rendered=body.rendered is not None)
        seen, seen_clicked = links, clicked
        if dropped.some:
            seen = with_seen_words(links, tree, base, tag_count)
            seen_clicked = _with_seen_words(clicked, shown)
        heading, markdown = _content(tree, head, body.url, base)
        if dropped.by_styles and not any(map(str.isalnum, markdown)):  # hidden until a script shows it
            seen, seen_clicked = links, clicked
            heading, markdown = _content(LexborHTMLParser(flatten(html, tag_count)), head, body.url, base)
        links = _with_hidden(seen, (*seen_clicked, *told), head, base, {body.url, twin})
        login = find_login(html, len(markdown))
        return Document(
            title=choose_title(head.title, heading, head.site_name),
            markdown=markdown,
            links=links.kept,
            language=language_of(markdown, head.language, body.language),
            content_hash=text_hash(markdown),  # it is in normal form already
            links_hash=links_hash(links.kept),
            index=body.index and head.index,
            follow=body.follow and head.follow,
            links_left_out=links.left_out,
            long_links=links.too_long,
            foreign_canonical=foreign_canonical(head.canonical, base, body.url),
            login=login.is_all,
            asks_password=login.has_field,
            leads_on=leads_on,
            styles_cut=dropped.is_cut,
        )


def _with_seen_words(hidden: tuple[Hidden, ...], shown: Shown) -> tuple[Hidden, ...]:
    """Links of elements with the words that are left of them now that hidden text is off the tree."""
    if not hidden:
        return ()
    words: dict[str, str] = {}
    for found in hidden_links(shown, of_elements=True):
        words[found.raw_url] = words.get(found.raw_url) or found.text
    return tuple([found._replace(text=words.get(found.raw_url, "")) for found in hidden])


def _with_hidden(
    links: Links, hidden: tuple[Hidden, ...], head: Head, base: str, same: set[str | None]
) -> Links:
    named = canonical(head.canonical, base) if hidden and head.canonical else None
    return with_hidden(links, hidden, base, {*same, named}) if hidden else links


def _content(tree: LexborHTMLParser, head: Head, url: str, base: str) -> tuple[str, str]:
    """The first heading and the Markdown of the main element, which is changed on the way."""
    main = find_main(tree, head.generator)
    if main is None:
        return "", ""
    drop_tools(main, head.generator, url)
    tidy(tree, main, head.generator)
    first = main.css_first("h1")
    heading = one_line(first.text()).strip(_PERMALINKS) if first is not None else ""
    return heading, render(main.html or "", base)
