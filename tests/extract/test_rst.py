"""reStructuredText, with what Sphinx adds to it."""

import time
from textwrap import dedent

import pytest

from afresh.extract.markup.rst import extract_rst, to_markdown
from afresh.model.fetch import Body


def converted(text: str) -> str:
    return to_markdown(dedent(text).strip("\n"))


def test_headings_by_their_order_of_appearance() -> None:
    text = """
        =====
        Title
        =====

        Sub
        ---

        Deep
        ~~~~

        Other
        -----
    """
    assert converted(text) == "# Title\n\n## Sub\n\n### Deep\n\n## Other"


def test_inline_markup() -> None:
    text = (
        "See ``a_b``, :func:`~os.path.join`, :class:`Jar <x.Jar>`, :ref:`the lid <lid>`, *soft* and **hard**, "
        "`plums <https://x.org/p>`_, `Named`_, plain_ and :doc:`guide/start`, :pep:`8`, |release|, [1]_.\n\n"
        ".. _Named: https://x.org/n\n.. _plain: https://x.org/l\n.. |release| replace:: 2.0\n\n.. [1] Said so."
    )
    assert converted(text) == (
        "See `a_b`, `join()`, `Jar`, the lid, *soft* and **hard**, [plums](https://x.org/p), "
        "[Named](https://x.org/n), [plain](https://x.org/l) and [start](guide/start.rst), PEP 8, 2.0, [1].\n\n"
        "[1] Said so."
    )


def test_lists_of_every_kind() -> None:
    text = """
        - one
        - two goes
          on

          and on

        1. first
        2. second

        term
            What it means.

        :param x: the x
        :returns: nothing

        And:

        --all, -a   everything
        -o FILE     where to
    """
    assert converted(text) == (
        "- one\n\n- two goes on\n\n  and on\n\n1. first\n2. second\n\n- **term**: What it means.\n\n"
        "- **param x**: the x\n- **returns**: nothing\n\nAnd:\n\n- `--all, -a`: everything\n- `-o FILE`: where to"
    )


def test_code_in_all_its_forms() -> None:
    text = """
        Like this::

            # not a heading
            x = 1

        .. code-block:: js
           :caption: A call

           f();

        .. highlight:: ruby

        ::

            puts 1

        >>> 1 + 1
        2
    """
    assert converted(text) == (
        "Like this:\n\n```\n# not a heading\nx = 1\n```\n\nA call\n\n```js\nf();\n```\n\n"
        "```ruby\nputs 1\n```\n\n```pycon\n>>> 1 + 1\n2\n```"
    )


def test_callouts_and_versions() -> None:
    text = """
        .. note:: Mind
           the lid.

        .. admonition:: A *title*

           Text.

        .. versionadded:: 2.0
           The lid.
    """
    assert converted(text) == (
        "> **Note**\n>\n> Mind the lid.\n\n> **A *title***\n>\n> Text.\n\n*Added in version 2.0*: The lid."
    )


@pytest.mark.parametrize(
    "text",
    [
        """
        +------+-------+
        | Name | Means |
        +======+=======+
        | a    | first |
        |      | line  |
        +------+-------+
        """,
        """
        ==== ==========
        Name Means
        ==== ==========
        a    first line
        ==== ==========
        """,
        """
        .. list-table::
           :header-rows: 1

           * - Name
             - Means
           * - a
             - first
               line
        """,
        """
        .. csv-table::
           :header: "Name", "Means"

           a, "first line"
        """,
    ],
)
def test_tables_of_every_kind(text: str) -> None:
    assert converted(text) == "| Name | Means |\n| --- | --- |\n| a | first line |"


def test_symbols_are_headings_so_that_they_are_found_by_name() -> None:
    text = """
        API
        ===

        .. py:class:: Jar(size)

           Holds plums.

           .. py:method:: open()

              Opens it.

        .. autofunction:: jars.fill
    """
    assert converted(text) == ("# API\n\n## `Jar(size)`\n\nHolds plums.\n\n### `open()`\n\nOpens it.\n\n## `jars.fill`")


def test_nothing_is_included_nothing_raw_is_passed_on_and_no_text_of_the_unknown_is_lost() -> None:
    text = """
        .. include:: /etc/passwd
        .. literalinclude:: secret.py
        .. raw:: html

           <script>bad()</script>

        .. csv-table:: Data
           :file: /etc/passwd

        .. strange:: argument
           :option: 1

           Kept *text*.

        .. just a comment

        :strange:`kept` too
    """
    made = converted(text)
    assert "root:" not in made
    assert "<script>" not in made
    assert made == "`/etc/passwd`\n\n`secret.py`\n\n**Data**\n\nargument\n\nKept *text*.\n\n`kept` too"


def test_contents_are_links_to_the_files_they_name() -> None:
    text = b"Docs\n====\n\n.. toctree::\n   :maxdepth: 2\n\n   install\n   The API <api/index>\n   /top\n"
    document = extract_rst(Body(url="https://x.org/docs/index.rst", data=text))
    assert document.title == "Docs"
    assert [(link.url, link.text) for link in document.links] == [
        ("https://x.org/docs/install.rst", "install"),
        ("https://x.org/docs/api/index.rst", "The API"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- " * 20_000,
        "`" * 50_000,
        "`" + " " * 50_000,
        "a." * 50_000,
        "== ==\n" * 10_000,
        "+-+\n" * 10_000,
        ".. a::\n" * 10_000,
        ":a:`b <" * 10_000,
        "".join(" " * depth + "- x\n" for depth in range(500)),
    ],
)
def test_F63_hostile_text_is_quick(text: str) -> None:
    begun = time.process_time()
    to_markdown(text)
    assert time.process_time() - begun < 5


def test_directives_of_a_domain_keep_their_content() -> None:
    text = """
        Roles
        =====

        .. rst:role:: ref

           Refers to a place.

        .. rst:directive:: .. index:: text

           Makes an entry.

           .. rst:directive:option:: caption
              :type: text

              Names it.

        .. py:module:: jars
           :synopsis: Jars.

           Opens jars.

        .. c:namespace:: jar

        .. rst-class:: wide

           Wide text.

        .. shop:title:: Jar

           Is sold.

        .. 2to3fixer:: apply

           Removes apply.

        .. role:: red
           :class: red

        .. program:: jar
    """
    assert converted(text) == (
        "# Roles\n\n## `ref`\n\nRefers to a place.\n\n## `.. index:: text`\n\nMakes an entry.\n\n"
        "### `caption`\n\nNames it.\n\nOpens jars.\n\nWide text.\n\n## `Jar`\n\nIs sold.\n\n"
        "## `apply`\n\nRemoves apply."
    )
