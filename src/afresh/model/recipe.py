"""The recipe: what turns a body into what is indexed, by version; bump one whenever its output changes.

A page is read again when the recipe of its reading changed; its chunks are cut again from its stored text
when only theirs did, and its vectors are made again when only the model changed (`afresh reindex`).
"""

import hashlib

HTML = "html-7"
MARKDOWN = "markdown-2"
TEXT = "text-2"
PDF = "pdf-1"
OFFICE = "office-1"
EPUB = "epub-1"
NOTEBOOK = "notebook-1"
DATA = "data-1"
RST = "rst-1"
ASCIIDOC = "asciidoc-1"
CODE = "code-1"
READING = "+".join((HTML, MARKDOWN, TEXT, PDF, OFFICE, EPUB, NOTEBOOK, DATA, RST, ASCIIDOC, CODE))
CHUNKER = "markdown-4"  # and the analysis of its words


def recipe_of(body: str, model: str | None, *, hidden_links: bool = True, render: str = "auto") -> str:
    """The fingerprint of what needs the page itself; where no text is kept, that is everything."""
    parts = (READING, body) if body != "none" else (READING, body, CHUNKER, model or "")
    parts = parts if hidden_links else (*parts, "visible links only")
    parts = parts if render == "auto" else (*parts, f"render {render}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
