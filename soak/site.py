"""Sources of pages for long tests: a URL, a folder of HTML files, or generated pages."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def folder(files: Path) -> Iterator[str]:
    """Serve a folder from a new process; yield the URL of its index."""
    with _process("bench.static_server", str(files.resolve()), "{port}", "/dev/null") as port:
        yield f"http://127.0.0.1:{port}/index.html"


@contextmanager
def generated(pages: int, width: int, hubs: int = 0) -> Iterator[str]:
    """Serve generated pages from a new process; yield the URL of the start page."""
    with _process("soak.generated", "{port}", str(pages), str(width), str(hubs)) as port:
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def _process(module: str, *words: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", module, *(word.format(port=port) for word in words)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        _await(process, port)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def _await(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("soak: the server did not start")
