"""What a site says of itself beside its pages, shared by who lists it and who looks at its pages."""

from dataclasses import dataclass, field
from datetime import datetime

from afresh.core.twins import is_twin, page_of
from afresh.core.urls import origin_of


@dataclass(slots=True)
class Hints:
    """The hints of one site during one run."""

    root: str
    form: str | None = None  # how its Markdown files are named (core/twins.py); None: nobody knows
    twins: dict[str, str] = field(default_factory=dict)  # page to its Markdown file
    modified: dict[str, datetime | None] = field(
        default_factory=dict
    )  # pages it lists, and since when they are so
    feeds: tuple[str, ...] | None = None  # that the root names; None while it was not read

    def page(self, url: str) -> str:
        """The address by which a page is known: that of people, where a link leads to its Markdown file."""
        if self.form is None or not is_twin(url) or url == self.root:
            return url
        if origin_of(url) != origin_of(self.root):
            return url
        page = page_of(url, self.form)
        if page != url:
            self.twins.setdefault(page, url)
        return page
