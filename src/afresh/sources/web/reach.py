"""Which private places a source may reach: those that `network.allow` opens where the source starts."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from afresh.sources.web.guard import AddressPolicy

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve_here(host: str, port: int) -> Sequence[str]:
    """The addresses that this machine finds for a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def policy_at(
    allow: Sequence[str], root: str, *, seconds: float = 10.0, resolve: Resolve = resolve_here
) -> AddressPolicy:
    """The policy for a source that starts at a URL."""
    return await Reach(allow, seconds=seconds, resolve=resolve).policy_at(root)


class Reach:
    """Gives each of many URLs, which are all roots, its policy; hosts are looked up once."""

    def __init__(
        self,
        allow: Sequence[str],
        *,
        pins: bool = True,
        seconds: float = 10.0,
        resolve: Resolve = resolve_here,
    ) -> None:
        self._all = AddressPolicy(allow)
        self._pins = pins  # a name stays in the block that covers it
        self._seconds = seconds
        self._resolve = resolve
        self._known: dict[str, AddressPolicy] = {}

    async def policy_at(self, root: str) -> AddressPolicy:
        """The policy for what starts at a URL; one without a host reaches nothing private."""
        host = _host(root)
        if host in self._known:
            return self._known[host]
        ips = await self._ips(host) if host and self._all.needs_addresses else ()
        policy = self._all.at(host, ips, pins=self._pins)
        if ips or not self._all.needs_addresses:  # a name that could not be looked up is tried again
            self._known[host] = policy
        return policy

    async def _ips(self, host: str) -> Sequence[str]:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._resolve(host, 0)
        except (OSError, UnicodeError):  # whoever asks the host tells what is wrong with it
            return ()


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
