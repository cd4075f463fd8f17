"""Texts of one token over and over, and names that stand for much: none costs or becomes too much."""

import time

import pytest

from afresh.extract.registry import extract
from afresh.model.fetch import Body, Document
from afresh.urls.files import file_url

SIZE = 200_000
ONCE_SLOW = [
    (".rst", "x ", "`"),
    (".rst", "x ", "``"),
    (".adoc", "x ", "+`"),
    (".md", "x ", "`"),
    (".md", "# ", "[a"),
    (".mdx", "x ", "`"),
    (".rb", "", "=begin\n"),
    (".lua", "", "--[[\n"),
    (".rs", "", 'r#"\n'),
    (".rs", "", "fn a\n"),
    (".js", "", '\\"\\\n'),
    (".js", "", "const a = (\n"),
    (".java", "", "class A\n"),
    (".java", "", "class A {}\n"),
    (".java", "", "@A class X {}\n"),
    (".java", "", "static\n"),
    (".cpp", "", "a(b)\n"),
]


def read(ending: str, text: str) -> Document:
    return extract(Body(url=file_url(f"/a{ending}"), data=text.encode(), media_type=""))


@pytest.mark.parametrize(("ending", "start", "token"), ONCE_SLOW, ids=repr)
def test_F63_one_token_over_and_over_is_quick(ending: str, start: str, token: str) -> None:
    text = start + token * (SIZE // len(token))
    begun = time.process_time()
    read(ending, text)
    assert time.process_time() - begun < 5


def nested(ending: str) -> str:
    """Names whose values name others, eighty times each."""
    if ending == ".adoc":
        lines = [":d: yyy", *(f":{a}: " + f"{{{b}}}" * 80 for a, b in ("cd", "bc", "ab")), "", "{a} x", ""]
    else:
        marks = (f".. |{a}| replace::" + f" |{b}|" * 80 for a, b in ("cd", "bc", "ab"))
        lines = [".. |d| replace:: yyy", *marks, "", "|a| x", ""]
    return "\n".join(lines)


def flat(ending: str) -> str:
    """One long value, named a thousand times."""
    if ending == ".adoc":
        return f":a: {'y' * 5_000}\n\n" + "{a}\n" * 1_000
    return f".. |a| replace:: {'y' * 5_000}\n\n" + "|a|\n" * 1_000


def linked(ending: str) -> str:
    """One long address, named a thousand times."""
    if ending == ".adoc":
        return f":source-language: {'y' * 5_000}\n\n" + "[source]\n----\na\n----\n" * 1_000
    return f".. _a: https://x.org/{'y' * 5_000}\n\n" + "a_ and `a`_ and `b <a_>`_\n" * 1_000


def test_F63_short_rows_below_a_wide_one_stay_short() -> None:
    text = ".. csv-table::\n\n   " + "a," * 100 + "\n" + "   b\n" * 5_000
    assert len(read(".rst", text).markdown) < 3 * len(text)


@pytest.mark.parametrize("ending", [".adoc", ".rst"])
@pytest.mark.parametrize("made", [nested, flat, linked])
def test_F63_names_do_not_make_a_text_many_times_longer(ending: str, made: object) -> None:
    text = made(ending)  # type: ignore[operator]
    document = read(ending, text)
    assert len(document.markdown) < 7 * len(text) + 80_000
    assert len(document.markdown) > len(text), "as long as there is room they are shown"
