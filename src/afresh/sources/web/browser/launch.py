"""Find and start a browser with restricted rights, and define the results of rendering."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.config.sources import BrowserSettings, NetworkSettings
from afresh.dataclass import dataclass, field
from afresh.errors import ConfigError
from afresh.sources.web.guard import AddressPolicy

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

MISSING = "rendering pages needs Playwright: pip install 'afresh[browser]'"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OFF = (
    *("AutofillServerCommunication", "CertificateTransparencyComponentUpdater", "MediaRouter"),
    *("OptimizationHints", "Translate", "WebRtcHideLocalIpsWithMdns", "DialMediaRouteProvider"),
)
# Only the proxy resolves names, images and fonts are never requested, and nothing uses UDP.
_CHROMIUM = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--blink-settings=imagesEnabled=false",
    "--disable-remote-fonts",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-quic",
    "--disable-gpu",
    "--disable-3d-apis",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-notifications",
    "--disable-dev-shm-usage",
    "--mute-audio",
    f"--disable-features={','.join(_OFF)}",
)
# An error about the sandbox, unlike an option in a command line.
_SANDBOX = re.compile(r"(?<![-\w])sandbox|without --no-sandbox", re.IGNORECASE)
_FIREFOX = {
    "media.peerconnection.enabled": False,
    "network.http.http3.enable": False,
    "network.dns.disablePrefetch": True,
    "network.proxy.allow_hijacking_localhost": True,
    "permissions.default.image": 2,
    "dom.webnotifications.enabled": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPage:
    url: str  # where the browser ended, after redirects and scripts
    html: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)  # of the document's response, names in lower case
    is_stable: bool = True
    barred: tuple[str, ...] = ()  # hosts that the proxy blocked
    engine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderFailure:
    reason: str
    late: bool = False
    hopeless: bool = False  # a retry in this run would fail too
    refused: bool = False  # the address policy forbids the page's host
    led_to: str | None = None  # the host to which a script navigated, if that failed


class NoBrowser(Exception):
    """Raised if no browser can be started; the message says how to fix that."""


def must_be_installed() -> None:
    if find_spec("playwright") is None or find_spec("psutil") is None:
        raise ConfigError(f'crawl.render is "always", but {MISSING}')


def why_no_browser(engines: Sequence[str], executable_path: str | None, channel: str | None) -> str | None:
    """Return how to install one of the engines, or None if one is installed; no browser is started."""
    try:
        must_be_installed()
    except ConfigError:
        return MISSING
    if "chromium" in engines and channel is None and executable_path is not None:
        there = shutil.which(executable_path)
        missing = None if there else f"browser.executable_path: no program at {executable_path}"
    elif "chromium" in engines and (channel or _installed()):
        missing = None
    else:
        missing = f"playwright install {engines[0]}" if engines else "browser.engines is empty: add chromium to it"
    others = [engine for engine in engines if engine != "chromium" or not executable_path]
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    usual = {"darwin": "~/Library/Caches", "win32": "~/AppData/Local"}.get(sys.platform, "~/.cache")
    folder = Path(named) if named and named != "0" else Path(usual).expanduser() / "ms-playwright"
    return None if any(any(folder.glob(f"{engine}*-*")) for engine in others) else missing


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserOptions(BrowserSettings):
    network: NetworkSettings = field(default_factory=NetworkSettings)
    policy: AddressPolicy = field(default_factory=AddressPolicy)


async def launch(
    playwright: "Playwright", engine: str, options: BrowserOptions, token: str, proxy: str, env: Mapping[str, str]
) -> "Browser":
    """Start a browser; `token` is put into the command line of Chromium's first process, to find it later."""
    from playwright.async_api import Error

    kind = getattr(playwright, engine)
    given: dict[str, Any] = {
        "headless": True,
        "proxy": {"server": proxy},
        "env": dict(env),
        "handle_sigint": False,
        "handle_sigterm": False,
        "handle_sighup": False,
        "timeout": options.timeout_seconds * 1000,
    }
    if engine == "chromium":
        path = options.executable_path
        if path and not options.channel and shutil.which(path) is None:
            raise NoBrowser(f"browser.executable_path: no program at {path}")
        given |= _chromium(options, kind.executable_path, token)
    elif engine == "firefox":
        given["firefox_user_prefs"] = _FIREFOX
    try:
        return await kind.launch(**given)  # type: ignore[no-any-return]
    except Error as error:
        raise NoBrowser(_explain(engine, str(error))) from error


def _chromium(options: BrowserOptions, downloaded: str, token: str) -> dict[str, Any]:
    heap = f"--js-flags=--max-old-space-size={max(128, options.memory_mb // 2)}"
    given: dict[str, Any] = {
        "args": [*_CHROMIUM, heap, f"--afresh-token={token}"],
        "chromium_sandbox": _uses_sandbox(options.sandbox),
    }
    if options.channel:
        return given | {"channel": options.channel}
    program = options.executable_path or (None if os.path.exists(downloaded) else _installed())
    return given | ({"executable_path": program} if program else {})


def _uses_sandbox(setting: str) -> bool:
    """Return whether to use Chromium's sandbox: with `auto`, unless afresh runs as root, where it does not work."""
    return os.geteuid() != 0 if setting == "auto" and hasattr(os, "geteuid") else setting != "off"


def why_unsandboxed(setting: str) -> str | None:
    """Return a warning if the setting is `auto` and Chromium therefore runs without its sandbox, else None."""
    if setting != "auto" or _uses_sandbox(setting):
        return None
    return (
        "Chromium renders pages without its sandbox, because afresh runs as root: run it as another user, or "
        "set browser.sandbox: off to accept that"
    )


def _installed() -> str | None:
    return next((path for name in _PROGRAMS if (path := shutil.which(name))), None)


def _explain(engine: str, message: str) -> str:
    first = next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
    if "Executable doesn't exist" in message or "is not found at" in message or "ENOENT" in message:
        return f"{engine} is not installed: playwright install {engine}"
    if _SANDBOX.search(message):
        return f"{engine} cannot start its sandbox here; set browser.sandbox: off to run without it"
    return f"{engine} does not start: {first[:200]}"
