"""No way leads inside: a crawl of a public site that points at a private one, by every way there is (P15)."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened, rows
from tests.fakes.servers import Answer, Wire, answer, html, redirect, serving

from afresh.errors import SourceError
from afresh.model.reports import RunReport
from afresh.sources.web import guard

PUBLIC, PRIVATE = "docs.example.org", "inside.example.org"
OUT, IN = ("127.0.0.2", "127.0.0.1")  # "public": the one that network.allow opens; "private": the one it does not
SECRET = "the-inner-secret"


@dataclass
class World:
    """A public and a private server, names for both, and every connection that was made."""

    public: Wire
    private: Wire
    connected: list[str]
    names: dict[str, list[list[str]]]  # name to answers of DNS; the last one stays

    def inside(self, path: str = "/secret", host: str = PRIVATE) -> str:
        return f"http://{host}:{self.private.port}{path}"

    def outside(self, path: str = "/") -> str:
        return f"http://{PUBLIC}:{self.public.port}{path}"

    def resolve(self, host: str, port: Any, *args: Any, **more: Any) -> list[Any]:
        host = host.rstrip(".")
        if host in self.names:
            answers = self.names[host]
            ips = answers.pop(0) if len(answers) > 1 else answers[0]
        else:
            ips = [str(socket.inet_ntoa(socket.inet_aton(host)))]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ips]


@asynccontextmanager
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Both servers, with names that resolve to them and an eye on every connection."""
    secret = {"/secret": html(SECRET), "/": html(SECRET), "/robots.txt": answer(404)}
    secret |= {"/sitemap.xml": html(SECRET), "/map.xml": html(SECRET)}
    async with serving({}, host=OUT) as public, serving(secret, host=IN) as private:
        here = World(public, private, [], {PUBLIC: [[OUT]], PRIVATE: [[IN]]})
        monkeypatch.setattr(socket, "getaddrinfo", here.resolve)
        loop = asyncio.get_running_loop()
        connect = loop.sock_connect

        async def noted(sock: socket.socket, address: Any) -> None:
            here.connected.append(address[0])
            await connect(sock, address)

        monkeypatch.setattr(loop, "sock_connect", noted)
        yield here


def page(body: str = "", head: str = "") -> bytes:
    """A page with enough on it to be read."""
    return html(f"<html><head><title>T</title>{head}</head><body><main><p>Some words. {body}</p></main></body></html>")


def xml(text: str) -> bytes:
    return answer(200, text.encode(), content_type="application/xml")


def sitemap(*urls: str) -> bytes:
    return xml("<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>")


def index(*urls: str) -> bytes:
    return xml("<sitemapindex>" + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls) + "</sitemapindex>")


def robots(text: str) -> bytes:
    return answer(200, text.encode(), content_type="text/plain")


Routes = Callable[[World], dict[str, Answer]]
FLOWS: dict[str, Routes] = {
    "a link": lambda w: {"/": page(f'<a href="{w.inside()}">x</a>')},
    "a link to the bare address": lambda w: {"/": page(f'<a href="{w.inside(host=IN)}">x</a>')},
    "a link in decimal": lambda w: {"/": page(f'<a href="{w.inside(host="2130706433")}">x</a>')},
    "a link behind a base": lambda w: {"/": page('<a href="secret">x</a>', f'<base href="{w.inside("/")}">')},
    "a link with a user name": lambda w: {"/": page(f'<a href="http://{PUBLIC}@{IN}:{w.private.port}/secret">x</a>')},
    "a redirect, 301": lambda w: {"/": page('<a href="/r">x</a>'), "/r": redirect(w.inside(), 301)},
    "a redirect, 302": lambda w: {"/": page('<a href="/r">x</a>'), "/r": redirect(w.inside(), 302)},
    "a redirect, 303": lambda w: {"/": page('<a href="/r">x</a>'), "/r": redirect(w.inside(), 303)},
    "a redirect, 307": lambda w: {"/": page('<a href="/r">x</a>'), "/r": redirect(w.inside(), 307)},
    "a redirect, 308": lambda w: {"/": page('<a href="/r">x</a>'), "/r": redirect(w.inside(), 308)},
    "the second hop": lambda w: {
        "/": page('<a href="/r">x</a>'), "/r": redirect("/s"), "/s": redirect(w.inside())
    },
    "the root itself": lambda w: {"/": redirect(w.inside())},
    "a redirect to a file": lambda w: {"/": page('<a href="/r">x</a>'), "/r": redirect("file:///etc/passwd")},
    "a refresh in the head": lambda w: {
        "/": page("", f'<meta http-equiv="refresh" content="0; url={w.inside()}">')
    },
    "a canonical link": lambda w: {"/": page("", f'<link rel="canonical" href="{w.inside()}">')},
    "an entry of a sitemap": lambda w: {"/": page(), "/sitemap.xml": sitemap(w.inside())},
    "a child of a sitemap index": lambda w: {"/": page(), "/sitemap.xml": index(w.inside("/map.xml"))},
    "a redirected sitemap": lambda w: {"/": page(), "/sitemap.xml": redirect(w.inside("/map.xml"))},
    "an entry of a feed": lambda w: {
        "/": page(),
        "/sitemap.xml": xml(f"<rss><channel><item><link>{w.inside()}</link></item></channel></rss>"),
    },
    "a Sitemap line": lambda w: {"/": page(), "/robots.txt": robots(f"Sitemap: {w.inside('/map.xml')}")},
    "a redirected robots.txt": lambda w: {"/": page(), "/robots.txt": redirect(w.inside("/robots.txt"))},
}  # fmt: skip


