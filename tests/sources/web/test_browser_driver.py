"""The driver of the browsers: what it leaves behind, and what follows when it dies."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.sources.web.browsing import browsers

from afresh.sources.web.browser import driver as browser_driver
from afresh.sources.web.browser.driver import Driver
from afresh.sources.web.browser.launch import NoBrowser, RenderedPage, RenderFailure
from afresh.testing import TinySite

pytestmark = pytest.mark.slow

LEADING = "<title>Away</title><p>On its way.</p><script>location.href = '{}'</script>"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go, by a name that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="t") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def drivers() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "run-driver" in each.cmdline()]


async def test_P12_a_driver_that_died_is_started_again_for_the_next_page_and_leaves_nothing(folder: Path) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    with TinySite() as site:
        site.put("/", LEADING.format("http://127.0.0.2:8099/x"))
        site.put("/a", f"<title>A</title><p>{'What is written here is read. ' * 5}</p>")
        browser = browsers(f"127.0.0.1:{site.port}")
        away = await browser.render("chromium", site.url, 15)
        assert isinstance(away, RenderFailure)
        assert away.refused
        assert away.reason == "the page's script leads to 127.0.0.2, which is blocked (see network.allow)"
        assert list(folder.glob("afresh-*/*")), "the profile of the browser"
        [driver] = drivers()
        driver.kill()
        driver.wait(5)
        assert isinstance(await browser.render("chromium", site.at("/a"), 15), RenderedPage)
        assert drivers() != [driver]
        await browser.close()
    assert list(folder.iterdir()) == []
    assert drivers() == []
    assert complaints == []


async def test_what_a_browser_leaves_that_did_not_start_goes_with_the_driver(folder: Path) -> None:
    place = os.environ.get("TMPDIR")
    browser = browsers(executable_path="/bin/false")  # type: ignore[arg-type]
    with pytest.raises(NoBrowser, match="chromium does not start"):
        await browser.render("chromium", "http://127.0.0.1:9/", 15)
    assert list(folder.glob("afresh-*"))
    assert os.environ.get("TMPDIR") == place
    await browser.close()
    assert list(folder.iterdir()) == []


async def test_a_driver_that_dies_again_and_again_is_not_started_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/bin/false")
    browser = browsers()
    with pytest.raises(NoBrowser, match="Playwright driver does not start"):
        await browser.render("chromium", "http://127.0.0.1:9/", 15)
    assert isinstance(browser._driver, Driver)
    assert browser._driver._starts == browser_driver.MAX_STARTS
    await browser.close()
    assert list(folder.iterdir()) == []


async def test_a_folder_whose_name_is_too_long_for_the_sockets_of_a_browser_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    made = browser_driver._folder()
    Path(made).rmdir()
    assert len(made) < 60


async def test_S8_the_driver_inherits_no_secret_of_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AFRESH_AI__API_KEY", "GITHUB_TOKEN", "PGPASSWORD"):
        monkeypatch.setenv(name, "hush")
    before, driver = dict(os.environ), Driver()
    try:
        await driver.playwright()
        (process,) = drivers()
        environment_of = process.environ()
        assert "hush" not in str(environment_of)
        assert environment_of["PATH"] == os.environ["PATH"]
        assert Path(environment_of["TMPDIR"]).parent == folder
        assert dict(os.environ) == before
    finally:
        await driver.close()


async def test_S8_a_playwright_that_would_hand_on_every_secret_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_driver, "_TRANSPORTS", ("playwright._impl.renamed",))
    driver = Driver()
    with pytest.raises(NoBrowser, match="install another version"):
        await driver.playwright()
    await driver.close()
    assert drivers() == []
