"""The misbehaving site: its scripts say what they promise, and every request is on record."""

import http.client
import re
from collections.abc import Iterator

import pytest
from tests.fakes.hostile import HostileSite
from tests.fakes.lies import (
    always_304,
    busy,
    calendar,
    chain,
    deeper,
    emptied,
    flap,
    hop,
    in_turn,
    new_etags,
    pager,
    same_etag,
    sessions,
    shrunken,
    soft_404,
    to_login,
    wall,
)
from tests.fakes.tricks import then_close, truncated
from tests.fakes.wire import answer

PAGE = "<html><body><main><h1>One</h1><p>" + "A long text. " * 40 + "</p></main></body></html>"


@pytest.fixture
def hostile() -> Iterator[HostileSite]:
    with HostileSite() as site:
        site.put("/", PAGE)
        site.put("/a", "<p>page a</p>")
        yield site


def ask(site: HostileSite, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=named)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def test_without_scripts_it_is_a_good_site(hostile: HostileSite) -> None:
    status, headers, body = ask(hostile, "/")
    assert (status, body) == (200, PAGE)
    assert ask(hostile, "/", If_None_Match=headers["ETag"])[0] == 304
    assert ask(hostile, "/none")[0] == 404
    hostile.delete("/a")
    assert ask(hostile, "/a")[0] == 404
    asked = hostile.requests[1]
    assert (asked.path, asked.visit, asked.if_none_match) == ("/", 2, headers["ETag"])


def test_a_script_stands_before_the_page_until_it_is_taken_back(hostile: HostileSite) -> None:
    hostile.say("/a", answer(200, b"raw")).say("/x/*", answer(200, b"any"))
    assert [ask(hostile, path)[2] for path in ("/a", "/x/1", "/x/2?q")] == ["raw", "any", "any"]
    hostile.restore("/a")
    assert ask(hostile, "/a")[2] == "<p>page a</p>"
    hostile.behave()
    assert ask(hostile, "/x/1")[0] == 404


def test_a_body_that_is_shorter_than_it_says(hostile: HostileSite) -> None:
    hostile.say("/", truncated(10))
    with pytest.raises(http.client.IncompleteRead) as broken:
        ask(hostile, "/")
    assert broken.value.expected == 10
    hostile.say("/", then_close(b""))
    with pytest.raises(http.client.RemoteDisconnected):
        ask(hostile, "/")


def test_validators_that_lie(hostile: HostileSite) -> None:
    hostile.say("/", same_etag()).say("/a", always_304())
    first = ask(hostile, "/")
    hostile.edit("/", "One", "Two")
    second = ask(hostile, "/", If_None_Match='"one"')
    assert (first[0], second[0], first[1]["ETag"]) == (200, 200, second[1]["ETag"])
    assert first[2] != second[2]
    assert ask(hostile, "/a")[0] == 200
    hostile.edit("/a", "page", "other page")
    assert ask(hostile, "/a", If_None_Match='"one"')[0] == 304
    hostile.say("/a", new_etags())
    assert ask(hostile, "/a")[1]["ETag"] != ask(hostile, "/a")[1]["ETag"]


def test_answers_by_visit(hostile: HostileSite) -> None:
    hostile.say("/a", flap(404)).say("/", in_turn(busy(429, "7"), None))
    assert [ask(hostile, "/a")[0] for _ in range(4)] == [200, 404, 200, 404]
    first, second = ask(hostile, "/"), ask(hostile, "/")
    assert (first[0], first[1]["Retry-After"], second[0]) == (429, "7", 200)


def test_redirects(hostile: HostileSite) -> None:
    hostile.say("/file", hop("file:///etc/passwd")).say("/hop/*", chain("/hop/"))
    assert ask(hostile, "/file")[1]["Location"] == "file:///etc/passwd"
    assert ask(hostile, "/hop/7")[1]["Location"] == "/hop/8"
    hostile.say_everywhere(to_login(301))
    status, headers, _ = ask(hostile, "/a")
    assert (status, headers["Location"]) == (301, "/login?next=/a")
    assert "Password" in ask(hostile, headers["Location"])[2]


def test_walls_stand_everywhere_but_before_robots_txt(hostile: HostileSite) -> None:
    hostile.robots("User-agent: *")
    hostile.say_everywhere(wall("challenge"), but=["/a"])
    assert "Just a moment" in ask(hostile, "/")[2]
    assert "Just a moment" in ask(hostile, "/never/was")[2]
    assert ask(hostile, "/robots.txt")[2] == "User-agent: *"
    assert ask(hostile, "/a")[2] == "<p>page a</p>"


def test_soft_404_for_what_has_no_page(hostile: HostileSite) -> None:
    hostile.say_unknown(soft_404())
    status, _, body = ask(hostile, "/never/was")
    assert (status, "Page not found" in body) == (200, True)
    assert ask(hostile, "/a")[2] == "<p>page a</p>"
    assert ask(hostile, "/robots.txt")[0] == 404


def test_pages_that_lose_their_content(hostile: HostileSite) -> None:
    hostile.say("/", shrunken(0.05)).say("/a", emptied("none")).say("/b", emptied("blanks"))
    assert len(ask(hostile, "/")[2]) < len(PAGE) / 4
    assert [ask(hostile, path)[2].strip() for path in ("/a", "/b")] == ["", ""]


def test_traps_lead_on_for_ever(hostile: HostileSite) -> None:
    hostile.say("/cal/*", calendar("/cal/")).say("/list*", pager("/list")).say("/s*", sessions("/s"))
    hostile.say("/d/*", deeper("/d/"))
    seen = {"/cal/2026/12", "/list", "/s", "/d/"}
    for path in list(seen):
        for _ in range(20):
            links = re.findall('href="([^"]+)"', ask(hostile, path)[2])
            path = links[-1] if links[-1].startswith("/") else path + links[-1]
            assert path not in seen
            seen.add(path)
    assert "/cal/2027/1" in seen
    assert "/list?page=21" in seen


def test_requests_can_be_held_and_the_site_can_go_down(hostile: HostileSite) -> None:
    hostile.slow("/a", 0.01)
    assert ask(hostile, "/a")[0] == 200
    url = hostile.url
    hostile.down()
    with pytest.raises(ConnectionRefusedError):
        ask(hostile, "/a")
    hostile.up()
    assert (hostile.url, ask(hostile, "/a")[0]) == (url, 200)
