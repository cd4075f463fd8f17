"""Versions of the code that turns a body into indexed content; increase one whenever its output changes.

A page is read again if its reading recipe changed. If only the chunker changed, chunks are made again from
the stored text; if only the model changed, vectors are made again (`afresh reindex`).
"""

import hashlib

READING = "html-7+markdown-2+text-2+pdf-1+office-1+epub-1+notebook-1+data-1+rst-2+asciidoc-2+code-1"
CHUNKER = "markdown-4"  # includes the analysis of words


def recipe_of(body: str, model: str | None, *, hidden_links: bool = True, render: str = "auto") -> str:
    """Return a fingerprint of how a page is read; a page with another one is fetched again.

    If texts are not stored (`body` is `none`), it includes chunker and model, because both need the fetched page.
    """
    parts = (READING, body) if body != "none" else (READING, body, CHUNKER, model or "")
    parts = parts if hidden_links else (*parts, "visible links only")
    parts = parts if render == "auto" else (*parts, f"render {render}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
