"""Convert bytes to documents: web pages, text and other files."""

from afresh.extract.html.html import HtmlExtractor
from afresh.extract.markdown import MarkdownExtractor, TextExtractor
from afresh.extract.registry import VERSION, extract, extract_visible

__all__ = ["VERSION", "HtmlExtractor", "MarkdownExtractor", "TextExtractor", "extract", "extract_visible"]
