"""What is removed around and within the main content of HTML pages, and what has to stay."""

import pytest

from afresh.extract import extract
from afresh.extract.html.markdown import without_repeats
from afresh.model.fetch import Body

PROSE = " ".join(f"Harbour number {at} is where ships rest between two of their journeys." for at in range(20))
OTHER = " ".join(f"Lighthouse number {at} shows them the way home in the darkest of all nights." for at in range(20))


def read(body: str, head: str = "") -> str:
    html = f"<!doctype html><html><head><title>Harbours</title>{head}</head><body>{body}</body></html>"
    return extract(Body(url="https://docs.test/a", data=html.encode())).markdown


@pytest.mark.parametrize("name", ["author-bio", "postShareButtons", "related__items", "js-newsletter", "cookie-note"])
@pytest.mark.parametrize("attribute", ["class", "id"])
def test_elements_whose_name_says_that_they_are_noise_are_removed(attribute: str, name: str) -> None:
    text = read(f"<main><h1>Harbours</h1><p>{PROSE}</p><div {attribute}={name}>Said by the way</div></main>")
    assert PROSE in text
    assert "Said by the way" not in text


@pytest.mark.parametrize("name", ["formula", "metal", "sharedmemory", "navy"])
def test_names_that_only_contain_such_a_word_are_not_noise(name: str) -> None:
    assert "Said too" in read(f"<main><h1>Harbours</h1><p>{PROSE}</p><div class={name}>Said too</div></main>")


@pytest.mark.parametrize("name", ["comments", "form", "content-sidebar-wrap", "social-share", "widget", "share"])
def test_elements_that_hold_most_of_the_text_are_content_whatever_their_names_say(name: str) -> None:
    text = read(f"<main><h1>Harbours</h1><div class={name} id={name}><p>{PROSE}</p><p>{OTHER}</p></div></main>")
    assert PROSE in text
    assert OTHER in text


def test_parts_of_a_kind_that_together_hold_much_of_the_text_are_content() -> None:
    posts = "".join(f"<div class=profile><p>Keeper {at} has kept this one for years.</p></div>" for at in "abcdef")
    assert read(f"<main><h1>Harbours</h1><p>Keepers of all harbours.</p>{posts}</main>").count("has kept") == 6


def test_comments_below_an_article_are_removed_though_they_are_long() -> None:
    text = read(f"<main><h1>Harbours</h1><p>{PROSE}</p></main><div id=comments><p>{OTHER}</p></div>")
    assert PROSE in text
    assert OTHER not in text


def test_a_usual_place_with_less_than_half_of_the_text_is_not_the_main_content() -> None:
    text = read(f"<div><div id=content><p>{PROSE}</p></div><section><p>{OTHER}{OTHER}</p></section></div>")
    assert PROSE in text
    assert OTHER in text


def test_the_body_of_an_article_is_enough_if_it_has_nearly_all_text() -> None:
    article = f"<article><h1>Harbours</h1><p>{PROSE}</p></article>"
    assert "Next page" not in read(f"<main>{article}<p>Next page: piers</p></main>")
    assert "By the way" in read(f"<main>{article}<p>By the way. {OTHER}</p></main>")
    outside = f"<main><h1>Harbours</h1><article><p>{PROSE}</p></article></main>"
    assert read(outside).startswith("# Harbours")


def test_little_text_before_the_only_main_heading_is_removed() -> None:
    assert read(f"<main><div>Skip to text</div><h1>Harbours</h1><p>{PROSE}</p></main>").startswith("# Harbours")
    assert "Skip" in read(f"<main><div>Skip</div><h1>Harbours</h1><p>{PROSE}</p><h1>Piers</h1></main>")
    assert OTHER in read(f"<main><div>{OTHER}</div><h1>Harbours</h1><p>{PROSE}</p></main>")


LINKS = "".join(f"<li><a href=/{at}>A long title of page {at}</a></li>" for at in "abc")


