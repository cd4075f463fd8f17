"""Addresses in every spelling, through the real client: which are connected to, and which never are (P15)."""

import socket
from typing import Any

import pytest
from tests.fakes.servers import Names

from afresh.model.fetch import Request
from afresh.sources.web.guard import AddressPolicy
from afresh.sources.web.http import HttpFetcher, HttpOptions
from afresh.urls.canonical import canonical

METADATA = ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192")


class Unplugged(AddressPolicy):
    """The real policy on a machine whose cable is out: what it would connect is noted and fails."""

    def __init__(self) -> None:
        super().__init__()
        self.reached: list[str] = []

    def open_socket(self, info: Any) -> socket.socket:
        super().open_socket(info).close()
        self.reached.append(info[4][0])
        raise ConnectionRefusedError


SPELLINGS = [
    # decimal, octal, hexadecimal and short forms, alone and mixed
    *("http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7F000001/"),
    *("http://127.1/", "http://127.0.1/", "http://0x7f.1/", "http://0177.1/", "http://0177.0.0.1/"),
    *("http://127.0.0.01/", "http://127.0.0.0x1/", "http://0x7f.0.0.0x1/", "http://0/", "http://0x0/"),
    *("http://2852039166/", "http://0xa9fea9fe/", "http://0xa9.0xfe.0xa9.0xfe/", "http://0251.0376.0251.0376/"),
    *("http://169.16689662/", "http://169.254.43518/", "http://3232235777/", "http://167772161/", "http://10.1/"),
    *("http://192.168.257/", "http://172.1048577/", "http://100.6553600/", "http://0300.0250.1.1/"),
    *("http://000000000000000000177.0.0.1/", "http://0x00000000000000007f.1/"),
    # dots at the end, ports, upper case, blanks and line ends inside
    *("http://127.0.0.1./", "http://localhost./", "http://LOCALHOST/", "http://127.0.0.1:80/", "https://127.0.0.1/"),
    *("http://127.0.0.1:65535/", "HTTP://127.0.0.1/", " http://127.0.0.1/ ", "ht\ntp://127.0.0.1/"),
    *("http://127.0.\t0.1/", "http:/127.0.0.1/", "http:127.0.0.1/", "http:////127.0.0.1/", "http:\\\\127.0.0.1\\"),
    # percent-encoded and other letters that IDNA maps to digits and dots
    *("http://%31%32%37.0.0.1/", "http://127%2E0%2E0%2E1/", "http://%6c%6f%63alhost/", "http://%30x7f.1/"),
    *("http://１２７.０.０.１/", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://127．0．0．1/"),
    *("http://１６９｡２５４｡１６９｡２５４/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://loc\u00adalhost/", "http://𝟏𝟐𝟕.0.0.1/"),
    # who the address seems to be for, and who it is for
    *("http://docs.example.org@127.0.0.1/", "http://docs.example.org:80@127.0.0.1/", "http://@127.0.0.1/"),
    *("http://127.0.0.1\\@docs.example.org/", "http://127.0.0.1:80\\@docs.example.org/", "http://127.0.0.1#@x.org/"),
    *("http://127.0.0.1?@docs.example.org/", "http://127.0.0.1%2f@docs.example.org/", "http://a:b@127.0.0.1/"),
    *("http://docs.example.org#@127.0.0.1:80@/", "//127.0.0.1/", "http://127.0.0.1&@x.org/"),
    # IPv6 and the IPv4 addresses inside it
    *("http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/"),
    *("http://[::ffff:7f00:1]/", "http://[0000:0000:0000:0000:0000:ffff:7f00:0001]/", "http://[::127.0.0.1]/"),
    *("http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[64:ff9b::a9fe:a9fe]/"),
    *("http://[64:ff9b:1::1]/", "http://[64:ff9b:1:a9fe:a9:fe00::]/", "http://[2002:7f00:1::]/"),
    *("http://[2002:a9fe:a9fe::]/", "http://[2001:0:7f00:1::]/", "http://[2001:0:5db8:d822::80ff:fffe]/"),
    *("http://[2a00::5efe:7f00:1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/"),
    *("http://[fec0::1]/", "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[ff02::1]/"),
    *("http://[2001:db8::1]/", "http://[3fff::1]/", "http://[100::1]/", "http://[4000::1]/"),
    # the rest of what is not for us
    *(f"http://{ip}/" for ip in METADATA),
    *("http://0.0.0.0/", "http://0.1.2.3/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/"),
    *("http://100.64.0.1/", "http://198.18.0.1/", "http://192.0.2.1/", "http://198.51.100.1/"),
    *("http://203.0.113.1/", "http://224.0.0.1/", "http://239.255.255.250/", "http://240.0.0.1/"),
    *("http://255.255.255.255/", "http://localhost/", "http://printer.local/", "http://metadata.google.internal/"),
    *("file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_", "data:text/html,x", "unix:/run/x"),
]
ALLOWED = {
    "http://1.1.1.1/": "1.1.1.1",
    "http://16843009/": "1.1.1.1",
    "http://0x08080808/": "8.8.8.8",
    "http://100.63.255.255/": "100.63.255.255",
    "http://100.128.0.1/": "100.128.0.1",
    "http://172.15.255.255/": "172.15.255.255",
    "http://172.32.0.1/": "172.32.0.1",
    "http://169.253.1.1/": "169.253.1.1",
    "http://198.20.0.1/": "198.20.0.1",
    "http://[2606:4700::1111]/": "2606:4700::1111",
    "http://[::ffff:8.8.8.8]/": "::ffff:808:808",
    "http://[64:ff9b::808:808]/": "64:ff9b::808:808",
    "http://docs.example.org/": "93.184.216.34",
    "http://docs.example.org./": "93.184.216.34",
    "http://ｄｏｃｓ.example.org/": "93.184.216.34",
}
NAMES = {
    "docs.example.org": ["93.184.216.34"],
    "localhost": ["127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "printer.local": ["192.168.0.9"],
    "metadata.google.internal": ["169.254.169.254"],
    # what getaddrinfo makes of numbers, should one reach it
    "127.1": ["127.0.0.1"],
    "2130706433": ["127.0.0.1"],
}


async def reached(url: str) -> list[str]:
    """The addresses that a look at this address would have connected to."""
    policy = Unplugged()
    fetcher = HttpFetcher(HttpOptions(policy=policy), resolver=Names(NAMES))
    try:
        await fetcher.fetch(Request(url=url))
    finally:
        await fetcher.close()
    return policy.reached


def test_P15_there_are_at_least_111_vectors() -> None:
    assert len(set(SPELLINGS)) == len(SPELLINGS) >= 111


@pytest.mark.parametrize("raw_url", SPELLINGS)
async def test_P15_no_spelling_of_an_internal_address_is_connected(raw_url: str) -> None:
    """As the crawl would ask for it, and raw, as if something had forgotten to normalise it."""
    for url in {canonical(raw_url), canonical(raw_url, "http://docs.example.org/"), raw_url} - {None}:
        assert await reached(str(url)) in ([], ["93.184.216.34"]), url  # the latter: it was for the public host


@pytest.mark.parametrize(("raw_url", "address"), ALLOWED.items())
async def test_P15_public_addresses_are_connected_as_they_were_checked(raw_url: str, address: str) -> None:
    url = canonical(raw_url)
    assert url is not None
    assert await reached(url) == [address]


@pytest.mark.parametrize(
    "raw_url", ["http://127.0.0.1\\@docs.example.org/", "http://127.0.0.1?@docs.example.org/", "http://127.0.0.1/"]
)
async def test_P15_the_host_that_is_checked_is_the_host_of_the_address(raw_url: str) -> None:
    """One parser for both: what looks like a user name to another parser does not lead elsewhere."""
    url = canonical(raw_url)
    assert url is not None
    assert url.startswith("http://127.0.0.1/")
    assert await reached(url) == []


RESOLVED = [
    *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.20.0.1", "169.254.169.254", "100.100.100.200", "0.0.0.0"),
    *("::1", "::", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::"),
    *("2001:0:a00:1::", "fe80::1", "fec0::1", "fd00:ec2::254", "ff02::1", "224.0.0.251", "255.255.255.255"),
]


@pytest.mark.parametrize("ip", RESOLVED)
async def test_P15_no_answer_of_dns_leads_inside(ip: str) -> None:
    policy = Unplugged()
    fetcher = HttpFetcher(HttpOptions(policy=policy), resolver=Names({"docs.example.org": [ip]}))
    seen = await fetcher.fetch(Request(url="http://docs.example.org/"))
    mixed = HttpFetcher(HttpOptions(policy=policy), resolver=Names({"docs.example.org": [ip, "8.8.8.8"]}))
    await mixed.fetch(Request(url="http://docs.example.org/"))
    await fetcher.close()
    await mixed.close()
    assert "address not allowed" in getattr(seen, "reason", "")
    assert ip not in getattr(seen, "reason", "")
    assert set(policy.reached) == {"8.8.8.8"}, "of a mixed answer only the public part"
