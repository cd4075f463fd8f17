"""`afresh reindex` on the command line: what is made, who answers, what is left."""

from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import change, reindexed, source

from afresh.model.records import ChangeKind
from afresh.ports import StoreAccess

FAST = "local/fast-256/1"


def test_reindex_says_what_was_made_and_which_model_answers(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.reindex"] = [reindexed()]
    ended = afresh("reindex")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "all sources · reindex completed in 10 min 12 s",
        "  7,990 passages embedded, 10 reused",
        "  searches use local/minilm-l6-int8/1",
    ]
    assert kb.calls == [("search.reindex", {})]
    assert kb.access is StoreAccess.CHANGE


def test_reindex_of_some_sources_asks_for_each_once(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.reindex"] = [reindexed(source="a"), reindexed(source="b@2", pages_cut=3)]
    ended = afresh("reindex", "a", "b@2", "a", "--json")
    assert kb.calls == [("search.reindex", {"labels": ("a", "b@2")})]
    assert [each["source"] for each in ended.document] == ["a", "b@2"]
    assert "3 pages split again" in afresh("reindex", "a", "b@2").out


def test_what_is_left_is_reported_with_what_to_do_and_an_exit_code(afresh: Afresh, kb: Opened) -> None:
    note = "other sources lack vectors of the model: run `afresh reindex` without a name"
    kb.answers["search.reindex"] = [reindexed(source="a", state="partial", left=12, serving=FAST, notes=(note,))]
    ended = afresh("reindex", "a")
    assert ended.code == 1
    assert f"searches use {FAST}" in ended.out
    assert "12 left: run `afresh reindex` again to continue" in ended.out
    assert note in ended.out
    kb.answers["search.reindex"] = [reindexed(state="failed", error="openai answered 401: look at embedding.api_key")]
    ended = afresh("reindex")
    assert ended.code == 1
    assert "embedding.api_key" in ended.out
    assert afresh("reindex", "--json").document["error"].startswith("openai answered 401")


def test_status_and_show_say_which_model_answers_and_what_is_missing(afresh: Afresh, kb: Opened) -> None:
    kb.answers["sources.view"] = source(model=FAST, unembedded=3)
    assert f"{FAST}, 3 passages missing: run `afresh reindex`" in " ".join(afresh("show", "harbor@2").out.split())
    assert "none (keyword search only)" in afresh("status").out
    status = afresh("status", "--json").document
    assert status["unembedded"] == status["chunks"] == 8


def test_a_change_without_kept_text_says_why_there_is_no_diff(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.changes"] = [change(diff=None)]
    assert "no diff: the text is not stored" in " ".join(afresh("changes").out.split())
    kb.answers["pages.changes"] = [change(), change(kind=ChangeKind.NEW, diff=None)]
    assert "no diff" not in afresh("changes").out
