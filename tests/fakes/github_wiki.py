"""The web pages of a wiki, in the markup that GitHub puts around them."""

import hashlib
from html import escape
from urllib.parse import unquote

from tests.fakes.github_repository import HostedRepository

from afresh.testing.script import Answer, notice

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · {name} Wiki · GitHub</title></head>
<body class="logged-out">
<header role="banner"><a href="/">Homepage</a> <a href="/login">Sign in</a></header>
<nav aria-label="Repository"><a href="/{name}">Code</a> <a href="/{name}/issues">Issues</a>
<a href="/{name}/pulls">Pull requests</a> <a href="/{name}/wiki">Wiki</a></nav>
<main id="js-repo-pjax-container"><div id="wiki-wrapper" class="page">
<div class="gh-header"><h1 class="gh-header-title">{title}</h1>
<div class="gh-header-meta">nobody edited this page · <a href="/{name}/wiki/{slug}/_history">1 revision</a>
<a href="/{name}/wiki/{slug}/_edit">Edit</a> <a href="/{name}/wiki/_new">New page</a></div></div>
<div id="wiki-content"><div id="wiki-body"><div class="markdown-body">{body}</div></div>
<div id="wiki-rightbar"><nav class="wiki-pages-box" id="wiki-pages-box" aria-label="Pages"><ul>
{pages}
</ul></nav></div></div></div></main>
<footer><a href="/site/terms">Terms</a></footer>
</body></html>
"""


def wiki_answer(repository: HostedRepository, path: str) -> tuple[str, Answer]:
    """The kind of a web page and what the server says there."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    name = "/".join(parts[:2])
    if repository.private or parts[2:3] != ["wiki"]:
        return "other", notice(404)
    if name.lower() in repository.former:
        to = "/".join(["", repository.name, *path.strip("/").split("/")[2:]])
        return "wiki", notice(301, {"Location": to})
    if name.lower() != repository.name.lower():
        return "other", notice(404)
    return "wiki", _page(repository, parts[3:])


def _page(repository: HostedRepository, parts: list[str]) -> Answer:
    home = f"/{repository.name}/wiki"
    if not repository.pages or not repository.has_wiki:
        return notice(302, {"Location": f"/{repository.name}"})
    page = parts[0] if parts else next(iter(repository.pages))
    if len(parts) > 1 or page.startswith("_"):
        return notice(302, {"Location": "/login"})
    if page not in repository.pages or (parts and page == next(iter(repository.pages))):
        return notice(302, {"Location": home})
    body = _html(repository, page)
    head = {
        "Content-Type": "text/html; charset=utf-8",
        "ETag": f'W/"{hashlib.sha256(body).hexdigest()[:32]}"',
        "X-Robots-Tag": "none",
    }
    return Answer(status=200, headers=head, body=body)


def _html(repository: HostedRepository, page: str) -> bytes:
    first = next(iter(repository.pages))
    links = "\n".join(
        f'<li><a class="wiki-page-link" href="/{repository.name}/wiki'
        f'{"" if each == first else "/" + escape(each)}">{escape(each.replace("-", " "))}</a></li>'
        for each in repository.pages
    )
    title = escape(page.replace("-", " "))
    body = repository.pages[page]
    return _PAGE.format(name=repository.name, title=title, slug=escape(page), body=body, pages=links).encode()
