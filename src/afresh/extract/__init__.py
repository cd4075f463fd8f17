"""Convert bytes to documents: web pages, text and other files."""

from afresh.extract.registry import extract, extract_visible

__all__ = ["extract", "extract_visible"]