async def crawl(here: World, store: Path, root: str = "", allow: tuple[str, ...] = (f"{OUT}/32",)) -> RunReport:
    flags = {"network.allow": list(allow), "crawl.scope": "domain", "policy.retries": 0}
    async with opened(store, flags) as kb:
        return await kb.runs.crawl(root or here.outside(), name="docs")


def test_P15_there_are_at_least_17_flows() -> None:
    assert len(FLOWS) >= 17


@pytest.mark.parametrize("flow", FLOWS)
async def test_P15_no_flow_leads_inside(
    flow: str, store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        here.public.routes |= FLOWS[flow](here)
        report = await crawl(here, store)
        assert report.checked >= 1
        assert set(here.connected) == {OUT}, "what is connected is what was checked"
        assert here.private.connections == 0
        assert len(here.public.asked) >= 1
    kept = rows(store, "select coalesce(reason, '') || coalesce(error_message, '') from page_crawls")
    assert IN not in "".join(text for (text,) in kept).replace(f"http://{IN}:", ""), "no resolved address is kept"
    assert not rows(store, "select 1 from chunks where inflated(content) like ?", f"%{SECRET}%")


async def test_P15_the_private_server_can_be_reached_at_all(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same link with one entry for both: the flows above fail for the right reason."""
    async with world(monkeypatch) as here:
        here.public.routes |= FLOWS["a link"](here)
        await crawl(here, store, allow=("127.0.0.0/30",))
        assert set(here.connected) == {OUT, IN}
    assert rows(store, "select 1 from chunks where inflated(content) like ?", f"%{SECRET}%")


@pytest.mark.parametrize("entry", [f"{IN}/32", f"{IN}:PORT", "127.0.0.0/30", f"{PRIVATE}:PORT"])
async def test_P15_what_the_operator_allows_is_reached(
    entry: str, store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        report = await crawl(here, store, here.inside("/"), allow=(entry.replace("PORT", str(here.private.port)),))
        assert (report.state, report.new, set(here.connected)) == ("completed", 1, {IN})


async def test_P15_a_name_that_changes_between_two_connections_is_checked_each_time(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: good for robots.txt and the root, then inside."""
    async with world(monkeypatch) as here:
        here.names["a." + PUBLIC] = [[OUT], [OUT], [IN]]  # the first: where the source starts
        here.public.routes |= {
            "/": html("<main><p>Some words</p><a href='/b'>x</a></main>", connection="close"),
            "/b": html(SECRET, connection="close"),
            "/robots.txt": answer(404, connection="close"),
        }
        monkeypatch.setattr("aiohttp.TCPConnector.__init__", _without_cache())
        await crawl(here, store, f"http://a.{PUBLIC}:{here.public.port}/")
        assert here.connected == [OUT]
        assert here.private.connections == 0


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("start", ["another allowed place", "the public network"])
async def test_S4_F116_a_place_that_is_allowed_is_open_only_to_sources_that_start_there(
    flow: str, start: str, store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        here.public.routes |= FLOWS[flow](here)
        allow: tuple[str, ...] = (IN, PRIVATE, f"{IN}:{here.private.port}")
        if start == "the public network":
            denied = guard._denied
            monkeypatch.setattr(guard, "_denied", lambda ip: None if str(ip) == OUT else denied(ip))
            monkeypatch.setattr(guard, "is_own_address", lambda ip: False)
        else:
            allow = (OUT, *allow)
        report = await crawl(here, store, allow=allow)
        assert report.checked >= 1
        assert set(here.connected) == {OUT}
        assert here.private.connections == 0
    assert not rows(store, "select 1 from chunks where inflated(content) like ?", f"%{SECRET}%")


async def test_S4_the_operator_is_reported_that_the_source_does_not_start_there(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        here.public.routes |= FLOWS["a link"](here)
        await crawl(here, store, allow=(OUT, PRIVATE))
        async with opened(store) as kb:
            why = (await kb.pages.explain(here.inside())).summary
    assert "allowed only for sources that start there (network.allow)" in why
    assert "AFRESH_NETWORK__ALLOW" not in why, "it is there already"


async def test_S4_a_name_that_starts_inside_and_then_leads_out_is_not_followed(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding the other way round: a public server cannot pass for one inside."""
    async with world(monkeypatch) as here:
        denied = guard._denied
        monkeypatch.setattr(guard, "_denied", lambda ip: None if str(ip) == OUT else denied(ip))
        monkeypatch.setattr(guard, "is_own_address", lambda ip: False)
        here.names[PUBLIC] = [[IN], [OUT]]
        here.public.routes |= FLOWS["a link to the bare address"](here)
        report = await crawl(here, store, allow=(f"{IN}/32",))
        assert (report.state, here.connected) == ("failed", [])
        assert "no longer in the network in which the source starts" in str(report.error)


async def test_S4_each_url_of_a_list_is_a_root_of_its_own(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with world(monkeypatch) as here:
        moves = {"/for-good": redirect(here.inside("/?a"), 301), "/for-now": redirect(here.inside("/?b"), 302)}
        here.public.routes |= {"/": page(), **moves}
        here.private.routes |= {"/?a": html(SECRET), "/?b": html(SECRET)}
        urls = [here.inside("/"), here.outside("/"), here.outside("/for-good"), here.outside("/for-now")]
        (tmp_path / "links.txt").write_text("\n".join(urls))
        report = await crawl(here, store, str(tmp_path / "links.txt"), allow=(OUT, IN))
        assert report.new == 2, "both that are listed, each where it is"
        assert {asked.path for asked in here.private.asked} <= {"/", "/robots.txt"}


@pytest.mark.parametrize("path", ["/r", "/s"])
async def test_S4_a_url_that_an_agent_names_is_its_own_root(
    path: str, store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        here.public.routes |= {"/r": redirect(here.inside(), 301), "/s": redirect(here.inside(), 302)}
        async with opened(store, {"network.allow": [OUT, IN]}) as kb:
            with pytest.raises(SourceError, match="allowed only for sources that start there"):
                await kb.pages.fetch_once(here.outside(path))
            assert here.private.connections == 0
            assert SECRET in (await kb.pages.fetch_once(here.inside())).markdown


def _without_cache() -> Callable[..., None]:
    from aiohttp import TCPConnector

    real = TCPConnector.__init__
    return lambda self, **more: real(self, **more, use_dns_cache=False)


async def test_P15_of_a_mixed_answer_only_the_allowed_address_is_connected(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        here.names[PUBLIC] = [[IN, OUT]]
        here.public.routes["/"] = page()
        report = await crawl(here, store)
        assert (report.state, set(here.connected)) == ("completed", {OUT})


async def test_P15_proxies_of_the_environment_are_not_used(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{IN}:{here.private.port}")
        here.public.routes["/"] = page()
        report = await crawl(here, store)
        assert (report.state, here.private.connections) == ("completed", 0)


async def test_P15_the_operator_is_reported_which_rule_and_how_to_allow_it(
    store: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(monkeypatch) as here:
        report = await crawl(here, store, here.inside("/"))
        async with opened(store) as kb:
            why = (await kb.pages.explain(here.inside("/"))).summary
    assert report.state == "failed"
    for reported in (report.error or "", why):
        assert f"address not allowed: {PRIVATE} is a loopback address" in reported
        assert "AFRESH_NETWORK__ALLOW" in reported
        assert IN not in reported
