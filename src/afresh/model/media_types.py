"""Media types of files, which nobody sends with a header, by how their names end."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
_BY_ENDING = {
    "adoc": "text/asciidoc",
    "asc": "text/asciidoc",
    "asciidoc": "text/asciidoc",
    "css": "text/css",
    "csv": "text/csv",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "epub": "application/epub+zip",
    "htm": "text/html",
    "html": "text/html",
    "ipynb": "application/x-ipynb+json",
    "json": "application/json",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "mdx": "text/mdx",
    "pdf": "application/pdf",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "rest": "text/x-rst",
    "rst": "text/x-rst",
    "xhtml": "application/xhtml+xml",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}


def media_type_of_file(url: str) -> str:
    """Return the media type that the name of a file says; text where it says nothing."""
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2].lower()
    return _BY_ENDING.get(name.rpartition(".")[2], "text/plain")
