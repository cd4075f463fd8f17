"""The examples in `deploy/`: they parse, and say nothing that the program does not know."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from afresh.cli.program import program
from afresh.config import load

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
INSTRUCTIONS = frozenset(
    (
        *("FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE"),
        *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
    )
)
UNITS = sorted(DEPLOY.glob("*.service"))


def check_command(words: list[str]) -> None:
    """Every option of a command line is one of the command's."""
    command = program.commands[words[0]]
    known = {name for param in command.params for name in param.opts}
    assert [word for word in words[1:] if word.startswith("-") and word not in known] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_sound_and_gives_away_little(unit: Path) -> None:
    parsed = ConfigParser(strict=True, interpolation=None, delimiters=("=",))
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit.read_text("utf-8"))
    assert set(parsed) == {"DEFAULT", "Unit", "Service", "Install"}
    service = parsed["Service"]
    words = shlex.split(service["ExecStart"])
    assert words[:2] == ["/usr/bin/env", "afresh"]
    check_command(words[2:])
    assert (service["DynamicUser"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "yes", "strict")
    if verify := shutil.which("systemd-analyze"):
        done = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_image_runs_as_nobody_and_starts_the_server() -> None:
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text("utf-8"))
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in lines} <= INSTRUCTIONS
    last = {line[0]: line[1] for line in lines}
    assert last["USER"] == "10001"
    assert yaml.safe_load(last["ENTRYPOINT"]) == ["afresh"]
    check_command(yaml.safe_load(last["CMD"]))
    checked = last["HEALTHCHECK"].partition(" CMD ")[2]
    assert "http://127.0.0.1:8000/health" in yaml.safe_load(checked)[-1]
    compile(yaml.safe_load(checked)[-1], "health check", "exec")
    root = DEPLOY.parent
    for word, rest in lines:
        if word == "COPY" and "--from" not in rest:
            assert all((root / name).exists() for name in rest.split()[:-1]), rest


_LOCKED = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)(?: ; [a-z_= '0-9]+)?((?: --hash=sha256:[0-9a-f]{64})+)")


def locked(name: str) -> dict[str, str]:
    """Versions by name, of a file in which every line is a package with its hashes and nothing else."""
    text = re.sub(r" \\\n\s*", " ", (DEPLOY / name).read_text("utf-8"))
    entries = [_LOCKED.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    assert all(entries), name
    return {entry[1]: entry[2] for entry in entries if entry}


def constrained() -> dict[str, str]:
    lines = (DEPLOY.parent / "constraints.txt").read_text("utf-8").splitlines()
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt"])
def test_S8_F131_what_the_image_installs_has_hashes_and_is_what_was_tested(name: str) -> None:
    found = locked(name)
    assert found
    assert found.items() <= constrained().items(), "run scripts/hash_requirements.py"


def test_S8_F131_the_image_installs_nothing_without_a_hash() -> None:
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text("utf-8"))
    fetched = re.findall(r"pip (?:install|wheel|download) ([^&\n]*)", text)
    assert len(fetched) == 4
    for words in fetched:
        assert "--require-hashes" in words or ("--no-index" in words and "--no-deps" in words), words


def test_S8_F131_the_hashes_cover_every_dependency_of_the_image() -> None:
    """Of afresh with the extras of the image, and of whatever those need in turn."""
    extras = hash_requirements().EXTRAS
    found = {canonicalize_name(name) for name in locked("requirements.txt")}
    image: dict[str, str] = {**default_environment(), "python_version": "3.13"}  # type: ignore[dict-item]
    image["python_full_version"] = "3.13.0"
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["project"]
    own = [*project["dependencies"], *(each for e in extras for each in project["optional-dependencies"][e])]
    wanted, seen = [(Requirement(text), "") for text in own], set[tuple[str, str]]()
    while wanted:
        requirement, extra = wanted.pop()
        if requirement.marker and not requirement.marker.evaluate({**image, "extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        assert name in found, f"{name}: run scripts/hash_requirements.py"
        for more in {"", *requirement.extras} - {each for known, each in seen if known == name}:
            seen.add((name, more))
            with suppress(PackageNotFoundError):  # what this machine does not need
                wanted.extend((Requirement(text), more) for text in requires(name) or ())


def hash_requirements() -> ModuleType:
    place = DEPLOY.parent / "scripts" / "hash_requirements.py"
    spec = importlib.util.spec_from_file_location("hash_requirements", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_composition_is_postgres_a_server_and_two_workers() -> None:
    output: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = output["services"]
    assert set(services) == {"database", "server", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["server"]["ports"] == ["127.0.0.1:8000:8000"]
    for name in ("server", "worker"):
        service = services[name]
        check_command(service["command"])
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
        assert service["environment"]["AFRESH_STORE"].startswith("postgresql://afresh:${POSTGRES_PASSWORD:?")
        given = {variable: "" for variable in service["environment"] if variable != "AFRESH_STORE"}
        assert load(None, {**given, "AFRESH_STORE": "postgresql://afresh:x@database/afresh"}, {}, DEPLOY)
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
