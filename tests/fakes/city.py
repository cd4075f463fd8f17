"""The web site of a city: some hundred pages that share their navigation, and what makes crawls hard."""

import re

from tests.fakes.city_pages import CALENDAR, FORBIDDEN, NAV, Nav, calendar_html, page_html, parts_of, pdf

from afresh.testing.script import Answer, SitePage
from afresh.testing.site import TinySite

_WEEK = re.compile(rf"{CALENDAR}(?:\?page=(\d+).*)?")


class CitySite(TinySite):
    """A city of so many pages, the same each time; calendar, files and what is forbidden come on top."""

    def __init__(self, pages: int = 500, *, port: int = 0, etags: bool = True) -> None:
        super().__init__(port=port, etags=etags)
        self.nav: Nav = NAV
        self._parts = dict(parts_of(pages))
        self._lay()
        links = [link for _, _, displayed, _ in self._parts.values() for link in displayed]
        self.files = sorted({path for path, _ in links if path.endswith(".pdf")})
        for path in self.files:
            self.put(path, pdf(path.rpartition("/")[2]), media_type="application/pdf")
        self.put(FORBIDDEN, "<!doctype html><title>Staff</title><main><p>For staff only.</p></main>", listed=False)
        self.robots("User-agent: *\nDisallow: /private/\n")

    @property
    def pages(self) -> list[str]:
        """The paths of its pages, without calendar, files and what is forbidden."""
        return sorted(self._parts)

    @property
    def hidden(self) -> list[str]:
        """The pages that only Drupal's settings lead to."""
        displayed = {path for _, _, links, _ in self._parts.values() for path, _ in links}
        return sorted({path for *_, links in self._parts.values() for path, _ in links} - displayed)

    def add_to_nav(self, path: str, label: str) -> None:
        """Put a link into the navigation of every page, and the page that it leads to where there is none."""
        self.nav = (*self.nav, (path, label))
        self._parts.setdefault(path, (label, f"Read about {label.lower()} here.", (), ()))
        self._lay()

    def rewrite(self, path: str, text: str) -> None:
        """Give one page another text."""
        title, _, displayed, hidden = self._parts[path]
        self._parts[path] = (title, text, displayed, hidden)
        self._lay()

    def find(self, path: str, root: str) -> Answer:
        """What stands at a path; the calendar makes its weeks as they are asked for."""
        week = _WEEK.fullmatch(path)
        if week is None:
            return super().find(path, root)
        content = calendar_html(int(week[1] or 0), self.nav)
        made = SitePage(content=content, media_type="text/html", headers={}, listed=False, modified_at=self._clock())
        return made.answer(etags=self._etags)

    def _lay(self) -> None:
        """Place the pages that are new or differ."""
        for number, (path, parts) in enumerate(self._parts.items()):
            html = page_html(parts, self.nav, newer=number % 2 == 1)
            if path not in self._pages or self.read(path) != html:
                self.put(path, html)
