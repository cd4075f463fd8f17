"""Convert HTML to a document: parse it once, collect all links, and convert the main content to Markdown."""

import re
from collections import Counter

from selectolax.lexbor import LexborHTMLParser

from afresh.crawl.plausibility import SHORT
from afresh.extract.decode import decode
from afresh.extract.html.head import Head, choose_title, foreign_canonical, one_line, read_head
from afresh.extract.html.hidden_links import LINK_ATTRIBUTES, HiddenLink, LinkPage, hidden_links, scripts_of
from afresh.extract.html.hidden_text import NEVER_VISIBLE, drop_hidden
from afresh.extract.html.login_forms import find_login
from afresh.extract.html.main_content import GENERATORS, drop_tools, find_main, lower_html_of
from afresh.extract.html.markdown import render, tidy
from afresh.extract.language import language_of
from afresh.extract.links import MANY_TAGS, collect_links, with_hidden, with_seen_words
from afresh.model.fetch import Body, Document
from afresh.text.error_messages import is_error_message
from afresh.text.normalize import links_hash, text_hash
from afresh.urls.canonical import canonical, domain_of

DEEPEST = 400  # nesting of one kind of element; the converter fails at 1,024 levels in total
SHALLOW_TAGS = 2 * DEEPEST  # a page with fewer tags cannot be nested too deeply
PIECE_CHARS = 4_096
LITTLE = 500  # characters: a shorter `noscript` only asks to enable scripts

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NEVER_NEST = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr", "p", "li", "dt", "dd", "option", "tr", "td", "th", "a",
))  # fmt: skip
# One search of the tree for all of these shows that most pages have none; each search walks the whole tree.
RARE = f"frameset, button, select, [hidden], {LINK_ATTRIBUTES}, {NEVER_VISIBLE}"
_PERMALINKS = " ¶#§🔗"


def flatten(html: str, tag_count: int) -> str:
    """Remove tags nested deeper than `DEEPEST`, but keep their content; a low `tag_count` shows that there are none."""
    deep = _deep_names(html) if tag_count >= SHALLOW_TAGS and _may_be_deep(html) else ()
    if not deep:
        return html
    return re.sub(rf"</?(?:{'|'.join(deep)})(?![a-zA-Z0-9])[^>]*>", "\n", html, flags=re.IGNORECASE)


def _may_be_deep(html: str) -> bool:
    """Return whether a page may be nested too deeply; the fast estimate misses about 500 levels, which do no harm."""
    surplus = 0
    for start in range(0, len(html), PIECE_CHARS):
        end = start + PIECE_CHARS
        surplus += html.count("<", start, end) - 2 * html.count("</", start, end + 1)  # a "</" may cross the border
        if surplus > DEEPEST:
            return True
    return False


def _deep_names(html: str) -> list[str]:
    depth: Counter[str] = Counter()
    deepest: Counter[str] = Counter()
    for closing, raw_name in _TAG.findall(html):
        name = raw_name.lower()
        if name in _NEVER_NEST:
            continue
        if closing:
            depth[name] = max(0, depth[name] - 1)
        else:
            depth[name] += 1
            deepest[name] = max(deepest[name], depth[name])
    return [name for name, most in deepest.items() if most > DEEPEST]


def extract_html(body: Body, *, with_hidden_links: bool = True) -> Document:
    html = decode(body.data, body.charset, html=True)
    tag_count = html.count("<")
    tree, lower_html = LexborHTMLParser(flatten(html, tag_count)), lower_html_of(html)
    head = read_head(tree, body.url)
    base = head.base or body.url
    alternate = canonical(head.markdown, base) if head.markdown else None
    links = collect_links(tree, base, tag_count, head.refresh, alternate)
    finds = with_hidden_links and tag_count <= MANY_TAGS
    rare = frozenset([node.tag or "" for node in tree.css(RARE)])
    scripts = scripts_of(tree) if finds and b"<script" in lower_html else ()
    page = LinkPage(rare, tree, head, domain_of(body.url), scripts, links.by_href)
    clicked = tuple(hidden_links(page, of_elements=True)) if finds else ()
    in_data = tuple(hidden_links(page, of_elements=False)) if finds else ()
    leads_on = bool(head.refresh) or "frameset" in rare
    dropped = drop_hidden(tree, lower_html, rare, rendered=body.rendered is not None)
    seen, seen_clicked = links, clicked
    if dropped.some:
        seen = with_seen_words(links, tree, base, tag_count)
        seen_clicked = _with_seen_words(clicked, page)
    heading, content = _content(tree, lower_html, head, body.url)
    noisy = not head.generator.startswith(tuple(GENERATORS))
    del tree, page, scripts  # a tree takes ten times the memory of its page, and conversion needs as much
    markdown = render(content, base, noisy=noisy)
    if not any(map(str.isalnum, markdown)) and (dropped.by_styles or b"<noscript" in lower_html):
        # scripts make the page, and `noscript` has its text; or the page is hidden until a script shows it
        for unhidden in (False, True) if dropped.by_styles else (False,):
            tree = LexborHTMLParser(flatten(html, tag_count))
            if not unhidden:
                tree.unwrap_tags(["noscript"])
                drop_hidden(tree, lower_html, rare, rendered=False)
            new_heading, content = _content(tree, lower_html, head, body.url)
            whole = render(content, base, noisy=noisy)
            if unhidden or len(whole) > LITTLE:
                seen, seen_clicked = (links, clicked) if unhidden else (seen, seen_clicked)
                heading, markdown = new_heading, whole
                break
    links = seen
    if hidden := (*seen_clicked, *in_data):
        named = canonical(head.canonical, base) if head.canonical else None
        links = with_hidden(seen, hidden, base, {body.url, alternate, named})
    login = find_login(html, lower_html, len(markdown))
    title = choose_title(head.title, heading, head.site_name)
    return Document(
        title=title,
        markdown=markdown,
        links=links.kept,
        language=language_of(markdown, head.language, body.language),
        content_hash=text_hash(markdown),  # already normalised
        links_hash=links_hash(links.kept),
        index=body.index and head.index,
        follow=body.follow and head.follow,
        links_left_out=links.left_out,
        long_links=links.too_long,
        foreign_canonical=foreign_canonical(head.canonical, base, body.url),
        login=login.is_all,
        asks_password=login.has_field,
        is_error=len(markdown) <= SHORT and is_error_message(title, markdown),
        leads_on=leads_on,
        styles_cut=dropped.is_cut,
    )


def _with_seen_words(hidden: tuple[HiddenLink, ...], page: LinkPage) -> tuple[HiddenLink, ...]:
    """Return hidden links, each with the text that its element has in `page`, from which invisible text was removed."""
    words: dict[str, str] = {}
    for found in hidden_links(page, of_elements=True) if hidden else ():
        words[found.raw_url] = words.get(found.raw_url) or found.text
    return tuple([found._replace(text=words.get(found.raw_url, "")) for found in hidden])


def _content(tree: LexborHTMLParser, lower_html: bytes, head: Head, url: str) -> tuple[str, str]:
    """Return the first heading and the HTML of the main content; `tree` is modified, `lower_html` is the whole page."""
    main = find_main(tree, head.generator)
    if main is None:
        return "", ""
    drop_tools(main, head.generator, url)
    tidy(tree, main, lower_html, head.generator)
    first = main.css_first("h1")
    heading = one_line(first.text()).strip(_PERMALINKS) if first is not None else ""
    return heading, main.html or ""
