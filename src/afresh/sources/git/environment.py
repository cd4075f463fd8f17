"""The surroundings in which git runs: none of the user's settings, nothing that a repository could steer."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from afresh.sources.git.address import GitAddress
from afresh.sources.web.guard import AddressPolicy

TOKEN = "AFRESH_GIT_TOKEN"  # noqa: S105 - the name of the variable
# Who the user is, and where keys and certificates are: git itself reads no settings from there.
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
    *("SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "DBUS_SESSION_BUS_ADDRESS"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
# What nobody's keys are found by; curl takes the home of the account where HOME is not set, hence this one.
_ANONYMOUS = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
_NO_HOME = os.devnull
# Faults of old histories that harm nobody who checks nothing out.
_HARMLESS = ("badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode", "missingEmail", "badDate")
_HELPER = f"!f() {{ printf 'username=x-access-token\\npassword=%s\\n' \"${TOKEN}\"; }}; f"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOptions:
    """The bounds of every call of git."""

    user_agent: str = "afresh/0.1"
    connect_seconds: float = 10.0
    answer_seconds: float = 60.0  # to learn the state of a repository
    total_seconds: float = 600.0  # to fetch what changed
    max_fetch_bytes: int = 2 * 1024**3  # of one pack
    max_file_bytes: int = 10 * 1024**2
    credential_helper: str | None = None
    token: str | None = field(default=None, repr=False)
    token_host: str | None = None  # the one host that the token is for
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    anonymous: bool = False  # no key of the operator is used: no helper, token, agent, .netrc or ssh key


def environment(
    address: GitAddress, options: GitOptions, pins: Sequence[str], settings_file: str
) -> dict[str, str]:
    """All variables of a git process; `pins` are the addresses that its host was found to have."""
    passed = _ANONYMOUS if options.anonymous else _PASSED
    made = {name: value for name in passed if (value := os.environ.get(name))}
    made |= {"HOME": _NO_HOME} if options.anonymous else {}
    made |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": settings_file,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_ALLOW_PROTOCOL": address.scheme,  # no setting of any file goes before it
        "GIT_SSH_COMMAND": "false" if options.anonymous else _ssh(address, options, pins),
    }
    if _has_token(address, options):
        made[TOKEN] = options.token or ""
    return made | _variables(_settings(address, options, pins))


def served_settings(address: GitAddress) -> str:
    """The settings file of a repository of this machine, where its own side of the transfer runs too."""
    if address.scheme != "file":
        return ""
    path = os.fsdecode(_decoded(address.path)).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return (
        f'[safe]\n\tdirectory = "{path}"\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n'
    )


def _decoded(path: str) -> bytes:
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path)


def _settings(address: GitAddress, options: GitOptions, pins: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Settings that no file can change: later ones win, and these are the last."""
    made = [
        ("protocol.allow", "never"),
        (f"protocol.{address.scheme}.allow", "always"),
        ("core.hooksPath", os.devnull),
        ("core.fsmonitor", "false"),
        ("core.alternateRefsCommand", "true"),
        ("core.bigFileThreshold", str(options.max_file_bytes)),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("submodule.recurse", "false"),
        ("fetch.recurseSubmodules", "false"),
        ("fetch.writeCommitGraph", "false"),
        ("fetch.fsckObjects", "true"),
        ("transfer.fsckObjects", "true"),
        ("transfer.bundleURI", "false"),
        ("http.followRedirects", "false"),
        ("http.proxy", ""),
        ("http.sslVerify", "true"),
        ("http.userAgent", options.user_agent),
        ("http.lowSpeedLimit", "1000"),
        ("http.lowSpeedTime", "30"),
        ("ssh.variant", "ssh"),
        ("credential.helper", ""),
    ]
    made += [(f"fetch.fsck.{fault}", "ignore") for fault in _HARMLESS]
    if options.credential_helper and not options.anonymous:
        made.append(("credential.helper", options.credential_helper))
    if _has_token(address, options):
        made.append((f"credential.https://{options.token_host}.helper", _HELPER))
    if (
        pins
        and address.scheme in ("https", "http")
        and (place := address.connects_to)
        and place[0] not in pins
    ):
        listed = ",".join(f"[{each}]" if ":" in each else each for each in pins)
        made.append(("http.curloptResolve", f"{place[0]}:{place[1]}:{listed}"))
    return made


def _has_token(address: GitAddress, options: GitOptions) -> bool:
    if options.anonymous or not options.token:
        return False
    return address.scheme == "https" and address.host == options.token_host


def _variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    made = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    return made


def _ssh(address: GitAddress, options: GitOptions, pins: Sequence[str]) -> str:
    """ssh asks nothing, forwards nothing, and goes to the address that was checked."""
    given = {
        "BatchMode": "yes",
        "ConnectTimeout": str(max(1, round(options.connect_seconds))),
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "2",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
    }
    if pins and address.scheme == "ssh":
        given["HostName"] = pins[0]
        given["HostKeyAlias"] = f"[{address.host}]:{address.port}" if address.port else address.host
    return shlex.join(["ssh", *(f"-o{name}={value}" for name, value in given.items())])
