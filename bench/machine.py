"""The machine the figures come from, and getting it ready."""

import os
import platform
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]


def describe() -> dict[str, object]:
    """What a reader needs to judge the figures."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "python": platform.python_version(),
        "aiohttp": version("aiohttp"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def busy() -> bool:
    """Whether others use the machine, so that figures will not be worth much."""
    return os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)


def compile_all() -> None:
    """Write byte code now, as an installation does; where it is turned off each start would compile anew."""
    folders = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")} | {str(ROOT / "src")}
    # Some packages ship files for other versions of Python that cannot be compiled; that is no harm.
    subprocess.run([sys.executable, "-m", "compileall", "-qq", "-j", "0", *sorted(folders)], check=False)


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    names = about.read_text("utf-8").splitlines() if about.exists() else []
    model = next((row.split(":", 1)[1].strip() for row in names if row.startswith("model name")), "")
    return model or platform.processor() or "unknown"
