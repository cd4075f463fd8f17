"""Convert HTML to Markdown: simplify code, callouts and tables, remove noise, and run the converter."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from html import escape
from itertools import islice

import html_to_markdown as converter
from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html.main_content import around, detach
from afresh.text.normalize import normalise
from afresh.urls.canonical import directory_of

# A page with more links is a listing: its Markdown has only the link texts, and `Document.links` the targets.
MANY_LINKS = 20_000

# Enum members, because the converter would look up names again for every page.
OPTIONS = converter.ConversionOptions(
    heading_style=converter.HeadingStyle.ATX,
    list_indent_type=converter.ListIndentType.SPACES,
    bullets="-",
    highlight_style=converter.HighlightStyle.NONE,
    whitespace_mode=converter.WhitespaceMode.NORMALIZED,
    newline_style=converter.NewlineStyle.SPACES,
    code_block_style=converter.CodeBlockStyle.BACKTICKS,
    compact_tables=True,
    expand_abbreviations=False,
    include_blockquote_citations=False,
    extract_metadata=False,
    preprocessing=converter.PreprocessingOptions(enabled=False, preset=converter.PreprocessingPreset.MINIMAL),
    inline_data_media=converter.InlineDataMedia.ALT_TEXT_ONLY,
    hidden_content=converter.HiddenContent.REACHABLE,
    url_escape_style=converter.UrlEscapeStyle.ANGLE,
    link_style=converter.LinkStyle.INLINE,
    output_format=converter.OutputFormat.MARKDOWN,
    tier_strategy=converter.TierStrategy.TIER2,
)

# The converter writes no blank line before a block quote, so adjacent quotes would merge. A paragraph with this
# mark separates them and is removed afterwards. U+FDD0 is a noncharacter, which pages do not contain.
_MARK = "\ufdd0"
_CODE_PLACE = "\ufdd1"  # placeholder for a code block while the surrounding text is trimmed
_BLANKS = re.compile("  +")  # beginning with two plain characters: twice as fast as " {2,}"
_MARKED_LINE = re.compile(rf"(?:^|\n)[ >]*{_MARK}")

# The serialiser double-quotes every attribute and escapes < and > in values, so these patterns are safe.
_TITLE_ATTRIBUTE = re.compile(r' title="[^"]*"')
_ODD_ADDRESS = re.compile(r' href="(?!(?i:https?|mailto|ftp):)[^":/?#]*:[^"]*"')
_IMAGE = re.compile(r"<img([^<>]*)>")
_BLOCK_END = re.compile(r"(</(?:p|div|h[1-6]|ul|ol|table|section|figure)>) +(?=<img)")
_ALT = re.compile(r' alt="([^"]*)"')
_SRC = re.compile(r' src="([^"?]*)')
_TERM = re.compile(r"<dt([^<>]*)>(.*?)</dt>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_CODE = re.compile(
    r"<(?:code|tt|kbd|samp)(?: [^<>]*)?>([^<&`\\\s](?:[^<&`\\]*[^<&`\\\s])?)</(?:code|tt|kbd|samp)>(?![\w`])"
)
_EMPHASIS = re.compile(r"<(?:em|i|var|cite)(?: [^<>]*)?>([^<&*_\s](?:[^<&*]*[^<&*_\s])?)</(?:em|i|var|cite)>(?![\w*])")
_STRONG = re.compile(r"<(?:strong|b)(?: [^<>]*)?>([^<&*_\s](?:[^<&*]*[^<&*_\s])?)</(?:strong|b)>(?![\w*])")
_ANCHOR = re.compile(r"</?a(?: [^<>]*)?>")
_EMPTY_LINK = re.compile(r"<a(?: [^<>]*)? href=[^<>]*>(?:\s|</?(?:i|b|em|strong|div|p)(?: [^<>]*)?>)*</a>")
_HEADING = re.compile(r"(<h[1-6][^<>]*>)(.*?)(</h[1-6]>)", re.DOTALL)
_EMPTY_HEADING = re.compile(r"^#{1,6}[ \t]*$\n?", re.MULTILINE)


def render(html: str, base: str, *, noisy: bool = False) -> str:
    """Convert HTML to Markdown; if it is `noisy`, that is not documentation of a known generator, remove repeats."""
    trimmed = _trim(_EMPTY_LINK.sub(" ", html) if noisy else html, base)
    markdown = converter.convert(trimmed, _options(directory_of(base))).content or ""
    markdown = _EMPTY_HEADING.sub("", markdown) if "#\n" in markdown or "# \n" in markdown else markdown
    if _MARK in markdown:
        markdown = _MARKED_LINE.sub("", markdown).replace(_MARK, "")
    return normalise(without_repeats(markdown) if noisy else markdown)


SHORT = 1_000  # a text with fewer characters repeats little
FEW_WORDS = 6
OFTEN = 3
MANY_WORDS = 10
MOST_CODE = 20  # a text with more backticks is documentation, which repeats itself on purpose

_LINE_MARK = re.compile(r"^[\s>]*(?:[-+*] )*")
_LINKED = re.compile(r"\]\([^()\s]*\)|[\[\]*_`\\]")
_ONE_NUMBER = re.compile(r"^([^\d\n]*)\d+([^\d\n]*)$")
_NO_REPEATS = tuple("#|!0123456789")  # headings, tables, images and steps


def without_repeats(markdown: str) -> str:
    """Remove long lines that occurred before, and labels that occur often, such as `Reply` or `Posts: 7`."""
    if len(markdown) < SHORT or markdown.count("`") > MOST_CODE or "```" in markdown:
        return markdown
    lines = markdown.split("\n")
    plain = [_LINKED.sub("", _LINE_MARK.sub("", line)).strip() for line in lines]
    texts = ["" if line.lstrip().startswith(_NO_REPEATS) else text for line, text in zip(lines, plain, strict=True)]
    labels = [_ONE_NUMBER.sub(r"\1 \2", text) for text in texts]
    counts = Counter(labels)
    seen: set[str] = set()
    kept = []
    for line, text, label in zip(lines, texts, labels, strict=True):
        words = text.count(" ") + 1
        is_label = counts[label] >= OFTEN and words <= FEW_WORDS and not text.endswith((".", "?", "!", ":"))
        if not text or not (is_label or (text in seen and words >= MANY_WORDS)):
            kept.append(line)
        seen.add(text)
    return "\n".join(kept)


@lru_cache(maxsize=64)
def _options(directory: str) -> converter.ConversionOptions:
    """Return the conversion options for all pages of a directory; cached, because making them is slow."""
    return replace(OPTIONS, base_url=directory)


def _trim(html: str, base: str) -> str:
    """Remove markup inside code blocks, and white space and attributes elsewhere."""
    texts, blocks = _split_code(html.replace(_CODE_PLACE, ""))
    text = _BLANKS.sub(" ", _CODE_PLACE.join(texts).replace("\n", " "))
    around = _trim_text(text, base).split(_CODE_PLACE)
    return "".join([piece for pair in zip(around, [*blocks, ""], strict=True) for piece in pair])


def _split_code(html: str) -> tuple[list[str], list[str]]:
    first, *rest = html.split("<pre")
    texts, blocks = [first], []
    for part in rest:
        block, _, text = part.partition("</pre>")
        attributes, _, code = block.partition(">")
        blocks.append(f"<pre{attributes}>{_TAG.sub('', code.replace('<br>', chr(10)))}</pre>")
        texts.append(text)
    return texts, blocks


def _trim_text(html: str, base: str) -> str:
    """Remove markup that Markdown cannot express, make URLs absolute, and set definition terms in bold or as code."""
    path = escape(base.partition("?")[0])
    html = _TITLE_ATTRIBUTE.sub("", html).replace(' href="#', f' href="{escape(base)}#')
    html = _ODD_ADDRESS.sub("", html).replace(' href="?', f' href="{path}?')
    if "<img" in html:
        html = _BLOCK_END.sub(r"\1", _IMAGE.sub(_plain_image, html))
    if "<dt" in html:
        html = _TERM.sub(_plain_term, html)
    if "<blockquote" in html:
        html = html.replace("<blockquote", f"<p>{_MARK}</p><blockquote")
    html = _HEADING.sub(_plain_heading, html)
    if len(html) > 3 * MANY_LINKS and html.count("<a ") > MANY_LINKS:
        html = _ANCHOR.sub(" ", html)
    # Convert simple code, emphasis and strong text here: after these elements, the converter takes `- x`
    # for the start of a list and escapes it.
    html = html.replace("</code><code", "</code> <code")
    html = _CODE.sub(lambda found: f"`{found[1]}`", html)  # Python 3.11 expands templates slowly
    html = _EMPHASIS.sub(lambda found: f"*{found[1]}*", html)
    return _STRONG.sub(lambda found: f"**{found[1]}**", html)


def _plain_image(image: re.Match[str]) -> str:
    """Return an image without the query of its URL, which is often a version; without a URL, return its text."""
    alt, src = _ALT.search(image[1]), _SRC.search(image[1])
    words = alt[1].strip() if alt else ""
    return f'<img src="{src[1]}" alt="{words}">' if words and src else words


def _plain_heading(heading: re.Match[str]) -> str:
    """Return a heading without links, for readable outlines."""
    return heading[1] + _ANCHOR.sub("", heading[2]) + heading[3] if "<a" in heading[2] else heading[0]


def _plain_term(term: re.Match[str]) -> str:
    """Return a definition term as code if it is a signature, else in bold unless it contains markup."""
    attributes, inner = term[1], term[2]
    if 'class="sig' in attributes or " sig-object" in attributes:
        return f"<dt><code>{' '.join(_TAG.sub('', inner).split())}</code></dt>"
    if "<code" in inner or "<a " in inner or not inner.strip() or "<p" in inner or "<strong" in inner:
        return f"<dt>{inner}</dt>"
    return f"<dt><strong>{inner.strip()}</strong></dt>"


CALLOUTS = ", ".join((
    ".admonition", ".theme-admonition", ".markdown-alert", ".callout", ".starlight-aside", ".alert", "div.note",
    "div.warning", "div.tip", "div.caution", "div.important", "div.danger", "div.hint", "div.info", ".admonitionblock",
))  # fmt: skip
CALLOUT_TITLES = ", ".join((
    ".admonition-title", ".markdown-alert-title", "[class*=admonitionHeading]", ".callout-title",
    ".starlight-aside__title", "h3.title", ".alert-heading", "td.icon",
))  # fmt: skip
KINDS = (
    "note", "warning", "tip", "caution", "important", "danger", "hint", "info", "attention", "error", "seealso",
)  # fmt: skip
FEW_CALLOUTS = {"sphinx": ".admonition", "docbook": "div.note, div.warning, div.tip, div.caution, div.important"}

_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-(?!source)|brush:\s*|sourceCode\s+)"
    r"([A-Za-z0-9+#_.-]+)"
)
_ALIASES = {
    "python3": "python", "py": "python", "py3": "python", "ipython3": "python", "pycon3": "pycon", "js": "javascript",
    "shell-session": "console", "c++": "cpp", "rb": "ruby", "yml": "yaml", "plaintext": "", "none": "", "text": "",
    "default": "", "plain": "", "txt": "", "notranslate": "", "nohighlight": "", "undefined": "",
}  # fmt: skip
_WRAPPERS_UP = 3


def tidy(tree: LexborHTMLParser, main: LexborNode, lower_html: bytes, generator: str) -> None:
    """Simplify code blocks, callouts and layout tables of `main` in place; `lower_html` shows which tags exist."""
    if b"<pre" in lower_html:
        _name_code_languages(main)
    few = next((selector for name, selector in FEW_CALLOUTS.items() if generator.startswith(name)), None)
    callouts = {node.mem_id: node for node in main.css(few or CALLOUTS)}  # by id, as a node may match twice
    for node in callouts.values():
        _quote(tree, node)
    for table in reversed(main.css("table") if b"<table" in lower_html else ()):  # layout tables and lists
        if _is_layout(table):
            _refill(tree, table, "div", "div", _cells(table))
        elif table.css_first("tr > * + *") is None and table.css_first("td > p + p") is not None:
            _refill(tree, table, "ul", "li", _cells(table))  # one column with several paragraphs in a cell
    for node in main.css("code code, code em, kbd kbd") if b"<code" in lower_html or b"<kbd" in lower_html else ():
        node.unwrap()
    if few is None:
        _free_headings(main)
        main.unwrap_tags(["font", "center"])
    for contents in reversed(main.css("dl.toc")):  # convert to lists, the inner ones first
        _refill(tree, contents, "ul", "li", contents.iter(), terms=True)
    main.unwrap_tags(["span"])


def code_language(names: str) -> str | None:
    """Return the code language that class names contain, as Markdown spells it; "" for plain text, None if none."""
    found = _LANGUAGE.search(names)
    if found is None:
        return None
    name = found[1].rstrip(";").lower()
    return _ALIASES.get(name, name)


def _name_code_languages(main: LexborNode) -> None:
    for pre in main.css("pre"):
        language = _language_of(pre)
        attributes = pre.attrs
        if language:
            attributes["class"] = f"language-{language}"
        elif "class" in attributes:
            del attributes["class"]


def _language_of(pre: LexborNode) -> str:
    code = pre.first_child
    while code is not None and code.tag != "code":
        code = code.next
    language = code_language(code.attributes.get("class") or "") if code is not None else None
    for node in islice(around(pre), _WRAPPERS_UP) if language is None else ():
        attributes = node.attributes
        language = code_language(attributes.get("class") or "")
        if language is None and attributes.get("data-lang"):
            language = str(attributes["data-lang"]).lower()
        if language is not None:
            break
    return language or ""


def _free_headings(main: LexborNode) -> None:
    """Move sections out of list items, where some generators put them."""
    lists: dict[int, LexborNode] = {}
    for heading in main.css("li > h2, li > h3, li > section > h2, li > section > h3, li > section > h4"):
        item = heading.parent
        if item is not None and item.tag != "li":
            item = item.parent
        if item is not None and item.parent is not None:
            lists[item.parent.mem_id] = item.parent
    for holder in lists.values():
        for item in list(holder.iter()):
            item.unwrap()
        holder.unwrap()


def _quote(tree: LexborHTMLParser, node: LexborNode) -> None:
    """Wrap a callout in a block quote that begins with its title in bold."""
    names = (node.attributes.get("class") or "").lower()
    title = node.css_first(CALLOUT_TITLES)
    if title is not None:
        words = title.text().strip()
        detach(title)
    else:
        names = names.replace("alert-", "")
        words = next((kind.capitalize() for kind in KINDS if kind in names), "")
    quote = tree.create_node("blockquote")
    node.insert_before(quote)
    placed = node.prev
    if placed is None:
        return
    if words:
        strong = tree.create_node("strong")
        strong.insert_child(words)
        paragraph = tree.create_node("p")
        paragraph.insert_child(strong)
        placed.insert_child(paragraph)
    placed.insert_child(node, move=True)


def _refill(
    tree: LexborHTMLParser, node: LexborNode, outer: str, inner: str, parts: Iterable[LexborNode], terms: bool = False
) -> None:
    """Replace `node` by an `outer` element with one `inner` element per part, into which the part's content is moved.

    With `terms`, the parts are children of a `dl`: each `dt` shares an `inner` element with the parts up to the next.
    """
    node.insert_before(tree.create_node(outer))
    placed = node.prev
    if placed is None:
        return
    for part in list(parts):
        if not terms or part.tag == "dt" or placed.last_child is None:
            placed.insert_child(tree.create_node(inner))
        target = placed.last_child
        for child in list(part.iter(include_text=True)):
            if target is not None:
                target.insert_child(child, move=True)
    detach(node)


def _cells(table: LexborNode) -> list[LexborNode]:
    rows: list[LexborNode] = []
    for part in table.iter():
        rows += [part] if part.tag == "tr" else [row for row in part.iter() if row.tag == "tr"]
    return [cell for row in rows for cell in row.iter() if cell.tag in ("td", "th")]


def _is_layout(table: LexborNode) -> bool:
    attributes = table.attributes
    names = attributes.get("class") or ""
    if "highlighttable" in names or "rouge-table" in names or attributes.get("role") == "presentation":
        return True
    # `css("table")` includes the table itself, and a selector with "td" could match a cell around it.
    if len(table.css("table")) > 1 or table.css_first("h1, h2, h3, pre:only-child") is not None:
        return True
    return table.css_first("tr + tr, th") is None and len(table.css("tr")) == 1
