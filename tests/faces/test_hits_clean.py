"""Hits as people and agents read them: lists begin at the margin, and no signs of Markdown are left."""

import pytest
from rich.console import Console
from tests.faces.fake_knowledge import NOW, hit

from afresh.core.plain import dedent_lists
from afresh.faces.cli.hits import draw
from afresh.faces.mcp.find_tools import passage_of
from afresh.faces.web.passage import passage

NESTED = (
    "        - **Install** it from [the site](https://x.test/get)\n"
    "          and wait\n"
    "\n"
    "            - then run `a **b**`\n"
    "        - done\n"
)


def shown(text: str, **more: object) -> str:
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
    text = shown("## Setup\n\n" + NESTED, context=context)
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
