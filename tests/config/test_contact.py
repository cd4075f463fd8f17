"""The address to complain to, in every request."""

from pathlib import Path

import pytest
from tests.config.test_sinks import settings
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened

from afresh import __version__
from afresh.config import Config
from afresh.errors import ConfigError
from afresh.testing import TinySite

HOME = "https://github.com/afresh-dev/afresh"
NO_VECTORS = {"embedding.provider": "none"}


def test_R12_requests_name_an_address_to_complain_to(tmp_path: Path) -> None:
    assert Config().network.agent == f"afresh/{__version__} (+{HOME})"
    reported = settings(tmp_path, "network: {contact: crawl@example.org}").network
    assert reported.agent == f"afresh/{__version__} (+crawl@example.org)"
    own = settings(tmp_path, 'network: {user_agent: "Team bot/2", contact: crawl@example.org}').network
    assert own.agent == "Team bot/2"  # as it is given


@pytest.mark.parametrize("contact", ["nobody", '"a b@example.org"', '"x@y (z)"', "ftp://a.test/", '""'])
def test_R12_a_contact_is_a_url_or_an_email_address(tmp_path: Path, contact: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.contact: expected a URL or an e-mail address"):
        settings(tmp_path, f"network: {{contact: {contact}}}")


async def test_R12_servers_receive_it_and_robots_still_know_the_product_as_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    with TinySite() as tiny:
        await check_requests(tiny, tmp_path)


async def check_requests(tiny: TinySite, tmp_path: Path) -> None:
    """Crawl a site whose robots.txt shuts out all but afresh."""
    tiny.put("/", '<title>Home</title><p>Home sweet home</p><a href="/a">a</a><a href="/b">b</a>')
    tiny.put("/a", "<title>A</title><p>Page a</p>")
    tiny.put("/b", "<title>B</title><p>Page b</p>")
    tiny.robots("User-agent: *\nDisallow: /\n\nUser-agent: afresh\nDisallow: /b\n")
    async with opened(tmp_path / "kb.db", NO_VECTORS) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.new, report.refused) == (2, 1)
    assert {request.user_agent for request in tiny.requests} == {f"afresh/{__version__} (+{HOME})"}
