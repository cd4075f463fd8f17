"""From bytes to a document: web pages, text, and the files that stand beside them."""

from afresh.extract.html.html import HtmlExtractor
from afresh.extract.markdown import MarkdownExtractor
from afresh.extract.registry import VERSION, extract, extract_visible
from afresh.extract.text import TextExtractor

__all__ = ["VERSION", "HtmlExtractor", "MarkdownExtractor", "TextExtractor", "extract", "extract_visible"]
