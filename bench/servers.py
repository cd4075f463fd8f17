"""The server of the corpora: a private nginx, or a small one of our own, on a free port of loopback."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.access_log import NGINX_FORMAT, AccessLog
from bench.failure import BenchFailure

ROOT = Path(__file__).resolve().parents[1]
_CONF = """\
worker_processes 1;
daemon off;
{user}
pid {work}/nginx/pid;
error_log {work}/nginx/error.log warn;
events {{ worker_connections 1024; }}
http {{
  types {{ text/html html; text/css css; application/javascript js; image/png png; image/svg+xml svg; }}
  default_type application/octet-stream;
  sendfile on; tcp_nopush on; etag on; gzip off;
  keepalive_requests 100000; keepalive_timeout 65s;
  client_body_temp_path {work}/nginx/body; proxy_temp_path {work}/nginx/proxy;
  fastcgi_temp_path {work}/nginx/fastcgi; uwsgi_temp_path {work}/nginx/uwsgi;
  scgi_temp_path {work}/nginx/scgi;
  log_format bench '{format}';
  access_log {work}/logs/access.log bench;
  server {{ listen 127.0.0.1:{port}; root {work}/www; index index.html; }}
}}
"""


@dataclass(frozen=True)
class Server:
    """A running server."""

    base: str
    kind: str
    log: AccessLog


@contextmanager
def serving(work: Path, nginx: str | None) -> Iterator[Server]:
    """Serve `work/www` until the block ends, with nginx if there is one to use."""
    logs = work / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    for folder in (logs, work / "nginx", work / "www"):
        folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    command = _nginx(nginx, work, port) if nginx else _own(work, port)
    with (logs / "server.txt").open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(process, port, logs / "server.txt")
        yield Server(f"http://127.0.0.1:{port}", "nginx" if nginx else "aiohttp", AccessLog(logs / "access.log"))
    finally:
        process.terminate()
        process.wait(10)


def _nginx(program: str, work: Path, port: int) -> list[str]:
    # As root the workers stay root: a clone may lie in a folder that nobody else can read.
    user = "user root;" if os.geteuid() == 0 else ""
    conf = work / "nginx" / "nginx.conf"
    conf.write_text(_CONF.format(work=work, port=port, user=user, format=NGINX_FORMAT), "utf-8")
    return [program, "-p", str(work), "-c", str(conf), "-e", str(work / "nginx" / "error.log")]


def _own(work: Path, port: int) -> list[str]:
    log = work / "logs" / "access.log"
    return [sys.executable, "-m", "bench.static_server", str(work / "www"), str(port), str(log)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise BenchFailure(f"the server did not start: {output.read_text('utf-8', 'replace')[-500:]}")
