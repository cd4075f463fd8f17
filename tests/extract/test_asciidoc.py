"""AsciiDoc."""

import time
from textwrap import dedent

import pytest

from afresh.extract.markup.asciidoc import extract_asciidoc, to_markdown
from afresh.model.fetch import Body


def converted(text: str) -> str:
    return to_markdown(dedent(text).strip("\n"))


def test_header_attributes_and_sections() -> None:
    text = """
        = The {product} Guide
        Ann Author <ann@x.org>
        v1.2, 2026-01-01
        :product: Jar
        :site: https://x.org

        About {product} at {site}[our site]; {unknown} and \\{product} stay.

        == First [[anchor]]

        === Second
    """
    assert converted(text) == (
        "# The Jar Guide\n\nAbout Jar at [our site](https://x.org); {unknown} and {product} stay.\n\n"
        "## First\n\n### Second"
    )


def test_titles_underlined_on_a_second_line() -> None:
    text = """
        git-add(1)
        ==========
        Ann Author <ann@x.org>

        NAME
        ----
        git-add - Add files

        [[options]]
        OPTIONS
        -------
        -n::
        --dry-run::
            Show only.

        Übersicht
        ~~~~~~~~~

        1. Numbers
        ^^^^^^^^^^

        Deepest one
        ++++++++++

        ----
        code
        ----

        Not as long as this
        ----
        code
        ----
    """
    assert converted(text) == (
        "# git-add(1)\n\n## NAME\n\ngit-add - Add files\n\n## OPTIONS\n\n"
        "- **-n**\n- **--dry-run**: Show only.\n\n### Übersicht\n\n#### 1. Numbers\n\n##### Deepest one\n\n"
        "```\ncode\n```\n\nNot as long as this\n\n```\ncode\n```"
    )


def test_inline_markup() -> None:
    text = (
        "A *bold* and _soft_ `code` with `+{raw}+`, link:a.html[A], xref:b.adoc#x[B], <<first,above>>, "
        "kbd:[Ctrl+C], menu:File[Save], https://x.org[X^], snake_case_name, [.red]#marked#, ((term))."
    )
    assert converted(text) == (
        "A **bold** and *soft* `code` with `{raw}`, [A](a.html), [B](b.adoc), above, "
        "Ctrl+C, File > Save, [X](https://x.org), snake_case_name, marked, term."
    )


def test_lists_with_what_is_attached_to_them() -> None:
    text = """
        * one
        ** deeper
        * two
        +
        [source,ruby]
        ----
        puts 1 # <1>
        ----
        <1> Prints.

        Then:

        . first
        . second

        And:

        Term:: What it
        means.
        `code`::
        Other.
    """
    assert converted(text) == (
        "- one\n   - deeper\n- two\n\n  ```ruby\n  puts 1\n  ```\n\n   1. Prints.\n\nThen:\n\n"
        "1. first\n2. second\n\nAnd:\n\n- **Term**: What it means.\n- `code`: Other."
    )


def test_code_callouts_quotes_and_comments() -> None:
    text = """
        .A title
        [source,python]
        ----
        # not a heading
        ----

        NOTE: Mind the lid.

        [WARNING]
        ====
        Two

        blocks.
        ====

        ____
        Said.
        ____

        ////
        hidden
        ////
        // hidden
        ```js
        f()
        ```
    """
    assert converted(text) == (
        "**A title**\n\n```python\n# not a heading\n```\n\n> **Note**\n>\n> Mind the lid.\n\n"
        "> **Warning**\n>\n> Two\n>\n> blocks.\n\n> Said.\n\n```js\nf()\n```"
    )


@pytest.mark.parametrize(
    "text",
    [
        '[cols="1,2",options="header"]\n|===\n|Name |Means\n\n|a |first\nline\n|===',
        "|===\n|Name |Means\n\n|a\n|first line\n|===",
        "[%header,format=csv]\n|===\nName,Means\na,first line\n|===",
    ],
)
def test_tables(text: str) -> None:
    assert converted(text) == "| Name | Means |\n| --- | --- |\n| a | first line |"


def test_nothing_is_included_and_conditions_leave_their_text() -> None:
    text = """
        include::/etc/passwd[]
        ifdef::env-github[]
        On GitHub.
        endif::[]
        ifndef::env-github[:later: set]
        ++++
        <script>bad()</script>
        ++++

        image::a.png[A picture,100]

        {later}
    """
    assert converted(text) == "`/etc/passwd`\n\nOn GitHub.\n\n![A picture](a.png)\n\nset"


def test_a_document_with_links() -> None:
    body = Body(url="https://x.org/docs/a.adoc", data=b"= Jars\n\nSee xref:lids/b.adoc[the lids].\n")
    document = extract_asciidoc(body)
    assert (document.title, document.markdown) == ("Jars", "# Jars\n\nSee [the lids](lids/b.adoc).")
    assert [link.url for link in document.links] == ["https://x.org/docs/lids/b.adoc"]


@pytest.mark.parametrize(
    "text",
    [
        "*" * 50_000,
        "`" * 50_000,
        "_a " * 30_000,
        "http://" * 10_000,
        "{a}" * 30_000,
        ":a: {b}\n:b: {a}\n{a}\n" * 1_000,
        "* a\n" * 10_000,
        "====\n" * 10_000,
        "|===\n" + "|a " * 30_000,
        "a::\n" * 10_000,
        "((" * 30_000,
        "link:" * 20_000,
        "".join("=" * (4 + depth) + "\n" for depth in range(2_000)),
    ],
)
def test_F63_hostile_text_is_quick(text: str) -> None:
    begun = time.process_time()
    to_markdown(text)
    assert time.process_time() - begun < 5
