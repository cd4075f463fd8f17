"""The documentation site builds without a warning, asks no other host, and afresh can crawl it."""

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.e2e.library import opened

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
# What a browser would load from another host: not links, which readers follow.
_LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"https?:|<link[^>]+rel=\"(?!canonical)[^>]*https?:")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and writes no log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is missing: make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "mkdocs warned"
    return folder


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not _LOADED.search(page.read_text("utf-8")), page.name
    for styled in (*site.rglob("*.css"), *site.rglob("*.svg")):
        assert not re.search(r"url\([\"']?https?:|@import", styled.read_text("utf-8")), styled.name


async def test_afresh_crawls_the_site_and_finds_a_sentence(site: Path, url: str, tmp_path: Path) -> None:
    wanted = {str(page.relative_to(site)) for page in site.rglob("*.html")} - {"404.html"}
    async with opened(tmp_path / "docs.db") as kb:
        report = await kb.runs.crawl(f"{url}index.html", name="docs", rules={"scope": "hostname"})
        assert report.state == "completed", report.error
        found = {page.url.removeprefix(url) or "index.html" for page in await kb.pages.of_source("docs")}
        assert wanted <= found, wanted - found
        sentence = '"a new link in a menu does not cause the text to be indexed again"'
        answer = await kb.search.search(sentence, within=["docs"])
        assert answer.hits[0].url == f"{url}explanation/refresh.html"
