"""Decide which IP addresses may be connected to: public ones, and those that network.allow permits."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from urllib.parse import urlsplit

from afresh.dataclass import dataclass, replace
from afresh.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SERVICE = "a cloud provider's service address"
OWN = "an address of this machine"
ELSEWHERE = ", allowed only for sources that start there (network.allow)"

# The standard library's flags count several of these networks as global. The first entry that contains an
# address names its kind, so single addresses come before the networks around them.
_DENIED: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(cidr), kind)
    for kind, cidrs in {
        SERVICE: (
            "169.254.169.254/32", "169.254.170.2/32", "168.63.129.16/32", "100.100.100.200/32",
            "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128",
        ),
        "a loopback address": ("127.0.0.0/8", "::1/128"),
        "part of a private network": (
            "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "64:ff9b:1::/48",
        ),
        "part of a carrier's shared network": ("100.64.0.0/10",),
        "a link-local address": ("169.254.0.0/16", "fe80::/10", "fec0::/10"),
        "a multicast address": ("224.0.0.0/4", "ff00::/8"),
        "an unspecified address": ("0.0.0.0/8", "::/128"),
        "part of a documentation or test network": (
            "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15",
            "2001:db8::/32", "3fff::/20", "2001:2::/48",
        ),
        "part of a reserved network": (
            "240.0.0.0/4", "192.0.0.0/24", "192.88.99.0/24",
            "100::/64", "2001:10::/28", "2001:20::/28", "5f00::/16",
        ),
    }.items()
    for cidr in cidrs
)  # fmt: skip
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_TEREDO = ipaddress.IPv6Network("2001::/32")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
# IPv6 networks with an IPv4 address in the last 32 bits: mapped, translated, compatible, NAT64
_LAST_32 = tuple(ipaddress.IPv6Network(cidr) for cidr in ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96"))
_ISATAP = (0x00005EFE, 0x02005EFE)

asked_host: ContextVar[str] = ContextVar("asked_host", default="")
"""The host name of the current request, for entries of network.allow that are host names."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(OSError):
    """Raised before connecting to an IP address that is not allowed."""

    def __init__(self, kind: str) -> None:
        super().__init__("address not allowed")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class _Allowed:
    host: str | None = None
    network: Network | None = None
    port: int | None = None

    def covers(self, address: Address, host: str, port: int) -> bool:
        if self.port is not None and port != self.port:
            return False
        if self.network is not None:
            return address.version == self.network.version and address in self.network
        return host == self.host


class AddressPolicy:
    """Decides which IP addresses may be connected to; `allow` contains networks, addresses and host names.

    An attacker may control the DNS of a name, so an allowed name never permits a cloud provider's service
    address: `allow` has to contain that address itself.
    """

    def __init__(
        self, allow: Sequence[str | _Allowed] = (), *, elsewhere: Sequence[_Allowed] = (), home: str = ""
    ) -> None:
        self._allowed = tuple(_entry(each) if isinstance(each, str) else each for each in allow)
        self._elsewhere = elsewhere  # entries that apply only to sources that start at another host
        self._home = home  # a host name that may only resolve to allowed addresses

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AddressPolicy):
            return NotImplemented
        return (self._allowed, self._home) == (other._allowed, other._home)

    def __hash__(self) -> int:
        return hash((self._allowed, self._home))

    @property
    def needs_addresses(self) -> bool:
        """Return whether a host name must be resolved to find the entries of `allow` that cover it."""
        return any(entry.network is not None for entry in self._allowed)

    def at(self, host: str, ips: Sequence[str], *, pins: bool = True) -> "AddressPolicy":
        """Return the policy for a source that starts at this host: only the entries of `allow` that cover the host.

        A host name covers the host of that name. A network covers the host if it contains one of the addresses of the
        host (`ips`); but if any address in `ips` is public and no entry covers it, no network covers the host. With
        `pins`, a host that is covered only by networks may not be resolved to an address outside of them later.
        """
        name = _usual(host)
        free = [replace(entry, port=None) for entry in self._allowed]  # ports do not matter here
        anywhere = AddressPolicy(free)
        reached = [ip for ip in ips if anywhere.check(ip, name, 0) is None]
        is_inside = bool(reached) and all(anywhere.names(ip, name, 0) for ip in reached)
        found = [_address(ip) for ip in reached] if is_inside else []
        allowed = [
            entry
            for entry, each in zip(self._allowed, free, strict=True)
            if each.host == name or any(each.network and each.covers(ip, "", 0) for ip in found)
        ]
        elsewhere = [entry for entry in self._allowed if entry not in allowed]
        by_name = any(entry.host == name for entry in allowed)
        return AddressPolicy(allowed, elsewhere=elsewhere, home=name if pins and allowed and not by_name else "")

    def also(self, place: str) -> "AddressPolicy":
        return AddressPolicy((*self._allowed, place), elsewhere=self._elsewhere, home=self._home)

    def check(self, ip: str, host: str, port: int) -> str | None:
        """Return the kind of an IP address that is not allowed, or None if it is allowed."""
        try:
            outer = _address(ip)
        except ValueError:
            return "no address"
        name = _usual(host)
        kinds = (self._kind(address, name, port) for address in _unwrapped(outer))
        kind = next((kind for kind in kinds if kind), None)
        if kind is None and name == self._home and not self.names(ip, name, port):
            return "no longer in the network in which the source starts"
        return kind

    def names(self, ip: str, host: str, port: int) -> bool:
        """Return whether an entry of `allow` covers this address or host, even if it is public."""
        return any(entry.covers(_address(ip), _usual(host), port) for entry in self._allowed)

    def _kind(self, address: Address, host: str, port: int) -> str | None:
        kind = _denied(address) or (OWN if is_own_address(address) else None)
        name = "" if kind is SERVICE else host
        if kind and any(entry.covers(address, name, port) for entry in self._allowed):
            return None
        if kind and any(entry.covers(address, name, port) for entry in self._elsewhere):
            return kind + ELSEWHERE
        return kind

    def open_socket(
        self, info: tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]
    ) -> socket.socket:
        """Return a socket for an address that aiohttp is about to connect to; raise AddressRefused if not allowed."""
        family, kind, protocol, _, address = info
        refusal = self.check(address[0], asked_host.get(), address[1])
        if refusal:
            raise AddressRefused(refusal)
        return socket.socket(family, kind, protocol)


