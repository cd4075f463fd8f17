"""Writes `deploy/requirements.txt` and `deploy/requirements-build.txt`: what the image installs, with hashes.

Names, versions and SHA-256 alone, so that any mirror serves them. Packages come from the registry that uv
(UV_DEFAULT_INDEX, UV_INDEX) or pip is set to. Run it after a change of `constraints.txt` or of dependencies.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("postgres", "notify", "otel")
PYTHON = "3.13"
MACHINES = ("x86_64", "aarch64")
HEAD = "# Written by scripts/hash_requirements.py: do not edit.\n"
_ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
Locked = dict[str, tuple[str, set[str]]]  # by name: version and hashes


def lock(machine: str, what: list[str], given: str | None = None) -> Locked:
    """What a machine needs, as uv resolves it."""
    command = [
        *uv(), "pip", "compile", "--quiet", *what, "--constraint", "constraints.txt", "--generate-hashes",
        "--python-version", PYTHON, "--python-platform", f"{machine}-manylinux_2_28",
        "--index-strategy", "unsafe-best-match", "--no-emit-index-url", "--no-header", "--no-annotate",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"uv could not resolve the requirements:\n{done.stderr}")
    found: Locked = {}
    for line in done.stdout.splitlines():
        if entry := _ENTRY.match(line):
            name, version = entry.groups()
            found[name] = (version, set())
        found[name][1].update(_HASH.findall(line))
    return found


def uv() -> list[str]:
    """How uv is called."""
    if find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    if place := shutil.which("uv"):
        return [place]
    sys.exit("this needs uv: pip install uv")


def environment() -> dict[str, str]:
    """Our own, with the registry that pip is set to where uv is set to none."""
    given = dict(os.environ)
    for variable, key in (("UV_DEFAULT_INDEX", "index-url"), ("UV_INDEX", "extra-index-url")):
        command = [sys.executable, "-m", "pip", "config", "get", f"global.{key}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if not result.returncode and result.stdout.strip():
            given.setdefault(variable, " ".join(result.stdout.split()))
    return given


def written(machines: dict[str, Locked]) -> str:
    """The file: one entry for all machines, or for those that need it."""
    lines = [HEAD]
    for name in sorted({name for locked in machines.values() for name in locked}):
        having = [machine for machine in machines if name in machines[machine]]
        (version,) = {machines[machine][name][0] for machine in having}
        where = " or ".join(f"platform_machine == '{machine}'" for machine in having)
        marker = "" if len(having) == len(machines) else f" ; {where}"
        hashes = sorted({each for machine in having for each in machines[machine][name][1]})
        lines.append(" \\\n    ".join((f"{name}=={version}{marker}", *(f"--hash={each}" for each in hashes))))
        lines.append("\n")
    return "".join(lines)


def main() -> None:
    """Write both files."""
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    image = {machine: lock(machine, ["pyproject.toml", *extras]) for machine in MACHINES}
    (ROOT / "deploy" / "requirements.txt").write_text(written(image), "utf-8")
    build = {machine: lock(machine, ["-"], "hatchling>=1.27\n") for machine in MACHINES}
    (ROOT / "deploy" / "requirements-build.txt").write_text(written(build), "utf-8")


if __name__ == "__main__":
    main()
