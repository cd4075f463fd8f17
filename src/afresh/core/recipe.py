"""The recipe: what turns a body into what is indexed, by version; bump one whenever its output changes."""

HTML = "html-2"
MARKDOWN = "markdown-1"
TEXT = "text-1"
CHUNKER = "markdown-1"

VERSIONS = (f"{HTML}+{MARKDOWN}+{TEXT}", CHUNKER)
