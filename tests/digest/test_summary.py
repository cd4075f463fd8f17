"""Summaries taken from the text itself: what they tell, and what holds for any text at all."""

import time
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.digest.offline_summary import EMPTY, UNREADABLE, excerpt, summary_of
from afresh.text.plain import cut, sentences, shortened, visible, without_marks

GUIDE = """\
[![Build](https://ci.test/badge.svg)](https://ci.test) [Home](/) | [Docs](/docs)

# Retries

- [Install](/install)
- [Guide](/guide)

<!-- A remark that nobody
should see -->
Last updated on 3 March 2026.

A job that **fails** is tried again after a [growing wait](https://docs.test/wait "Wait").
See e.g. `max_tries`. It is given up in the end.

```python
hidden = "code is no prose at all, however long it is"
```

| setting | meaning |
|---|---|
| tabular | cells are no prose either |

## Backoff

Waits double, and jitter spreads them.

### Caps

Waits end at a cap.

## Dead letters

Here is what was given up.

## See also

Nothing.
"""

MARKUP = (
    "", "", "# One", "## Two ##", "- item", "1. first", "> summary_text", "```", "~~~py", "| a | b |", "---", "===",
    "A sentence that says something about it.", "[a](b) [c](d)", "<div>", "    indented", "<!--", "-->",
    "依赖注入是一种设计模式。", "\ud800", "\x00\x1b[31m", "\u202e", "&nbsp;", "&#0;", "&#x2028;",
)  # fmt: skip
lines = st.one_of(st.text(max_size=40), st.sampled_from(MARKUP))
texts = st.lists(lines, max_size=30).map("\n".join)
blank = st.sampled_from(["", " ", "\n\n", "\t\r\n"])


def assert_whole(summary: str, most: int) -> None:
    """What a reader of index.txt relies on."""
    assert 0 < len(summary) <= most
    assert summary == visible(summary)
    assert all(line and line == " ".join(line.split()) for line in summary.splitlines())
    assert summary.splitlines() == summary.split("\n")
    assert "](" not in summary
    summary.encode()


@law
@given(st.one_of(st.just(""), lines), texts, st.integers(40, 600))
@example("", "\x00", 40)
@example("", "\u200d", 40)
@example("", "a\u0301" * 50, 40)
@example("", "👩\u200d👩\u200d👧" * 50, 41)
@example("# ", "&#10;&#10;x", 40)
def test_any_text_has_a_summary_of_whole_lines(title: str, text: str, most: int) -> None:
    summary = summary_of(title, text, most)
    assert_whole(summary, most)
    assert summary == summary_of(title, text, most)


@law
@given(blank)
def test_an_empty_text_is_summarised_as_empty(text: str) -> None:
    assert summary_of("", text) == EMPTY
    assert summary_of("A title", text) == "A title"


def test_it_has_title_first_sentences_and_main_headings() -> None:
    assert summary_of("", GUIDE) == (
        "Retries\n"
        "A job that fails is tried again after a growing wait. See e.g. max_tries. "
        "It is given up in the end. Waits double, and jitter spreads them. Waits end at a cap.\n"
        "Sections: Backoff; Dead letters"
    )


def test_a_title_is_not_repeated() -> None:
    assert summary_of("Harbor", "Harbor runs jobs that can wait. It is small.").startswith("Harbor runs jobs")
    named = summary_of("Retries | Harbor", GUIDE)
    assert named.startswith("Retries | Harbor\nA job that fails")
    assert "Sections: Backoff; Dead letters" in named


def test_an_abstract_goes_before_the_beginning() -> None:
    thanks = "The authors thank everybody for their help with this."
    paper = f"# On queues\n\n{thanks}\n\n## Abstract\n\nWe show that queues grow without end.\n"
    assert summary_of("", paper).split("\n")[1] == "We show that queues grow without end."