def _usual(host: str) -> str:
    return host.rstrip(".").lower()


def _address(ip: str) -> Address:
    return ipaddress.ip_address(ip.partition("%")[0])


def _unwrapped(address: Address) -> Iterator[Address]:
    """Yield an address and every IPv4 address embedded in it."""
    yield address
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        return
    number = int(address)
    if any(address in network for network in _LAST_32) or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
    elif address in _SIX_TO_FOUR:
        yield ipaddress.IPv4Address(number >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield ipaddress.IPv4Address(number >> 64 & 0xFFFFFFFF)
        yield ipaddress.IPv4Address(~number & 0xFFFFFFFF)


def is_own_address(address: Address) -> bool:
    """Return whether an address belongs to an interface of this machine now; the result is never cached.

    Connecting a datagram socket only chooses a route, without sending anything. The route to one of the machine's own
    addresses has that address as its source, too.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ipaddress.ip_address(probe.getsockname()[0].partition("%")[0]) == address
    except OSError:  # no route, or no support for this address family
        return False


def _denied(address: Address) -> str | None:
    for network, kind in _DENIED:
        if address.version == network.version and address in network:
            return kind
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_V6:
        if any(address in network for network in _LAST_32):
            return None  # the embedded IPv4 address decides
        return "part of a reserved network"
    return None


def _entry(text: str) -> _Allowed:
    """Parse one entry of network.allow: `10.0.0.0/8`, `::1` or `docs.internal`; the last two may have a `:port`."""
    host, port = _split_port(text.strip())
    try:
        return _Allowed(network=ipaddress.ip_network(host, strict=False), port=port)
    except ValueError:
        name = _usual(host)
    if not name or not all(c.isalnum() or c in "-._" for c in name):
        raise ConfigError(f'network.allow: "{text}" is neither a network (10.0.0.0/8), an address nor a host name')
    return _Allowed(host=name, port=port)


def _split_port(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        return text, None
    if port and not (port.isascii() and port.isdigit()):
        raise ConfigError(f'network.allow: "{text}" does not end in a port number')
    return host, int(port) if port else None


async def resolve_here(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class AddressPolicies:
    """Creates the address policy for each of many root URLs; resolves each host once."""

    def __init__(
        self, allow: Sequence[str], *, pins: bool = True, seconds: float = 10.0, resolve: Resolve = resolve_here
    ) -> None:
        self._all = AddressPolicy(allow)
        self._pins = pins  # a name may not be resolved to an address outside the network that covers it
        self._seconds = seconds
        self._resolve = resolve
        self._known: dict[str, AddressPolicy] = {}

    async def policy_at(self, root: str) -> AddressPolicy:
        """Return the policy for a source that starts at a URL; for a URL without a host, only public addresses."""
        try:
            host = urlsplit(root).hostname or ""
        except ValueError:
            host = ""
        if host in self._known:
            return self._known[host]
        ips: Sequence[str] = ()
        if host and self._all.needs_addresses:
            with suppress(OSError, UnicodeError):  # the later request to the host reports the error
                async with asyncio.timeout(self._seconds):
                    ips = await self._resolve(host, 0)
        policy = self._all.at(host, ips, pins=self._pins)
        if ips or not self._all.needs_addresses:  # otherwise try to resolve the host again next time
            self._known[host] = policy
        return policy
