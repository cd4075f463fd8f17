"""Links of the knowledge base are believed with every 200 (E23), but never lose a text without a trace."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.kb_files import Base, asked, now, wait_of
from tests.e2e.library import EVERY_STORE
from tests.fakes.chat_server import ChatServer

from afresh.testing import TinySite

DAY = 86_400
LONG = "Every harbour has a keeper who writes down which ship came and which one left. " * 20


def page(text: str, title: str = "Harbours") -> str:
    return f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{text}</p></main></body>"


def words(name: str) -> str:
    """Many words that begin with a letter."""
    return " ".join(f"{name}{chr(97 + each // 26)}{chr(97 + each % 26)}" for each in range(200))


def login(realm: str) -> str:
    words = f"Sign in to read {realm}. Ask your administrator for a name and a password if you have none."
    form = "<form method=post><input name=user><input type=password name=word><button>Sign in</button></form>"
    return page(words + form, "Sign in")


@pytest.fixture
def base(store: Path, capsys: pytest.CaptureFixture[str], work: type[InProcess], tiny: TinySite) -> Iterator[Base]:
    with ChatServer() as chat:
        base = Base(store.parent, capsys, chat, sources_dir=None)
        for name in "abc":
            tiny.put(f"/{name}", page(f"{LONG} This is quay-{name}."))
        base.list(tiny.at("/a"))
        yield base


def doubts(base: Base) -> dict[str, str]:
    return {view["url"]: view["doubt"] for view in base.run("pages", "kb/links", "--doubtful")}


@pytest.mark.parametrize("wall", [login("a"), page("", ""), page("Soon.")], ids=["login", "empty", "short"])
def test_F160_E23_what_took_the_place_of_a_text_is_believed_and_flagged(base: Base, tiny: TinySite, wall: str) -> None:
    base.run()
    name = tiny.at("/a")
    old = base.sources[name]
    tiny.put("/a", wall)
    base.let_time_pass(name)
    started = now()
    report = base.run()
    about, record = base.url(name), base.sources[name]
    assert (report["summaries"], report["links"]["changed"], report["links"]["flagged"]) == (1, 1, 1)
    assert any("restore" in note for note in report["links"]["notes"])
    assert (about["fetch_status"], about["consecutive_failures"]) == ("success", 0)
    assert record["content_hash"] != old["content_hash"]
    assert about["etag"] != old["url"]["etag"]
    assert DAY <= wait_of(about, started) < DAY + 60
    assert list(doubts(base)) == [name]
    assert "later run" not in doubts(base)[name]
    assert "quay-a" in base.run("why", name)["former"]
    base.let_time_pass(name)
    with base.unpaid():
        base.run()
    assert (base.url(name)["fetch_status"], list(doubts(base))) == ("not_modified", [name])
    tiny.put("/a", page(f"{LONG} This is quay-a."))
    base.let_time_pass(name)
    base.run()
    assert (base.sources[name]["content_hash"], doubts(base)) == (old["content_hash"], {})


def test_F160_another_wall_takes_neither_flag_nor_former_text_away(base: Base, tiny: TinySite) -> None:
    base.run()
    name = tiny.at("/a")
    for realm in ("the first floor", "the second floor", "the third floor"):
        tiny.put("/a", login(realm))
        base.let_time_pass(name)
        assert base.run()["links"]["flagged"] == 1
    assert list(doubts(base)) == [name]
    assert "quay-a" in base.run("why", name)["former"]


def test_F160_one_wall_at_several_links_is_flagged_at_each(base: Base, tiny: TinySite) -> None:
    names = [tiny.at(f"/{name}") for name in "abc"]
    wall = "Closed for the evening; ask the desk at nine. " * 9
    base.list(*names)
    for name in "abc":
        tiny.put(f"/{name}", page(words(name)))
    base.run()
    for name in "abc":
        tiny.put(f"/{name}", page(wall))
    base.let_time_pass(*names)
    assert base.run()["links"]["flagged"] == 3
    assert sorted(doubts(base)) == names


def test_F160_another_page_at_one_link_is_believed_without_a_flag(base: Base, tiny: TinySite) -> None:
    base.run()
    tiny.put("/a", page("Lighthouses burn oil, later gas, and in our days electricity alone. " * 20))
    base.let_time_pass(tiny.at("/a"))
    assert (base.run()["links"]["flagged"], doubts(base)) == (0, {})


@EVERY_STORE
def test_F160_E23_a_restored_text_is_searched_and_summed_up_again(base: Base, tiny: TinySite) -> None:
    base.run()
    name = tiny.at("/a")
    old = base.sources[name]
    tiny.put("/a", login("a"))
    base.let_time_pass(name)
    base.run()
    tiny.requests.clear()
    assert "quay-a" in base.run("restore", name)["markdown"]
    assert asked(tiny) == []
    assert [hit["url"] for hit in base.run("search", "quay-a", "--in", "kb")] == [name]
    base.chat.script.append("About harbours.")
    assert base.run()["summaries"] == 1
    record = base.sources[name]
    assert (record["content_hash"], record["summary_text"]) == (old["content_hash"], "About harbours.")
    assert "About harbours." in base.index.read_text()
    assert "restored" in doubts(base)[name]
    base.let_time_pass(name)
    with base.unpaid():
        base.run()
    assert base.sources[name]["content_hash"] == old["content_hash"]
    tiny.put("/a", page(f"{LONG} This is another quay."))
    base.let_time_pass(name)
    assert base.run()["summaries"] == 1
    assert doubts(base) == {}