def test_blocks_of_links_are_removed_from_prose_but_not_from_documentation_and_lists_of_links() -> None:
    assert "A long title" not in read(f"<main><h1>Harbours</h1><p>{PROSE}</p><div><ul>{LINKS}</ul></div></main>")
    assert "A long title" in read(f"<main><h1>Harbours</h1><p><code>a</code> {PROSE}</p><ul>{LINKS}</ul></main>")
    assert "A long title" in read(f"<main><h1>Harbours</h1><p>Pages about harbours.</p><ul>{LINKS}</ul></main>")
    sentence = "<p>See <a href=/a>a</a> or <a href=/b>b</a>.</p>"
    assert "See [a" in read(f"<main><h1>Harbours</h1><p>{PROSE}</p>{sentence}</main>")


def test_a_table_of_links_that_is_the_whole_page_is_kept() -> None:
    rows = "".join(f"<tr><td><a href=/{at}>A long title of page {at}</a> one day ago</td></tr>" for at in range(9))
    text = read(f"<table><tr><td><p>A list of pages about harbours</p><table>{rows}</table></td></tr></table><p>x</p>")
    assert text.count("A long title") == 9


def test_a_form_is_kept_only_if_it_holds_much_of_the_content() -> None:
    form = "<form><p>" + 20 * "By sending this you agree to all of it. " + "</p></form>"
    assert "you agree" not in read(f"<main><h1>Harbours</h1><p>{PROSE}{OTHER}</p>{form}</main>")
    assert PROSE in read(f"<form><main><h1>Harbours</h1><p>{PROSE}</p></main></form>")


def test_long_lines_occur_once_and_labels_that_repeat_are_removed() -> None:
    posts = "".join(f"Member\n\nPosts: {at}\n\n{OTHER[: 100 + at]} the answer.\n\n" for at in range(3))
    text = without_repeats(f"# Harbours\n\n{PROSE}\n\n{posts}> {PROSE}\n\n")
    assert text.count(PROSE) == 1
    assert text.count("the answer") == 3
    assert "Member" not in text
    assert "Posts" not in text


@pytest.mark.parametrize("line", ["Press it.", "Why?", "## Notes", "1. Press Enter", "| a | b |"])
def test_sentences_headings_steps_and_tables_may_repeat(line: str) -> None:
    text = f"{PROSE}\n\n{line}\n\n{line}\n\n{line}"
    assert without_repeats(text) == text


def test_dates_are_no_labels() -> None:
    text = f"{PROSE}\n\nMay 3, 2024\n\nMay 4, 2024\n\nMay 5, 2024"
    assert without_repeats(text) == text


def test_short_texts_and_code_may_repeat() -> None:
    assert without_repeats("Reply\nReply\nReply") == "Reply\nReply\nReply"
    code = f"{PROSE}\n\n```\nReply\nReply\nReply\n```"
    assert without_repeats(code) == code


def test_links_without_words_are_removed() -> None:
    assert "icon" not in read(f"<main><h1>Harbours</h1><p>{PROSE}</p><p>Way <a href=/icon><i></i></a>out</p></main>")


def test_a_page_that_scripts_make_is_read_without_scripts() -> None:
    text = read(f"<div id=app></div><noscript><main><h1>Harbours</h1><p>{PROSE}</p></main></noscript>")
    assert PROSE in text
    assert "Run scripts" not in read("<div id=app></div><noscript>Run scripts to see this page.</noscript>")
    hidden = f"<div id=app></div><noscript><p>{PROSE}</p><p style='display:none'>{OTHER}</p></noscript>"
    assert OTHER not in read(hidden)


def test_S5_hidden_text_stays_hidden_beside_the_shortest_visible_text() -> None:
    page = f"<div style='opacity:0'><main><h1>Harbours</h1><p>{PROSE}</p></main></div>"
    assert PROSE in read(page)
    assert PROSE not in read(f"{page}<p>Up</p>")
    assert PROSE not in read(f"<p>Up</p><noscript>{page}</noscript>")
