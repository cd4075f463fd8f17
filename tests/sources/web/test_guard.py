"""The address guard: what may be connected to, and that what is checked is what is connected (P15)."""

import ipaddress

import pytest
from tests.fakes.servers import Names, anywhere, fetching, html, redirect, serving

from afresh.errors import ConfigError
from afresh.model.fetch import Body, Outcome, Refused, Request
from afresh.sources.web import guard
from afresh.sources.web.guard import AddressPolicy

FORBIDDEN = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.0.1",
    "192.168.255.255",
    "100.64.0.1",
    "100.127.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "fd20:ce::254",
    "168.63.129.16",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.9",
    "198.18.0.1",
    "198.19.255.255",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fec0::1",
    "feff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "ff02::1",
    "ff0e::1",
    "2001:db8::1",
    "3fff::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "100::1",
    "5f00::1",
    "64:ff9b:1::1",
    "4000::1",
    "e000::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "::a9fe:a9fe",
    "::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::10.0.0.1",
    "64:ff9b::100.64.0.1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2002:c0a8:101::1",
    "2002:a00:1::",
    "2001:0:a9fe:a9fe::",
    "2001:0:5db8:d822:0:0:80ff:fffe",
    "2001:0:5db8:d822:0:0:5601:5601",
    "2a00::5efe:127.0.0.1",
    "2a00::200:5efe:10.0.0.1",
    "not-an-address",
    "127.0.0.1.5",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.167.1.1",
    "169.253.1.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450::1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("ip", FORBIDDEN)
def test_P15_internal_addresses_in_every_disguise_are_forbidden(ip: str) -> None:
    assert AddressPolicy().check(ip, "docs.example.org", 80) is not None


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_are_allowed(ip: str) -> None:
    assert AddressPolicy().check(ip, "docs.example.org", 443) is None


def test_network_allow_takes_networks_addresses_names_and_ports() -> None:
    policy = AddressPolicy(["10.1.0.0/16", "::1", "docs.Internal", "127.0.0.1:8000", "[fd00::1]:81"])
    assert policy.check("10.1.2.3", "x", 80) is None
    assert policy.check("::ffff:10.1.2.3", "x", 80) is None
    assert policy.check("10.2.0.1", "x", 80)
    assert policy.check("::1", "x", 80) is None
    assert policy.check("192.168.1.1", "docs.internal.", 80) is None
    assert policy.check("192.168.1.1", "evil-docs.internal", 80)
    assert policy.check("127.0.0.1", "x", 8000) is None
    assert policy.check("127.0.0.1", "x", 8001)
    assert policy.check("fd00::1", "x", 81) is None
    assert policy.check("fd00::1", "x", 82)


def test_P15_a_name_never_opens_a_cloud_service() -> None:
    by_name, by_address = AddressPolicy(["docs.internal"]), AddressPolicy(["169.254.169.254"])
    assert by_name.check("169.254.1.1", "docs.internal", 80) is None
    assert by_name.check("169.254.169.254", "docs.internal", 80) == "a cloud provider's service address"
    assert by_name.check("::ffff:168.63.129.16", "docs.internal", 80)
    assert by_address.check("169.254.169.254", "docs.internal", 80) is None


def test_S8_the_kernel_says_which_addresses_are_of_this_machine() -> None:
    own = {ip: guard.is_own_address(ipaddress.ip_address(ip)) for ip in ("127.0.0.1", "8.8.8.8")}
    assert own == {"127.0.0.1": True, "8.8.8.8": False}


def test_S8_F126_a_public_address_of_this_machine_is_refused_unless_it_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = ipaddress.ip_address("8.8.4.4")
    monkeypatch.setattr(guard, "is_own_address", lambda address: address == mine)
    for disguise in ("8.8.4.4", "::ffff:8.8.4.4", "64:ff9b::8.8.4.4", "2002:808:404::1"):
        assert AddressPolicy().check(disguise, "example.org", 80) == "an address of this machine"
    assert AddressPolicy().check("8.8.8.8", "example.org", 80) is None
    assert AddressPolicy(["8.8.4.4:443"]).check("8.8.4.4", "example.org", 80) is not None
    for allow in ("8.8.4.4", "example.org", "8.8.4.4:80"):
        assert AddressPolicy([allow]).check("8.8.4.4", "example.org", 80) is None


