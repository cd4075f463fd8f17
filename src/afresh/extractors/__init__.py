"""From bytes to a document: web pages, text, and the files that stand beside them."""

from afresh.extractors.choose import VERSION, extract, extract_visible
from afresh.extractors.html import HtmlExtractor
from afresh.extractors.markdown import MarkdownExtractor
from afresh.extractors.text import TextExtractor

__all__ = ["VERSION", "HtmlExtractor", "MarkdownExtractor", "TextExtractor", "extract", "extract_visible"]