def test_terms_are_what_a_long_text_repeats_and_the_summary_lacks() -> None:
    opening = "This page is about what happens to jobs that wait, one after the other, until it is their turn."
    body = "The scheduler hands leases to workers. Every lease expires, and PostgreSQL keeps them. " * 20
    found_text = summary_of("Queues", f"{opening}\n\n{body}", 200)
    assert found_text.startswith(f"Queues\n{opening}\nTerms: ")
    terms = found_text.rpartition("Terms: ")[2].split(", ")
    assert {"PostgreSQL", "scheduler", "expires"} <= set(terms)
    assert len({"lease", "leases"} & set(terms)) == 1, "a word and its plural are one"
    assert not {"the", "every", "them", "Queues", "jobs"} & set(terms)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("- [Home](/)\n- [Docs](/docs)\n", "Home; Docs"),
        ("| name | size |\n|---|---|\n| a.txt | 12 |\n", "name, size; a.txt, 12"),
        ("```python\nimport os\n\ndef walk():\n    pass\n```\n", "import os; def walk():; pass"),
        ("> Only a quotation.\n", "Only a quotation."),
        ("12.5", "12.5"),
        ("\x00\x07", UNREADABLE),
    ],
)
def test_a_text_without_prose_is_summarised_by_what_it_has(text: str, start: str) -> None:
    assert summary_of("", text) == start


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "# 依赖注入\n\n[首页](/)\n\n容器负责创建对象并管理生命周期。服务注册在容器中。\n",
            "容器负责创建对象并管理生命周期。服务注册在容器中。",
        ),
        (
            "# 設定\n\nこのページでは設定方法を説明します。次へ進みます。\n",
            "このページでは設定方法を説明します。次へ進みます。",
        ),
        (
            "# 재시도\n\n실패한 작업은 다시 시도됩니다. 간격은 늘어납니다.\n",
            "실패한 작업은 다시 시도됩니다. 간격은 늘어납니다.",
        ),
        ("# إعادة\n\nالمهمة التي تفشل تعاد مرة أخرى. هل هذا كاف؟\n", "المهمة التي تفشل تعاد مرة أخرى. هل هذا كاف؟"),
        ("# परिचय\n\nयह दस्तावेज़ बताता है कि काम कैसे होता है। और भी।\n", "यह दस्तावेज़ बताता है कि काम कैसे होता है। और भी।"),
    ],
)
def test_any_script_is_summarised(text: str, words: str) -> None:
    title, found_text = summary_of("", text).split("\n")
    assert (f"# {title}", found_text) == (text.partition("\n")[0], words)


def test_terms_of_a_script_without_spaces() -> None:
    opening = "这篇文章说明等待中的作业如何一个接一个地运行以及它们在什么时候由谁停止。"
    body = "数据库保存任务，调度器分配租约。调度器检查数据库，租约会过期。" * 40
    found_text = summary_of("", f"# 队列\n\n{opening}\n\n{body}", 90)
    assert found_text.startswith(f"队列\n{opening}\nTerms: ")
    assert {"数据库", "调度器"} <= {run[:3] for run in found_text.rpartition("Terms: ")[2].split(", ")}


@law
@given(texts, st.integers(1, 300))
def test_a_cut_is_a_beginning_that_fits(text: str, most: int) -> None:
    line = without_marks(text)
    for cutting in (cut, shortened):
        kept = cutting(line, most)
        assert len(kept) <= most
        assert line.startswith(kept.removesuffix("…").rstrip())
        assert bool(kept) is bool(line)


@law
@given(texts)
def test_sentences_lose_nothing(text: str) -> None:
    line = without_marks(text)
    assert "".join("".join(sentences(line)).split()) == "".join(line.split())


def test_sentences_end_where_people_end_them() -> None:
    summary_text = "See e.g. Fig. 3 of v1.2. Dr. A. Smith agrees! Does he? “Yes.” 好的。再见"
    assert sentences(summary_text) == [
        "See e.g. Fig. 3 of v1.2.", "Dr. A. Smith agrees!", "Does he?", "“Yes.”", "好的。", "再见",
    ]  # fmt: skip
    assert cut("One is here. Two is longer than that.", 20) == "One is here."
    assert cut("One. Two is much longer than that.", 20) == "One. Two is much…"


@law
@given(texts, st.integers(500, 2000))
def test_an_excerpt_fits(text: str, most: int) -> None:
    visible_text = excerpt(text * 20, most)
    assert len(visible_text) <= most
    assert visible_text == visible(visible_text)


def test_an_excerpt_holds_headings_and_beginning() -> None:
    long = "# One\n\nBeginning.\n\n" + "word " * 2000 + "\n\n## Far away\n\nEnd."
    visible_text = excerpt(long, 1000)
    assert "One\nFar away" in visible_text
    assert "Beginning." in visible_text
    assert "End." not in visible_text
    assert excerpt("short \x1b[0m\r\ntext", 1000) == "short [0m\ntext"


SHORT_REPEATED = ("[", "](", "` ", "<!--", "*_`[<!", "a. ", "![a](b", "依赖注入，", "> ", "- ", "<a ", "a\n", GUIDE)


@pytest.mark.parametrize("piece", SHORT_REPEATED)
def test_no_text_takes_long(piece: str) -> None:
    """Two milliseconds are usual; what grows with the square of a text takes hundreds."""
    text = (piece * 20_000)[:20_000]
    start = time.process_time()
    summary_of("", text)
    assert time.process_time() - start < 0.2


def test_a_large_text_costs_no_more_than_its_beginning() -> None:
    large = partial(summary_of, "", GUIDE * 20_000)
    start = time.process_time()
    assert large().startswith("Retries\nA job that fails")
    assert time.process_time() - start < 0.2
