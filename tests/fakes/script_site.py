"""Sites that show their content only in a browser: made by script, or behind a check for plain clients."""

import json
from html import escape
from typing import TYPE_CHECKING, Self

from afresh.testing.script import Answer, notice
from afresh.testing.site import TinySite

if TYPE_CHECKING:
    from aiohttp import web

SHELL = """<!doctype html>
<html lang="en"><head><title>Loading</title><script defer src="/app.js"></script></head>
<body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>
"""
APP = """
const root = document.getElementById('root');
async function show(path) {
  root.innerHTML = '<p>Loading</p>';
  const answer = await fetch('/api/pages' + path);
  const missing = {title: 'Not found', text: 'There is no such page.', links: []};
  const page = answer.ok ? await answer.json() : missing;
  document.title = page.title;
  const links = page.links.map(link => `<li><a href="${link}">${link}</a></li>`).join('');
  root.innerHTML = `<main><h1>${page.title}</h1><p>${page.text}</p><ul>${links}</ul></main>`;
}
document.addEventListener('click', event => {
  const link = event.target.closest('a');
  if (link) { event.preventDefault(); history.pushState({}, '', link.href); show(location.pathname); }
});
show(location.pathname);
"""


class ScriptSite(TinySite):
    """One shell for every address; a script reads the path and fetches the content, which may change."""

    @classmethod
    def guide(cls, pages: int = 4) -> Self:
        """A small guide whose home page leads to all of its pages."""
        site = cls()
        site.put("/app.js", APP, media_type="text/javascript", listed=False)
        parts = [f"/guide/{number}" for number in range(1, pages)]
        site.say("/", "Harbor guide", "The guide is made in the browser, page by page.", *parts)
        for number, path in enumerate(parts, 1):
            site.say(path, f"Part {number}", f"Part {number} of the guide tells how harbors are run.", "/")
        return site

    def say(self, path: str, title: str, text: str, *links: str) -> None:
        """What the script shows at a path; the shell stays as it is."""
        message = {"title": escape(title), "text": escape(text), "links": links}
        self.put(f"/api/pages{path}", json.dumps(message), media_type="application/json", listed=False)

    def _answer(self, request: "web.BaseRequest") -> Answer:
        found = super()._answer(request)
        path = request.path
        if found.status == 404 and not path.startswith("/api/") and "." not in path.rpartition("/")[2]:
            self.put(path, SHELL, listed=False)
            found = super()._answer(request)
        return found


class WalledSite(TinySite):
    """Turns everybody away who does not bring the cookie that a script of its refusal sets."""

    wall = (
        "<!doctype html><title>Just a moment</title><p>Checking your browser before you go on.</p>"
        "<script>setTimeout(() => { document.cookie = 'passed=yes; path=/'; location.reload(); }, 50)"
        "</script>"
    )
    status = 403

    def _answer(self, request: "web.BaseRequest") -> Answer:
        open_to_all = request.path in ("/robots.txt", "/sitemap.xml")
        if open_to_all or "passed=yes" in request.headers.get("Cookie", ""):
            return super()._answer(request)
        refusal = notice(self.status, {"Content-Type": "text/html"})
        return Answer(status=refusal.status, headers=refusal.headers, body=self.wall.encode())
