"""Settings of the browser that shows pages whose content is made by script."""

from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import Spec, WrongValue, number, setting, text, whole

ENGINES = ("chromium", "firefox", "webkit")


def _engine(typed: str) -> str:
    if typed not in ENGINES:
        raise WrongValue(f"expected {', '.join(ENGINES)}, got {typed!r}")
    return typed


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """How pages are shown that need a browser; which those are, `crawl.render` says."""

    engines: tuple[str, ...] = setting(
        ENGINES,
        Spec(
            kind="list",
            doc="the engines that are tried on the home page of a site, the first that shows it is kept",
            form=_engine,
        ),
    )
    executable_path: str | None = text(
        None,
        "the Chromium to start; null: Playwright's own, or else that of the system",
        optional=True,
        form=forms.file,
    )
    channel: str | None = text(
        None,
        "a branded browser that Playwright knows, such as `chrome`; null: none",
        optional=True,
        operator=True,
        form=forms.name,
    )
    sandbox: str = text(
        "auto",
        "whether Chromium locks up its pages; `auto`: yes, but not for root, for whom it does not start so",
        choices=("auto", "on", "off"),
        operator=True,
    )
    pages: int = whole(2, "pages that are shown at the same time", 1, 32)
    timeout_seconds: float = number(30.0, "the longest one page may take to be shown", 1, 600)
    settle_seconds: float = number(
        5.0, "how long a page that goes on changing is waited for; then it is read as it is", 0.5, 120
    )
    memory_mb: int = whole(
        2048, "memory of the browser in all; above it the page that takes most is ended", 256, 1_048_576
    )
    max_page_bytes: int = whole(
        52_428_800, "what one page may load in all, with its scripts and data", 65_536, 2**40
    )
    recycle_pages: int = whole(100, "pages after which the browser is started anew", 1, 1_000_000)
