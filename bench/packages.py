"""The Debian packages that the real corpora come from."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.corpus import Origin, copy_of

PYTHON = Path("/usr/share/doc/python3.11/html")
POSTGRES = Path("/usr/share/doc/postgresql-doc-15/html")
NEEDED = ("nginx-light", "python3.11-doc", "postgresql-doc-15")
ORIGINS = {
    "pg": Origin("pg", copy_of(POSTGRES), "logical replication slot", 1169),
    "py": Origin("py", copy_of(PYTHON), "event loop policy", 526),
}


def at_hand() -> bool:
    """Whether pages and server are installed."""
    return nginx() is not None and all((folder / "index.html").is_file() for folder in (PYTHON, POSTGRES))


def nginx() -> str | None:
    """The server's program, which is often not on the path of ordinary users."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def install(say: Callable[[str], None]) -> None:
    """Install what is missing, where that is possible."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    say(f"installing {' '.join(NEEDED)} with apt-get (--no-install turns this off)")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install_all = [apt, "install", "-y", "-qq", "--no-install-recommends", *NEEDED]
    if _fails(install_all, quiet):
        _fails([apt, "update", "-qq"], quiet)
        _fails(install_all, quiet)


def _fails(command: list[str], env: dict[str, str]) -> bool:
    return subprocess.run(command, env=env, check=False, capture_output=True).returncode != 0
