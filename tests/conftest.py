"""What holds for every test: no network but loopback, a clean environment, no silent skips in CI."""

import gc
import ipaddress
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.postgres import Postgres, running
from tests.quick import quick
from tests.stores import new_store

from afresh.store.store import Store
from afresh.testing import TinySite

IN_CI = os.environ.get("CI", "").lower() == "true"
SHARED = Path(os.environ.get("AFRESH_SHARED") or Path(__file__).resolve().parents[1].parent / "shared")
_homes = count()

# Used by `make test`; the default is 100 examples, and a complaint where a busy machine makes them slowly.
settings.register_profile(
    "quick", settings(), max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


class NetworkForbidden(RuntimeError):
    """A test tried to reach something that is not on this machine."""


# ---- sockets only to loopback ---------------------------------------------------------------


DISCARD_PORT = 9


def _is_loopback(sock: socket.socket, address: Any) -> bool:
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = address[0].split("%")[0]
    if sock.type == socket.SOCK_DGRAM and address[1] == DISCARD_PORT:  # asks for a route, sends nothing
        return True
    if host == "localhost":
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def _guarded(connect: Callable[..., Any]) -> Callable[..., Any]:
    def guard(self: socket.socket, address: Any) -> Any:
        if not _is_loopback(self, address):
            raise NetworkForbidden(f"tests reach loopback only, and this one tried {address!r}")
        return connect(self, address)

    return guard


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _guarded(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", _guarded(socket.socket.connect_ex))
        yield


# ---- a clean environment ----------------------------------------------------------------------


@pytest.fixture(scope="session")
def _homes_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def home(_homes_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of this test alone; no setting of the user's reaches a test."""
    home = _homes_folder / str(next(_homes))
    home.mkdir()
    for name in [each for each in os.environ if each.startswith(("AFRESH_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in (
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "NO_COLOR",
        "FORCE_COLOR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    return home


# ---- things tests ask for -----------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data beside the project."""
    return _needed(SHARED, f"no shared data at {SHARED}: put it beside the project or set AFRESH_SHARED")


@pytest.fixture(scope="session")
def dev_full() -> Path:
    """A file that is always full."""
    return _needed(Path("/dev/full"), "this system has no /dev/full")


def _needed(path: Path, message: str) -> Path:
    """A path that a test cannot do without: where it is missing the test skips, and fails in CI."""
    if not path.exists():
        if IN_CI:
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server: the one that AFRESH_TEST_POSTGRES names, or one of our own."""
    with running() as server:
        yield server


@pytest.fixture
def site() -> Iterator[TinySite]:
    """The documentation of Harbor, served on loopback for this test alone."""
    with TinySite.docs() as site:
        yield site


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An empty SQLite store; the folders `store` and `e2e` have others by this name."""
    async with new_store(tmp_path, Store) as store:
        yield store


# ---- which tests `make test` leaves out -----------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest first, so that nobody waits for them in the end; what needs a server is slow too."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if needs_a_server(item):
            item.add_marker("slow")


def needs_a_server(item: pytest.Item) -> bool:
    """Return whether a test needs PostgreSQL or a browser."""
    fixtures = getattr(item, "fixturenames", ())
    parameters = getattr(item, "callspec", None)
    return not {"postgres", "chromium"}.isdisjoint(fixtures) or (
        parameters is not None and "postgres" in parameters.params.values()
    )


# ---- what tests need not wait for ---------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _quick_stores() -> Iterator[None]:
    with quick():
        yield


def pytest_collection_finish() -> None:
    """Memory is tidied up less often, and what was collected is not looked through each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


# ---- in CI nothing is skipped -----------------------------------------------------------------


def _as_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where every test has to run: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failure in CI."""
    report = yield
    _as_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failure in CI."""
    report = yield
    _as_failure(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was skipped and why."""
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple | list)
    )
    if reasons:
        reported = (f"{n} {'test' if n == 1 else 'tests'}: {reason}" for reason, n in reasons.most_common())
        terminalreporter.write_line(f"Skipped {'; '.join(reported)}")


# ---- side by side -----------------------------------------------------------------------------


def pytest_xdist_auto_num_workers() -> int:
    """Three processes for two cores: a third of the time of a test is waiting, for a thread or a server."""
    return max(2, 3 * (os.cpu_count() or 1) // 2)
