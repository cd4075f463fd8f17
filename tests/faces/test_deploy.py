"""The examples in `deploy/`: they parse, and say nothing that the program does not know."""

import re
import shlex
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from afresh.config import load
from afresh.faces.cli.program import program

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
    assert (service["DynamicUser"], service["NoNewPrivileges"], service["ProtectSystem"]) == (
        "yes",
        "yes",
        "strict",
    )
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
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (chosen,) = re.findall(r'"\.\[([a-z,]+)\]"', text)
    assert set(chosen.split(",")) <= set(extras)
    for word, rest in lines:
        if word == "COPY" and "--from" not in rest:
            assert all((root / name).exists() for name in rest.split()[:-1]), rest
    assert (root / "constraints.txt").exists()


def test_the_composition_is_postgres_a_server_and_two_workers() -> None:
    told: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = told["services"]
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