@pytest.mark.parametrize("entry", ["", "10.0.0.0/99", "a b", "http://x/", "127.0.0.1:http"])
def test_a_wrong_entry_of_network_allow_is_named(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.allow"):
        AddressPolicy([entry])


async def test_P15_a_loopback_address_is_refused_with_the_way_to_allow_it() -> None:
    async with serving({"/": html()}) as wire, fetching(allow=()) as fetcher:
        seen = await fetcher.fetch(Request(url=wire.url()))
    assert isinstance(seen, Refused)
    assert seen.outcome is Outcome.FAILED
    assert seen.reason.startswith("address not allowed")
    assert "is a loopback address" in seen.reason
    assert "network.allow (AFRESH_NETWORK__ALLOW)" in seen.reason
    assert wire.connections == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
async def test_P15_a_name_that_leads_inside_is_refused_without_naming_the_address(address: str) -> None:
    names = Names({"docs.example.org": [address]})
    async with serving({"/": html()}) as wire, fetching(allow=(), resolver=names) as fetcher:
        seen = await fetcher.fetch(Request(url=f"http://docs.example.org:{wire.port}/"))
    assert isinstance(seen, Refused)
    assert "docs.example.org" in seen.reason
    assert address not in seen.reason
    assert wire.connections == 0


async def test_P15_a_name_may_be_allowed_while_its_address_is_not() -> None:
    names = Names({"docs.example.org": ["127.0.0.1"], "evil.example.org": ["127.0.0.1"]})
    async with serving({"/": html()}) as wire, fetching(allow=("docs.example.org",), resolver=names) as fetcher:
        good = await fetcher.fetch(Request(url=f"http://docs.example.org:{wire.port}/"))
        evil = await fetcher.fetch(Request(url=f"http://evil.example.org:{wire.port}/"))
    assert isinstance(good, Body)
    assert isinstance(evil, Refused)
    assert wire.connections == 1


async def test_P15_rebinding_the_checked_address_is_the_connected_one() -> None:
    """The first answer of DNS is allowed, the second leads inside: the second connection is refused."""
    names = Names({"docs.example.org": ["127.0.0.2"]})
    async with (
        serving({"/": html(connection="close")}, host="127.0.0.2") as wire,
        fetching(allow=("127.0.0.2",), resolver=names) as fetcher,
    ):
        url = f"http://docs.example.org:{wire.port}/"
        assert isinstance(await fetcher.fetch(Request(url=url)), Body)
        names.known["docs.example.org"] = ["127.0.0.1"]
        assert fetcher._connections is not None
        fetcher._connections._connector.clear_dns_cache()
        assert isinstance(await fetcher.fetch(Request(url=url)), Refused)


async def test_P15_every_hop_is_checked() -> None:
    async with (
        serving({"/secret": html("secret")}) as inside,
        serving({"/": redirect(inside.url("/secret"))}, host="127.0.0.2") as wire,
        fetching(allow=("127.0.0.2",), refusal=anywhere) as fetcher,
    ):
        seen = await fetcher.fetch(Request(url=wire.url()))
        read = await fetcher.read(wire.url(), limit=1000)
    assert isinstance(seen, Refused)
    assert isinstance(read, Refused)
    assert inside.connections == 0


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/", "data:text/plain,x", "http://user:pw@127.0.0.1/", "//x/", "", "x"]
)
async def test_P15_only_plain_http_addresses_are_asked_for(url: str) -> None:
    async with fetching() as fetcher:
        assert isinstance(await fetcher.fetch(Request(url=url)), Refused)


async def test_a_private_address_beside_a_public_one_is_never_connected() -> None:
    names = Names({"docs.example.org": ["127.0.0.1", "127.0.0.2"]})
    async with (
        serving({"/": html("inside")}) as inside,
        fetching(allow=("127.0.0.2",), resolver=names, connect_seconds=1.0) as fetcher,
    ):
        seen = await fetcher.fetch(Request(url=f"http://docs.example.org:{inside.port}/"))
    assert not isinstance(seen, Body)
    assert inside.connections == 0
