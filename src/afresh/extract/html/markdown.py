"""Clean HTML to Markdown: the last cuts on the serialised text, then the converter."""

import re
from dataclasses import replace
from functools import lru_cache
from html import escape

from html_to_markdown import (
    CodeBlockStyle,
    ConversionOptions,
    HeadingStyle,
    HiddenContent,
    HighlightStyle,
    InlineDataMedia,
    LinkStyle,
    ListIndentType,
    NewlineStyle,
    OutputFormat,
    PreprocessingOptions,
    PreprocessingPreset,
    TierStrategy,
    UrlEscapeStyle,
    WhitespaceMode,
    convert,
)

from afresh.text.normalize import normalise
from afresh.urls.canonical import directory_of

# A page with more links is a listing: its Markdown shows the words, `Document.links` the targets.
MANY_LINKS = 20_000

# Enum members, not their names: the converter would look each name up again for every page.
OPTIONS = ConversionOptions(
    heading_style=HeadingStyle.ATX,
    list_indent_type=ListIndentType.SPACES,
    bullets="-",
    highlight_style=HighlightStyle.NONE,
    whitespace_mode=WhitespaceMode.NORMALIZED,
    newline_style=NewlineStyle.SPACES,
    code_block_style=CodeBlockStyle.BACKTICKS,
    compact_tables=True,
    expand_abbreviations=False,
    include_blockquote_citations=False,
    extract_metadata=False,
    preprocessing=PreprocessingOptions(enabled=False, preset=PreprocessingPreset.MINIMAL),
    inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
    hidden_content=HiddenContent.REACHABLE,
    url_escape_style=UrlEscapeStyle.ANGLE,
    link_style=LinkStyle.INLINE,
    output_format=OutputFormat.MARKDOWN,
    tier_strategy=TierStrategy.TIER2,
)

# The converter sets no blank line before a block quote, so two would run into one: a marked paragraph keeps
# them apart and is taken out again. U+FDD0 is no character, so no page means it.
_MARK = "\ufdd0"
_CODE_PLACE = "\ufdd1"  # stands for a code block while the text around is trimmed
_RUNS_OF_BLANKS = (" " * 8, " " * 4, "  ", "  ")  # four plain cuts fold them faster than one split
_MARKED_LINE = re.compile(rf"(?:^|\n)[ >]*{_MARK}")

# The serialiser sets every attribute in double quotes and escapes < and > in values, so these cuts are safe.
_TITLE_ATTRIBUTE = re.compile(r' title="[^"]*"')
_ODD_ADDRESS = re.compile(r' href="(?!(?:https?|mailto|ftp):)[^":/?#]*:[^"]*"', re.IGNORECASE)
_IMAGE = re.compile(r"<img([^<>]*)>")
_BLOCK_END = re.compile(r"(</(?:p|div|h[1-6]|ul|ol|table|section|figure)>) +(?=<img)")
_ALT = re.compile(r' alt="([^"]*)"')
_SRC = re.compile(r' src="([^"?]*)')
_TERM = re.compile(r"<dt([^<>]*)>(.*?)</dt>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_CODE = re.compile(
    r"<(?:code|tt|kbd|samp)(?: [^<>]*)?>([^<&`\\\s](?:[^<&`\\]*[^<&`\\\s])?)</(?:code|tt|kbd|samp)>(?![\w`])"
)
_EMPHASIS = re.compile(
    r"<(?:em|i|var|cite)(?: [^<>]*)?>([^<&*_\s](?:[^<&*]*[^<&*_\s])?)</(?:em|i|var|cite)>(?![\w*])"
)
_STRONG = re.compile(r"<(?:strong|b)(?: [^<>]*)?>([^<&*_\s](?:[^<&*]*[^<&*_\s])?)</(?:strong|b)>(?![\w*])")
_ANCHOR = re.compile(r"</?a(?: [^<>]*)?>")
_HEADING = re.compile(r"(<h[1-6][^<>]*>)(.*?)(</h[1-6]>)", re.DOTALL)
_EMPTY_HEADING = re.compile(r"^#{1,6}[ \t]*$\n?", re.MULTILINE)


def render(html: str, base: str) -> str:
    """The Markdown of a piece of serialised HTML, with absolute links."""
    markdown = convert(_trim(html, base), _options(directory_of(base))).content or ""
    markdown = _EMPTY_HEADING.sub("", markdown) if "#\n" in markdown or "# \n" in markdown else markdown
    if _MARK in markdown:
        markdown = _MARKED_LINE.sub("", markdown).replace(_MARK, "")
    return normalise(markdown)


@lru_cache(maxsize=64)
def _options(directory: str) -> ConversionOptions:
    """The options for all pages of one directory: building them costs as much as a small page."""
    return replace(OPTIONS, base_url=directory)


def _trim(html: str, base: str) -> str:
    """Cut what would only make noise: markup in code blocks, white space and attributes elsewhere."""
    texts, blocks = _split_code(html.replace(_CODE_PLACE, ""))
    text = _CODE_PLACE.join(texts).replace("\n", " ")
    for blanks in _RUNS_OF_BLANKS:
        text = text.replace(blanks, " ")
    around = _trim_text(text, base).split(_CODE_PLACE)
    return "".join([piece for pair in zip(around, [*blocks, ""], strict=True) for piece in pair])


def _split_code(html: str) -> tuple[list[str], list[str]]:
    """The text around the code blocks, and the blocks without markup inside; plain cuts are quick."""
    first, *rest = html.split("<pre")
    texts, blocks = [first], []
    for part in rest:
        block, _, text = part.partition("</pre>")
        attributes, _, code = block.partition(">")
        blocks.append(f"<pre{attributes}>{_TAG.sub('', code.replace('<br>', chr(10)))}</pre>")
        texts.append(text)
    return texts, blocks


def _trim_text(html: str, base: str) -> str:
    """Cut what says nothing in Markdown, make addresses whole, and make terms stand out."""
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
    if html.count("<a ") > MANY_LINKS:
        html = _ANCHOR.sub(" ", html)
    return _mark_inline(html)


def _mark_inline(html: str) -> str:
    """Write simple code, emphasis and strong text as Markdown at once.

    The converter would take `- x` after such an element for the start of a list and escape it.
    """
    html = html.replace("</code><code", "</code> <code")
    return _STRONG.sub(r"**\1**", _EMPHASIS.sub(r"*\1*", _CODE.sub(r"`\1`", html)))


def _plain_image(image: re.Match[str]) -> str:
    """An image without its query, which often is a version; nothing for one that has no words."""
    alt, src = _ALT.search(image[1]), _SRC.search(image[1])
    words = alt[1].strip() if alt else ""
    return f'<img src="{src[1]}" alt="{words}">' if words and src else words


def _plain_heading(heading: re.Match[str]) -> str:
    """A heading without links, as it is read in a list of headings."""
    return heading[1] + _ANCHOR.sub("", heading[2]) + heading[3] if "<a" in heading[2] else heading[0]


def _plain_term(term: re.Match[str]) -> str:
    """A signature as code, any other term in bold unless it shows code already."""
    attributes, inner = term[1], term[2]
    if 'class="sig' in attributes or " sig-object" in attributes:
        return f"<dt><code>{' '.join(_TAG.sub('', inner).split())}</code></dt>"
    if "<code" in inner or "<a " in inner or not inner.strip() or "<p" in inner or "<strong" in inner:
        return f"<dt>{inner}</dt>"
    return f"<dt><strong>{inner.strip()}</strong></dt>"
