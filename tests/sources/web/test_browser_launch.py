"""Which program is started as a browser, without starting one."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from afresh.config import Config
from afresh.services import doctor
from afresh.sources.web.browser.driver import Driver
from afresh.sources.web.browser.launch import (
    BrowserOptions,
    NoBrowser,
    _explain,
    _uses_sandbox,
    launch,
    why_unsandboxed,
)


async def started(**options: Any) -> dict[str, Any]:
    """What Playwright would be told."""
    given_options: dict[str, Any] = {}

    async def start(**given: Any) -> None:
        given_options.update(given)

    engine = SimpleNamespace(executable_path="/nowhere/downloaded", launch=start)
    playwright: Any = SimpleNamespace(chromium=engine, firefox=engine)
    environment = Driver().environment
    await launch(playwright, "chromium", BrowserOptions(**options), "token", "http://127.0.0.1:1", environment)
    return given_options


async def test_the_program_or_the_channel_of_the_settings_is_started() -> None:
    assert (await started(executable_path=sys.executable))["executable_path"] == sys.executable
    given_options = await started(channel="chrome")
    assert given_options["channel"] == "chrome"
    assert "executable_path" not in given_options


async def test_S8_a_browser_gets_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_STORE__URL", "postgresql://me:hush@db/x")
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    given_options = (await started())["env"]
    assert "hush" not in str(given_options)
    assert (given_options["LC_ALL"], "PATH" in given_options) == ("C.UTF-8", True)


async def test_a_program_that_is_not_there_is_named_with_its_setting() -> None:
    with pytest.raises(NoBrowser, match=r"browser\.executable_path: no program at /nowhere/chromium"):
        await started(executable_path="/nowhere/chromium")


def test_a_sandbox_is_blamed_only_where_it_is_to_blame() -> None:
    assert "does not start" in _explain("chromium", "Browser closed\n<launching> chromium --no-sandbox --headless")
    for message in ("No usable sandbox! If you are", "Running as root without --no-sandbox is not supported"):
        assert "browser.sandbox: off" in _explain("chromium", message)


def test_S8_a_run_as_root_reports_that_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _uses_sandbox("auto")
    assert why_unsandboxed("auto") is None
    assert "root" not in doctor.check_browser(Config()).detail
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor, "why_no_browser", lambda *given: None)
    assert "another user" in (why_unsandboxed("auto") or "")
    assert "without its sandbox" in doctor.check_browser(Config()).detail
    assert [why_unsandboxed(setting) for setting in ("off", "on")] == [None, None]  # it is meant; it is there
