"""Markdown twins: a page that people read at one address and programs as a Markdown file at another.

The files follow the address of the page, as llms.txt proposes it:

| file               | page                           |
|--------------------|--------------------------------|
| `a/b.html.md`      | `a/b.html`                     |
| `a/index.html.md`  | `a/`                           |
| `a/index.md`       | `a/`                           |
| `a/b.md`           | `a/b`, `a/b.html` or `a/b/`    |

Which of several it is, a site decides once for all its pages: that is its *form*, the end that takes the
place of `.md`. A page is known by the address of people; its twin is only where its text comes from.
"""

from collections.abc import Container

FORMS = ("", ".html", "/")  # what a site may put in the place of .md
BARE = "none"  # the form of a site whose Markdown files are pages themselves
_SUFFIX = ".md"
_INDEX = ("/index.html", "/index")


def is_twin(url: str) -> bool:
    """Whether an address looks like the Markdown file of a page."""
    return url.endswith(_SUFFIX) and not url.endswith(f"/{_SUFFIX}")


def page_of(url: str, form: str) -> str:
    """The page of a Markdown file on a site of that form; any other address is its own."""
    if form == BARE or not is_twin(url):
        return url
    stem = url.removesuffix(_SUFFIX)
    for index in _INDEX:
        if stem.endswith(index):
            return stem.removesuffix(index) + "/"
    return stem if stem.endswith((".html", ".htm")) else stem + form


def twins_of(url: str) -> tuple[str, ...]:
    """The addresses at which the Markdown file of a page may stand."""
    if url.endswith("/"):
        return f"{url}index.md", f"{url}index.html.md", f"{url[:-1]}.md"
    return f"{url}.md", f"{url.removesuffix('.html')}.md"


def form_among(url: str, pages: Container[str]) -> str | None:
    """The form that known pages show a Markdown file to have; None if they do not show any."""
    return next((form for form in FORMS if page_of(url, form) in pages), None)


def tells_form(url: str) -> bool:
    """Whether the page of a Markdown file is another one for each form."""
    return page_of(url, FORMS[0]) != page_of(url, FORMS[1])
