"""Hits as people and agents read them: lists begin at the margin, and no signs of Markdown are left."""

import pytest
from rich.console import Console
from tests.fakes.records import NOW, hit

from afresh.cli.hits import MARK, draw
from afresh.cli.hits import passage as passage_on_terminal
from afresh.server.mcp.find_tools import passage_of
from afresh.server.web.rendered import passage
from afresh.text.plain import dedent_lists

NESTED = (
    "        - **Install** it from [the site](https://x.test/get)\n"
    "          and wait\n"
    "\n"
    "            - then run `a **b**`\n"
    "        - done\n"
)


def visible(text: str, **more: object) -> str:
    console = Console(width=100, highlight=False, markup=False, color_system=None)
    with console.capture() as taken:
        console.print(draw([hit(text=text, **more)], "x", NOW, verbose=bool(more.get("context") is None)))
    return taken.get()


def test_U4_lists_deep_in_a_page_begin_at_the_margin() -> None:
    assert dedent_lists(NESTED).split("\n") == [
        "- **Install** it from [the site](https://x.test/get)",
        "  and wait",
        "",
        "    - then run `a **b**`",
        "- done",
        "",
    ]
    code = "```\n    - kept as it is\n```"
    assert dedent_lists(code) == code
    assert dedent_lists("    indented code\n") == "    indented code\n"
    assert dedent_lists("Text\n\n        1. one\n            - two\n") == "Text\n\n1. one\n    - two\n"


@pytest.mark.parametrize("context", [None, NESTED])
def test_U4_a_hit_on_a_terminal_shows_no_markup_whole_or_with_context(context: str | None) -> None:
    text = visible("## Setup\n\n" + NESTED, context=context)
    lines = [line.strip() for line in text.splitlines()]
    assert "- Install it from the site" in lines
    assert "- then run `a **b**`" in lines
    assert "https://x.test/get" not in text
    assert not any(line.startswith("#") for line in lines)


def test_U4_a_hit_on_the_web_shows_a_nested_list_as_one() -> None:
    drawn = str(passage("Before\n\n" + NESTED))
    assert "<pre>" not in drawn
    assert "**" not in drawn.replace("<code>a **b**</code>", "")
    assert drawn.count("<ul>") == 2


def test_U4_an_agent_is_given_lists_at_the_margin() -> None:
    assert "\n- **Install** it" in passage_of(hit(text=NESTED)).text


@pytest.mark.parametrize(
    ("markdown", "seen"),
    [
        ("The pause before retry *n* is `base × 2ⁿ⁻¹`", "The pause before retry n is `base × 2ⁿ⁻¹`"),
        ("**bold**, *slanted*, ***both***, __two words__ and _slanted_", "bold, slanted, both, two words and slanted"),
        ("~~gone~~ and **a *b* c**", "gone and a b c"),
        ("`*kept*` and `a_b_c`", "`*kept*` and `a_b_c`"),
        ("``a `*b*` c`` *d*", "``a `*b*` c`` d"),
        ("snake_case_name, 2 * 3 * 4, a*b*c, __init__.py", "snake_case_name, 2 * 3 * 4, a*b*c, __init__.py"),
        ("* an item with *stress*", "* an item with stress"),
        (r"\*as it is\* and \_so\_", "*as it is* and _so_"),
        ("**use `a*b` now** これは**重要**です", "use `a*b` now これは重要です"),
        ("\x02snake\x03_case_\x02name\x03", "snake_case_name"),
        ("| *a* | `b` |", "a | `b`"),
        ("*not closed and **neither", "*not closed and **neither"),
        ("path/*/x and y/**/z", "path/*/x and y/**/z"),
    ],
)
def test_U4_emphasis_is_not_displayed_as_signs(markdown: str, seen: str) -> None:
    assert passage_on_terminal(markdown).plain == seen


@pytest.mark.parametrize(
    "markdown",
    [
        "before *\x02word\x03* after",
        "before \x02*word*\x03 after",
        "before **\x02word\x03** after",
        "before *a \x02word\x03 b* after",
    ],
)
def test_U4_words_that_were_looked_for_are_marked_inside_emphasis(markdown: str) -> None:
    drawn = passage_on_terminal(markdown)
    assert "*" not in drawn.plain
    assert [drawn.plain[span.start : span.end] for span in drawn.spans if span.style == MARK] == ["word"]


def test_U4_code_keeps_its_signs() -> None:
    assert "*a* **b**" in passage_on_terminal("```\n*a* **b**\n```").plain


def test_U4_a_hit_on_the_web_shows_emphasis_as_such() -> None:
    drawn = str(passage("retry *n* is `base`, __bold__, _slanted_, *\x02word\x03*"))
    assert "*" not in drawn
    assert "_" not in drawn
    assert "<mark>word</mark>" in drawn
