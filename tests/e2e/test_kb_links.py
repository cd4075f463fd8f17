"""Links of the knowledge base: asked in their time, within the budget, paid for only when they changed."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.kb_files import Base, asked, now, page, stamp, wait_of
from tests.e2e.library import EVERY_STORE
from tests.fakes.chat_server import ChatServer

from afresh.testing import TinySite

DAY, WEEK = 86_400, 7 * 86_400


@pytest.fixture
def base(store: Path, capsys: pytest.CaptureFixture[str], work: type[InProcess], tiny: TinySite) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(store.parent, capsys, chat, sources_dir=None)
        for name in "abc":
            tiny.put(f"/{name}", page(name * 5))
        base.list(tiny.at("/a"))
        yield base


def test_E11_E12_E15_E17_E23_a_new_link_is_fetched_hashed_and_summed_up(base: Base, tiny: TinySite) -> None:
    started = now()
    assert base.run()["summaries"] == 1
    [(name, record)] = base.sources.items()
    assert name == tiny.at("/a")
    about = record["url"]
    assert set(about) == {
        *("url", "last_fetched_at", "etag", "last_modified", "fetch_status"),
        *("consecutive_failures", "next_check_at"),
    }
    assert (about["fetch_status"], about["consecutive_failures"]) == ("success", 0)
    assert about["etag"]
    assert about["last_modified"]
    assert DAY <= wait_of(about, started) < DAY + 60
    assert base.index.read_text() == f"{name}\n{record['summary_text']}\n\n"


def test_E2_E20_before_its_time_a_link_is_not_asked_for(base: Base, tiny: TinySite) -> None:
    base.run()
    tiny.requests.clear()
    with base.unpaid():
        assert base.run()["written"] is False
    assert list(tiny.requests) == []


@EVERY_STORE
def test_E21_E22_a_304_moves_the_times_and_costs_no_body_and_no_summary(base: Base, tiny: TinySite) -> None:
    base.run()
    name = tiny.at("/a")
    first = base.sources[name]
    base.let_time_pass(name)
    tiny.requests.clear()
    started = now()
    with base.unpaid():
        base.run()
    [request] = [each for each in tiny.requests if each.path == "/a"]
    assert (request.if_none_match, request.if_modified_since) == (first["url"]["etag"], first["url"]["last_modified"])
    assert request.status == 304
    record = base.sources[name]
    about = record.pop("url")
    assert (about["fetch_status"], about["last_fetched_at"] > first["url"]["last_fetched_at"]) == ("not_modified", True)
    assert DAY <= wait_of(about, started) < DAY + 60
    first.pop("url")
    assert record == first


def test_E23_a_200_is_paid_for_only_if_the_text_is_another(base: Base, tiny: TinySite) -> None:
    base.run()
    name = tiny.at("/a")
    old = base.sources[name]
    other_head = page("aaaaa").replace("<title>aaaaa", "<meta name=description content=x><title>Another")
    tiny.put("/a", other_head + "<!-- other bytes -->")
    base.let_time_pass(name)
    with base.unpaid():
        base.run()
    same = base.sources[name]
    assert (same["content_hash"], same["summary_text"]) == (old["content_hash"], old["summary_text"])
    assert same["url"]["etag"] != old["url"]["etag"]
    tiny.put("/a", page("anchors"))
    base.let_time_pass(name)
    base.chat.script.append("About anchors.")
    assert base.run()["summaries"] == 1
    assert base.sources[name]["summary_text"] == "About anchors."
    assert base.sources[name]["content_hash"] != old["content_hash"]


def test_E24_failures_double_the_wait_up_to_the_cap_and_change_nothing_else(
    base: Base, tiny: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFRESH_CRAWL__RENDER", "never")  # a site that says 403 and nothing else may want a browser
    base.configure(
        sources_dir=None, url_refresh_fail_backoff_base_seconds=100, url_refresh_fail_backoff_max_seconds=350
    )
    base.run()
    name = tiny.at("/a")
    old = base.sources[name]
    for count, (wait, code) in enumerate(((100, 500), (200, 404), (350, 403), (350, 503)), 1):
        tiny.fail("/a", code, retry_after=7000)
        base.let_time_pass(name)
        started = now()
        with base.unpaid():
            base.run(code=int(code != 403))  # a refusal is no failure of the run
        about = base.url(name)
        assert (about["fetch_status"], about["consecutive_failures"]) == ("error", count)
        assert wait <= wait_of(about, started) < wait + 30
        record = base.sources[name]
        assert (record["content_hash"], record["summary_text"]) == (old["content_hash"], old["summary_text"])
        assert about["last_fetched_at"] == old["url"]["last_fetched_at"]
        assert about["etag"] == old["url"]["etag"]
    tiny.put("/a", page("aaaaa"))
    base.let_time_pass(name)
    with base.unpaid():
        base.run()
    assert base.url(name)["consecutive_failures"] == 0


def test_E24_a_timeout_is_reported_as_one_and_a_new_link_that_fails_is_listed_without_words(
    base: Base, tiny: TinySite
) -> None:
    base.timeout = 0.5
    base.configure(sources_dir=None)
    base.list(tiny.at("/a"), tiny.at("/none"))
    tiny.hold("/a")
    base.run(code=1)
    tiny.release("/a")
    assert {name[-2:]: each["url"]["fetch_status"] for name, each in base.sources.items()} == {
        "/a": "timeout",
        "ne": "error",
    }
    assert base.index.read_text() == f"{tiny.at('/a')}\n\n{tiny.at('/none')}\n\n"


def test_E20_the_budget_is_kept_over_runs_and_the_max_length_due_come_first(base: Base, tiny: TinySite) -> None:
    names = [f"/p{number}" for number in range(5)]
    for name in names:
        tiny.put(name, page(name))
    base.configure(sources_dir=None, url_refresh_budget_per_init=2)
    base.list(*map(tiny.at, names))
    assert [base.run()["due"] for _ in range(4)] == [3, 1, 0, 0]
    assert sorted(asked(tiny)) == names
    tiny.requests.clear()
    order = ["/p3", "/p0", "/p4", "/p1", "/p2"]

    def all_due(sources: dict[str, Any]) -> None:
        for age, name in enumerate(order):
            at = now() - timedelta(days=9 - age)
            sources[tiny.at(name)]["url"]["next_check_at"] = stamp(at)

    base.edit(all_due)
    for _ in range(3):
        base.run()
    assert asked(tiny) == order


def test_E25_a_link_older_than_the_greatest_age_is_asked_for_whatever_it_waits_for(base: Base, tiny: TinySite) -> None:
    base.run()
    name = tiny.at("/a")
    tiny.requests.clear()
    later = stamp(now() + timedelta(days=100))
    old = stamp(now() - timedelta(seconds=WEEK + 60))
    base.edit(lambda sources: sources[name]["url"].update(next_check_at=later, last_fetched_at=old))
    base.run()
    assert asked(tiny) == ["/a"]


def test_E20_E25_links_that_fail_beyond_the_greatest_age_do_not_take_the_turn_of_one_that_is_due(
    base: Base, tiny: TinySite
) -> None:
    base.configure(sources_dir=None, url_refresh_budget_per_init=2)
    base.list(*map(tiny.at, ("/b", "/0", "/1")))
    tiny.put("/0", page("zeros"))
    tiny.put("/1", page("ones"))
    for _ in range(2):
        base.run()
    tiny.fail("/0", 500)
    tiny.fail("/1", 500)
    later, old = stamp(now() + timedelta(days=1)), stamp(now() - timedelta(days=30))

    def fail_for_long(sources: dict[str, Any]) -> None:
        for name in map(tiny.at, ("/0", "/1")):
            sources[name]["url"].update(next_check_at=later, last_fetched_at=old)

    base.edit(fail_for_long)
    base.let_time_pass(tiny.at("/b"))
    tiny.requests.clear()
    base.run(code=1)
    assert asked(tiny) == ["/b", "/0"]


def test_E16_links_that_are_taken_off_the_list_leave_and_no_other(base: Base, tiny: TinySite) -> None:
    base.list(*map(tiny.at, ("/a", "/b", "/c")))
    base.run()
    base.list(*map(tiny.at, ("/a", "/c")))
    tiny.requests.clear()
    with base.unpaid():
        assert base.run()["removed"] == 1
    assert list(base.sources) == [tiny.at("/a"), tiny.at("/c")]
    assert asked(tiny) == []


def test_F86_a_list_that_is_away_or_empty_leaves_everything_as_it_was(base: Base, tiny: TinySite) -> None:
    base.run()
    before = (base.cache.read_bytes(), base.index.read_bytes())
    base.links.unlink()
    assert "links.txt" in base.run(code=1)["error"]
    base.list()
    assert "lists no URL" in base.run(code=1)["error"]
    assert (base.cache.read_bytes(), base.index.read_bytes()) == before


def test_E15_F86_a_list_that_never_named_an_address_may_be_empty_and_one_that_did_may_not(
    base: Base, tiny: TinySite
) -> None:
    base.configure()
    base.note("b.md", "# Boats")
    base.list("# to be filled", "")
    assert (base.run()["file_records"], list(base.sources)) == (1, ["b.md"])
    base.list("not an address")
    assert "line 1" in base.run(code=1)["error"]
    base.list(tiny.at("/a"))
    base.run()
    base.forget_store()
    before = base.cache.read_bytes()
    base.list("")
    assert "lists no URL" in base.run(code=1)["error"]  # the cache knows that there was one
    assert base.cache.read_bytes() == before


@pytest.mark.parametrize("text", [None, "", "no address\n"])
def test_F86_settings_that_name_a_wrong_list_leave_everything_searchable(
    base: Base, tiny: TinySite, text: str | None
) -> None:
    base.run()
    before = (base.cache.read_bytes(), base.index.read_bytes())
    if text is not None:
        (base.place / "wrong.txt").write_text(text)
    base.configure(sources_dir=None, links_file_path="wrong.txt")
    error = base.run(code=1)["error"]
    assert all(word in error for word in ("kb.links_file_path", "wrong.txt", str(base.links)))
    assert (base.cache.read_bytes(), base.index.read_bytes()) == before
    assert base.run("search", "aaaaa", "--in", "kb")


def test_G2_many_links_taken_off_at_once_wait_for_a_word(base: Base, tiny: TinySite) -> None:
    names = [f"/p{number:02}" for number in range(14)]
    for name in names:
        tiny.put(name, page(name))
    base.list(*map(tiny.at, names))
    base.run()
    base.list(*map(tiny.at, names[:2]))
    held = base.run(code=3)["links"]
    assert (held["state"], held["held"], len(base.sources)) == ("needs_confirmation", 12, 14)
    base.run("confirm", str(held["run"]))
    base.run()
    assert list(base.sources) == [tiny.at(name) for name in names[:2]]


def test_G7_E21_beside_a_new_store_the_cache_is_believed_and_the_text_comes_back_once(
    base: Base, tiny: TinySite
) -> None:
    base.run()
    name = tiny.at("/a")
    base.edit(lambda sources: sources[name].update(summary_text="By hand."))
    base.forget_store()
    tiny.requests.clear()
    with base.unpaid():
        base.run()  # its time has not come
        assert asked(tiny) == []
        for _ in range(2):
            base.let_time_pass(name)
            base.run()
    looks = [each for each in tiny.requests if each.path == "/a"]
    etag = base.url(name)["etag"]
    assert [(each.status, each.if_none_match) for each in looks] == [(200, None), (304, etag)]
    assert (base.sources[name]["summary_text"], base.url(name)["fetch_status"]) == ("By hand.", "not_modified")
    assert [hit["url"] for hit in base.run("search", "aaaaa", "--in", "kb")] == [name]


def test_G7_E20_beside_a_new_store_the_budget_counts(base: Base, tiny: TinySite) -> None:
    names = [tiny.at(f"/{name}") for name in "abc"]
    base.list(*names)
    base.run()
    base.forget_store()
    base.configure(sources_dir=None, url_refresh_budget_per_init=2)
    base.let_time_pass(*names)
    tiny.requests.clear()
    with base.unpaid():
        assert [base.run()["due"] for _ in range(2)] == [1, 0]
    assert sorted(asked(tiny)) == ["/a", "/b", "/c"]


def test_E26_files_come_first_then_links_each_sorted(base: Base, tiny: TinySite) -> None:
    base.configure()
    base.note("z.md", "# Z")
    base.note("B.md", "# B")
    base.list(*map(tiny.at, ("/c", "/a")))
    base.run()
    heads = [entry.splitlines()[0] for entry in base.index.read_text().split("\n\n") if entry]
    assert heads == ["B.md", "z.md", tiny.at("/a"), tiny.at("/c")]


def test_E12_the_id_of_a_link_is_what_the_list_says(base: Base, tiny: TinySite) -> None:
    typed = tiny.at("/a").replace("http://", "HTTP://") + "#part"
    base.list(typed)
    base.run()
    assert list(base.sources) == [typed]
    with base.unpaid():
        assert base.run()["written"] is False


def test_status_says_what_is_due_what_backs_off_and_why(base: Base, tiny: TinySite) -> None:
    base.configure(sources_dir=None, url_refresh_budget_per_init=1)
    base.list(tiny.at("/0"), tiny.at("/a"))
    base.run(code=1)
    [links] = base.run("status")["freshness"]
    assert (links["source"], links["due"], links["backing_off_count"]) == ("kb/links", 1, 1)
    [problems] = links["backing_off"]
    assert (problems["url"], problems["failures"]) == (tiny.at("/0"), 1)
    assert problems["reason"].startswith("404")


@EVERY_STORE
def test_U4_F161_a_dead_link_is_named_and_ends_with_1_until_it_is_alive(base: Base, tiny: TinySite) -> None:
    dead = tiny.at("/dead")
    base.list(tiny.at("/a"), dead)
    for _ in range(3):  # it is asked for once, then it waits
        [link] = base.run(code=1)["failing_links"]
        assert (link["url"], link["failures"], link["reason"][:3]) == (dead, 1, "404")
        assert f"1 link cannot be read: {dead} (404" in base.say("init-kb", code=1)
    assert asked(tiny).count("/dead") == 1
    base.edit(lambda sources: sources[dead].update(summary_text="By hand."))  # the cache is taken over
    assert [link["url"] for link in base.run(code=1)["failing_links"]] == [dead]
    tiny.put("/dead", page("alive"))
    base.let_time_pass(dead)
    assert base.run()["failing_links"] == []
    assert "cannot be read" not in base.say("init-kb")


def test_U4_F161_a_dead_link_that_is_no_longer_listed_is_forgotten(base: Base, tiny: TinySite) -> None:
    base.list(tiny.at("/a"), tiny.at("/dead"))
    base.run(code=1)
    base.list(tiny.at("/a"))
    assert base.run()["failing_links"] == []


def test_U4_F161_a_dead_link_that_the_budget_leaves_out_is_still_dead(base: Base, tiny: TinySite) -> None:
    base.list(tiny.at("/a"), tiny.at("/dead"))
    base.run(code=1)
    base.configure(sources_dir=None, url_refresh_budget_per_init=0)
    base.let_time_pass(tiny.at("/dead"))
    assert [link["url"] for link in base.run(code=1)["failing_links"]] == [tiny.at("/dead")]


def test_U4_F161_a_link_that_refuses_is_not_dead(base: Base, tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_CRAWL__RENDER", "never")
    tiny.fail("/a", 403)
    for _ in range(2):
        assert base.run()["failing_links"] == []
    assert base.url(tiny.at("/a"))["fetch_status"] == "error"
