"""Convert the bytes of web pages and files to documents in Markdown, and split documents into chunks."""

from afresh.extract.registry import extract, extract_visible

__all__ = ["extract", "extract_visible"]
