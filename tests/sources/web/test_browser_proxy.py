"""The proxy before a browser: what is checked is connected, what is asked for one host goes to no other."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.sources.web.browsing import Canary

from afresh.sources.web.browser.proxy import BrowserProxy, is_own
from afresh.sources.web.guard import AddressPolicy
from afresh.testing import TinySite


@pytest.fixture
async def proxy(site: TinySite) -> AsyncIterator[BrowserProxy]:
    """A proxy that lets through to one site."""
    proxy = BrowserProxy(AddressPolicy([f"127.0.0.1:{site.port}"]))
    await proxy.open()
    yield proxy
    await proxy.close()


async def say(proxy: BrowserProxy, *words: str) -> bytes:
    """What comes back for the lines of a request."""
    port = int(proxy.address.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join((*words, "", "")).encode())
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_P15_plain_requests_pass_where_they_may_and_leave_nothing_open(
    site: TinySite, proxy: BrowserProxy
) -> None:
    stats = proxy.admit(1_000_000)
    answer = await say(proxy, f"GET {site.at('/')} HTTP/1.1", "Host: x", "Connection: keep-alive")
    head = answer.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in head
    assert stats.passed >= len(answer) - 40
    assert stats.barred == {}


@pytest.mark.parametrize("line", ["GET http://127.0.0.1:{port}/ HTTP/1.1", "CONNECT 127.0.0.1:{port} X"])
async def test_P15_other_ports_hosts_and_forms_are_not_let_through(proxy: BrowserProxy, line: str) -> None:
    stats = proxy.admit(1_000_000)
    with Canary() as canary:
        assert await say(proxy, line.format(port=canary.port), "Host: x") == b""
        assert canary.visitors == []
    assert stats.barred == {"127.0.0.1": "a loopback address"}
    for odd in ("GET / HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "GET https://a.example/ HTTP/1.1", "nonsense"):
        assert await say(proxy, odd, "Host: x") == b""


async def test_P15_nothing_passes_while_no_page_is_rendered(site: TinySite, proxy: BrowserProxy) -> None:
    assert await say(proxy, f"GET {site.at('/')} HTTP/1.1", "Host: x") == b""
    proxy.admit(1_000_000)
    proxy.hang_up()
    assert await say(proxy, f"GET {site.at('/')} HTTP/1.1", "Host: x") == b""
    assert len(site.requests) == 0


async def test_P15_a_name_is_resolved_once_and_what_was_checked_is_connected(
    site: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [("93.184.216.34", 80), ("127.0.0.1", site.port)]
    asked: list[str] = []

    async def resolve(host: str, port: int, **more: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, answers[min(len(asked) - 1, 1)])]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    connected: list[Any] = []

    async def connect(sock: socket.socket, address: Any) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect)
    policy = AddressPolicy()
    with pytest.raises(ConnectionError, match="no connection"):
        await BrowserProxy(policy)._connect("rebind.example", 80)
    assert connected == [("93.184.216.34", 80)]
    with pytest.raises(OSError, match="not allowed"):
        await BrowserProxy(policy)._connect("rebind.example", 80)
    assert connected == [("93.184.216.34", 80)]
    assert asked == ["rebind.example", "rebind.example"]


def test_only_this_user_is_served() -> None:
    def table(uid: int) -> str:
        counters = "00000000:00000000 00:00000000 00000000"
        return f"head\n   3: 0100007F:1F90 0100007F:0050 01 {counters} {uid:>5}        0 1 1\n"

    assert is_own(("127.0.0.1", 8080), lambda: table(os.getuid()))
    assert not is_own(("127.0.0.1", 8080), lambda: table(os.getuid() + 1))
    assert not is_own(("127.0.0.1", 8081), lambda: table(os.getuid()))
