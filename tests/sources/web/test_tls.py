"""TLS: what the system trusts is read when https is first spoken, and then really checked."""

import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.servers import html, serving

from afresh.model.fetch import Body, Failed, Request
from afresh.sources.web.client import trusted
from afresh.sources.web.guard import AddressPolicy
from afresh.sources.web.http import HttpFetcher, HttpOptions

REQUEST = (
    "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
    "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    openssl = shutil.which("openssl")
    assert openssl, "the test of TLS needs the openssl command"
    subprocess.run([openssl, *REQUEST.split()], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "cert.pem"


@pytest.fixture(autouse=True)
def read_again() -> Iterator[None]:
    trusted.cache_clear()
    yield
    trusted.cache_clear()


async def _look(certificate: Path, host: str) -> object:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, certificate.with_name("key.pem"))
    fetcher = HttpFetcher(HttpOptions(policy=AddressPolicy(["127.0.0.1/32", "::1/128"])))
    async with serving({"/": html("hello")}, tls=server) as wire:
        try:
            return await fetcher.fetch(Request(url=f"https://{host}:{wire.port}/"))
        finally:
            await fetcher.close()


async def test_a_certificate_that_the_system_trusts_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert isinstance(await _look(certificate, "localhost"), Body)


async def test_a_certificate_for_another_name_is_not(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert isinstance(await _look(certificate, "127.0.0.1"), Failed)


async def test_a_certificate_that_nobody_vouches_for_is_not(certificate: Path) -> None:
    assert isinstance(await _look(certificate, "localhost"), Failed)


def test_importing_the_fetchers_leaves_the_ssl_module_as_it_was() -> None:
    program = (
        "import ssl; before = ssl.SSLContext.set_default_verify_paths; import afresh.sources.web.http; "
        "assert ssl.SSLContext.set_default_verify_paths is before"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_fetchers_reads_no_certificates() -> None:
    """That would take a third of the time in which a command starts."""
    program = (
        "import ssl; read = []; ssl.SSLContext.set_default_verify_paths = lambda self: read.append(self); "
        "import afresh.sources.web.http, afresh.sources.web.api_client; assert not read"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
