"""Which pages need a browser, told from their HTML."""

import time
from pathlib import Path

import pytest
from tests.fakes.script_site import SHELL, WalledSite

from afresh.model.fetch import Body
from afresh.sources.web.render_check import (
    ASKS,
    BY_SCRIPT,
    CHALLENGE,
    TURNED_AWAY,
    is_readable,
    shows_the_same,
    visible_text,
    why_render,
    why_render_refused,
)
from afresh.testing.site import pages

PROSE = "A harbor is a place where ships come to rest, and where they are looked after. " * 8
REAL_DOCS = [
    folder
    for folder in (Path("/usr/share/doc/postgresql-doc-15/html"), Path("/usr/share/doc/python3.11/html"))
    if folder.is_dir()
]


def body(html: str, media_type: str = "text/html") -> Body:
    return Body(url="https://x.org/", data=html.encode(), media_type=media_type)


@pytest.mark.parametrize(
    ("html", "why"),
    [
        (SHELL, ASKS),
        ('<div id="root"></div><script src="/main.js"></script>', BY_SCRIPT),
        ("<app-root></app-root><script type=module src=main.js></script>", BY_SCRIPT),
        ('<header>Shop of many things</header><div id="__next"></div><script src=a.js></script>', BY_SCRIPT),
        ('<title>Docs</title><div id="app">Loading…</div><script src="docsify.js"></script>', BY_SCRIPT),
        ("<body><script>document.write('hello')</script></body>", BY_SCRIPT),
        (WalledSite.wall, CHALLENGE),
        ("<title>Just a moment...</title><script>window._cf_chl_opt={}</script>", CHALLENGE),
        ("<noscript>Bitte aktivieren Sie JavaScript</noscript><p>Portal</p><script src=a></script>", ASKS),
    ],
)
def test_C21_shells_and_checks_need_a_browser(html: str, why: str) -> None:
    assert why_render(html) == why
    assert not is_readable(body(html)), "a glance lets no shell through"


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>Short, and that is all there is.</p>",
        '<div id="root"></div>',
        "<h1>Release notes</h1><p>There is nothing to tell of it.</p><script src=stats.js></script>",
        f'<div id="__next"><p>{PROSE}</p></div><script>{"f();" * 50_000}</script>',
        f"<script>{'g();' * 50_000}</script><noscript>Please enable JavaScript.</noscript><p>{PROSE}</p>",
        f"<p>{PROSE}</p><script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>",
        '<p>Redirects.</p><script type="application/ld+json">{"a": 1}</script>',
        "<p>Moved.</p><script>var build = 12; dataLayer = []</script>",
    ],
)
def test_C21_pages_that_show_their_text_need_none(html: str) -> None:
    assert why_render(html) is None


@pytest.mark.parametrize("tag", ["script", "SCRIPT", "script type=module"])
def test_C21_much_text_at_the_beginning_is_enough_and_text_in_scripts_does_not_count(tag: str) -> None:
    assert is_readable(body(f"<p>{PROSE}</p><{tag}>f()</script>"))
    assert not is_readable(body(f"<{tag}>'<p>{PROSE}</p>'</script><!-- <p>{PROSE} --><p>Short</p>"))


def test_C21_a_quick_check_decides_about_html_with_few_styles_only() -> None:
    assert not is_readable(body(f"<p>{PROSE}</p>", "text/markdown"))
    assert not is_readable(body(f"<style>{'a{}' * 5_001}</style><p>{PROSE}</p>"))
    assert is_readable(body(f"<style>{'a{}' * 5_000}</style><p>{PROSE}</p>", "application/xhtml+xml"))


def test_C21_no_page_of_real_documentation_is_rendered_in_a_browser() -> None:
    texts = [*pages().values()]
    for folder in REAL_DOCS:
        texts += [file.read_bytes().decode("latin-1") for file in sorted(folder.rglob("*.html"))]
    assert [text[:200] for text in texts if why_render(text)] == []


@pytest.mark.parametrize(
    ("status", "challenge", "why"),
    [
        (403, False, TURNED_AWAY),
        (406, False, TURNED_AWAY),
        (401, False, None),
        (429, False, None),
        (503, False, None),
        (404, False, None),
        (500, False, None),
        (401, True, CHALLENGE),
        (429, True, CHALLENGE),
        (503, True, CHALLENGE),
    ],
)
def test_C21_a_refusal_is_retried_in_a_browser_only_where_that_may_help(
    status: int, challenge: bool, why: str | None
) -> None:
    assert why_render_refused(status, challenge=challenge) == why


def test_text_is_what_a_reader_sees() -> None:
    html = "<head><title>T</title><!-- no --><style>a{}</style><p>One&nbsp; <b>two</b></p><SCRIPT>x</SCRIPT >3"
    assert visible_text(html) == "One two 3"
    assert visible_text("seen<script>never closed") == "seen"
    assert visible_text("seen<!-- never closed") == "seen"


def test_a_page_shows_the_same_only_with_the_same_text_and_links() -> None:
    plain = "<p>Text <a href='/a'>a</a></p><script>1</script>"
    assert shows_the_same(plain, "<html><body><p>Text  <a class=x href='/a'>a</a></p></body></html>")
    assert not shows_the_same(plain, "<p>Text <a href='/b'>a</a></p>")
    assert not shows_the_same(plain, "<p>Text <a href='/a'>b</a></p>")


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<script",
        "<script type=application/json ",
        "<noscript>",
        "<!--",
        "<a href=",
        "<a ",
        "<b>",
        "<div id=root ",
        "<svg>",
    ],
)
def test_hostile_pages_are_judged_in_time_that_grows_with_their_size(piece: str) -> None:
    html = "<script></script>" + piece * (1_000_000 // len(piece))
    began = time.process_time()
    why_render(html)
    shows_the_same(html, html + "x")
    assert time.process_time() - began < 10
